"""Rules of metadata that hold for every kind: names, labels, annotations, finalizers, owners, and what may not change.

Upstream counterpart: apimachinery pkg/api/validation/objectmeta.go. Its quirks that clients can see are kept: label
faults are reported at `metadata.labels` and not at the key, generateName is checked as a prefix only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base import names

Tree = dict[str, Any]
NameRule = Callable[[str], list[str]]

ANNOTATIONS_LIMIT = 256 * 1024
IMMUTABLE = "field is immutable"

_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_BANNED_OWNERS = frozenset({("v1", "Event")})
_DNS_LABEL_NAMES = frozenset({("", "Namespace")})
_PATH_SEGMENT_NAMES = frozenset(
    {
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    }
)


def path_segment(value: str) -> list[str]:
    """Check a name that only has to be usable in a URL (the RBAC kinds allow colons and capitals)."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in value]


def name_rule(group: str, kind: str) -> NameRule:
    """Choose the rule that names of a kind obey."""
    if (group, kind) in _DNS_LABEL_NAMES:
        return names.dns_label
    if (group, kind) in _PATH_SEGMENT_NAMES:
        return path_segment
    if (group, kind) == ("resource.k8s.io", "DeviceClass"):
        return lambda value: names.dns_subdomain(value, unit="bytes")
    return names.dns_subdomain


def validate_metadata(metadata: Tree, *, namespaced: bool, rule: NameRule, path: str = "metadata") -> list[FieldError]:
    """Check the metadata of a new object."""
    errors: list[FieldError] = []
    name = metadata.get("name") or ""
    generate = metadata.get("generateName") or ""
    if generate:
        for fault in rule(names.mask_trailing_dash(generate)):
            errors.append(fields.invalid(f"{path}.generateName", generate, fault))
    if not name:
        errors.append(fields.required(f"{path}.name", "name or generateName is required"))
    else:
        errors.extend(fields.invalid(f"{path}.name", name, fault) for fault in rule(name))
    namespace = metadata.get("namespace") or ""
    if namespaced:
        if not namespace:
            errors.append(fields.required(f"{path}.namespace"))
        else:
            errors.extend(fields.invalid(f"{path}.namespace", namespace, fault) for fault in names.dns_label(namespace))
    elif namespace:
        errors.append(fields.forbidden(f"{path}.namespace", "not allowed on this type"))
    generation = metadata.get("generation") or 0
    if generation < 0:
        errors.append(fields.invalid(f"{path}.generation", generation, "must be greater than or equal to 0"))
    errors.extend(_shared_rules(metadata, path))
    return errors


def validate_metadata_update(new: Tree, old: Tree, path: str = "metadata") -> list[FieldError]:
    """Check what changed in the metadata of a stored object."""
    errors: list[FieldError] = []
    added = set(new.get("finalizers") or ()) - set(old.get("finalizers") or ())
    if old.get("deletionTimestamp") and added:
        errors.append(
            fields.forbidden(
                f"{path}.finalizers",
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                + _go_strings(sorted(added)),
            )
        )
    generation = new.get("generation") or 0
    if generation < (old.get("generation") or 0):
        errors.append(fields.invalid(f"{path}.generation", generation, "must not be decremented"))
    for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        given, stored = new.get(name), old.get(name)
        if (given or None) != (stored or None):
            errors.append(fields.invalid(f"{path}.{name}", given, IMMUTABLE))
    errors.extend(_shared_rules(new, path))
    return errors


def validate_labels(labels: Any, path: str) -> list[FieldError]:
    """Check a map of labels; every fault is reported at the map."""
    errors: list[FieldError] = []
    for key, value in _pairs(labels):
        for fault in names.qualified_name(key, unit="bytes"):
            errors.append(fields.invalid(path, key, fault))
        for fault in names.label_value(str(value), unit="bytes"):
            errors.append(fields.invalid(path, value, fault))
    return errors


def validate_annotations(annotations: Any, path: str) -> list[FieldError]:
    """Check keys and total size of annotations."""
    errors: list[FieldError] = []
    size = 0
    for key, value in _pairs(annotations):
        # Upper case is tolerated in annotation keys.
        for fault in names.qualified_name(key.lower()):
            errors.append(fields.invalid(path, key, fault))
        size += len(key.encode()) + len(str(value).encode())
    if size > ANNOTATIONS_LIMIT:
        errors.append(fields.too_long(path, ANNOTATIONS_LIMIT))
    return errors


def validate_finalizers(finalizers: Any, path: str) -> list[FieldError]:
    """Check that finalizers are qualified names, or one of the few that need no domain."""
    errors: list[FieldError] = []
    values = [str(item) for item in finalizers or ()]
    for index, value in enumerate(values):
        errors.extend(fields.invalid(path, value, fault) for fault in names.qualified_name(value))
        if "/" not in value and value not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(fields.invalid(f"{path}[{index}]", value, text))
    if "orphan" in values and "foregroundDeletion" in values:
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(fields.invalid(path, values, text))
    return errors


def validate_owners(owners: Any, path: str) -> list[FieldError]:
    """Check owner references: complete, not an Event, one controller at most."""
    errors: list[FieldError] = []
    controller = ""
    for index, owner in enumerate(owners or ()):
        at = f"{path}[{index}]"
        version = owner.get("apiVersion") or ""
        group, _, short = version.rpartition("/")
        if not short or version.count("/") > 1:
            errors.append(fields.invalid(f"{at}.apiVersion", version, "version must not be empty"))
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                errors.append(fields.invalid(f"{at}.{name}", "", "must not be empty"))
        if (version, owner.get("kind")) in _BANNED_OWNERS:
            text = f"{group}/{short}, Kind={owner['kind']} is disallowed from being an owner"
            errors.append(fields.invalid(at, owner, text))
        if owner.get("controller"):
            if controller:
                text = (
                    f'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {owner.get('name')}"
                )
                errors.append(fields.invalid(path, owners, text))
            controller = str(owner.get("name"))
    return errors


def _shared_rules(metadata: Tree, path: str) -> Iterable[FieldError]:
    if metadata.get("labels"):
        yield from validate_labels(metadata["labels"], f"{path}.labels")
    if metadata.get("annotations"):
        yield from validate_annotations(metadata["annotations"], f"{path}.annotations")
    if metadata.get("ownerReferences"):
        yield from validate_owners(metadata["ownerReferences"], f"{path}.ownerReferences")
    if metadata.get("finalizers"):
        yield from validate_finalizers(metadata["finalizers"], f"{path}.finalizers")


def _pairs(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else ()


def _go_strings(values: list[str]) -> str:
    return "[]string{" + ", ".join(f'"{value}"' for value in values) + "}"
