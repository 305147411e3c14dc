"""Names of resource.k8s.io with their field errors: drivers, pools, requests, devices, attributes, shares.

Upstream counterpart: the validate*Name functions of pkg/apis/resource/validation (1.36: names with more than one
slash slip through, which cases depend on).
"""

from __future__ import annotations

from functools import lru_cache

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base import names

DRIVER_MAX = 63
POOL_MAX = 253
IDENTIFIER_MAX = 32
QUALIFIED_KEY_MAX = DRIVER_MAX + 1 + IDENTIFIER_MAX


def label(value: str, path: str) -> list[FieldError]:
    """Check a DNS label: the name of a request, a device, a counter set or a counter."""
    return [fields.invalid(path, value, fault) for fault in names.dns_label(value)]


def required_label(value: str, path: str) -> list[FieldError]:
    """Check a DNS label whose absence is reported as such."""
    return label(value, path) if value else [fields.required(path)]


def subdomain(value: str, path: str) -> list[FieldError]:
    """Check a DNS subdomain."""
    return [fields.invalid(path, value, fault) for fault in names.dns_subdomain(value)]


def required_subdomain(value: str, path: str) -> list[FieldError]:
    """Check a DNS subdomain whose absence is reported as such."""
    return subdomain(value, path) if value else [fields.required(path)]


def driver(value: str, path: str) -> list[FieldError]:
    """Check a driver's name; capitals are tolerated (with a warning elsewhere)."""
    if not value:
        return [fields.required(path)]
    errors = []
    if len(value.encode()) > DRIVER_MAX:
        errors.append(fields.too_long(path, DRIVER_MAX))
    errors.extend(fields.invalid(path, value, fault) for fault in names.dns_subdomain(value.lower()))
    return errors


def pool(value: str, path: str) -> list[FieldError]:
    """Check a pool's name: subdomains joined by slashes, each reported alone."""
    if not value:
        return [fields.required(path)]
    errors = []
    if len(value.encode()) > POOL_MAX:
        errors.append(fields.too_long(path, POOL_MAX))
    for part in value.split("/"):
        errors.extend(subdomain(part, path))
    return errors


def qualified(value: str, path: str) -> list[FieldError]:
    """Check the name of an attribute or a capacity: an identifier, behind a domain or not."""
    # The devices of a slice repeat the same few names.
    return [] if _is_qualified(value) else _qualified_faults(value, path)


@lru_cache(maxsize=4096)
def _is_qualified(value: str) -> bool:
    return not _qualified_faults(value, "")


def _qualified_faults(value: str, path: str) -> list[FieldError]:
    parts = value.split("/")
    if len(parts) == 1:
        return _identifier(parts[0], path)
    if len(parts) > 2:
        return []
    domain, name = parts
    errors = driver(domain, path) if domain else [fields.invalid(path, "", "the domain must not be empty")]
    if name:
        errors.extend(_identifier(name, path))
    else:
        errors.append(fields.invalid(path, "", "the name must not be empty"))
    return errors


def fully_qualified(value: str, path: str) -> list[FieldError]:
    """Check an attribute's name that must have its domain."""
    errors = qualified(value, path)
    if "/" not in value:
        text = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(fields.invalid(path, value, text))
    return errors


def label_key(value: str, path: str) -> list[FieldError]:
    """Check the key of a taint or the type of a condition."""
    return [fields.invalid(path, value, fault) for fault in names.qualified_name(value)]


def label_value(value: str, path: str) -> list[FieldError]:
    """Check the value of a taint or a toleration."""
    return [fields.invalid(path, value, fault) for fault in names.label_value(value)]


def node_name(value: str, path: str) -> list[FieldError]:
    """Check the name of a node."""
    return subdomain(value, path)


def share(value: str, path: str) -> list[FieldError]:
    """Check the identity of a share of a device."""
    return [fields.invalid(path, value, fault) for fault in names.uuid(value)]


def is_extended_resource(name: str) -> bool:
    """Tell whether a resource is one that Kubernetes itself knows nothing of (`vendor.com/thing`)."""
    domain, slash, _ = name.partition("/")
    if not slash or domain == "kubernetes.io" or domain.endswith(".kubernetes.io") or name.startswith("requests."):
        return False
    # Quota must be able to name it, too.
    return not names.qualified_name("requests." + name)


def _identifier(value: str, path: str) -> list[FieldError]:
    errors = []
    if len(value.encode()) > IDENTIFIER_MAX:
        errors.append(fields.too_long(path, IDENTIFIER_MAX))
    errors.extend(fields.invalid(path, value, fault) for fault in names.c_identifier(value))
    return errors
