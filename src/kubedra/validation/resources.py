"""Rules of requests and limits: names, amounts, and that a request fits its limit.

Upstream counterpart: ValidateResourceRequirements of pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base import names
from kubedra.base.quantity import Quantity, QuantityError
from kubedra.validation.choices import NEGATIVE

Tree = dict[str, Any]
NameRule = Callable[[str, str], list[FieldError]]

HUGE_PAGES = "hugepages-"
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage", "storage", "pods"})
_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_WHOLE = frozenset({"pods", "services", "persistentvolumeclaims", "secrets", "configmaps", "resourcequotas"})


def is_huge_pages(name: str) -> bool:
    """Tell whether a resource is huge pages of some size."""
    return name.startswith(HUGE_PAGES)


def is_native(name: str) -> bool:
    """Tell whether a resource belongs to Kubernetes."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Tell whether a resource is known to somebody else only."""
    return not is_native(name) and not name.startswith("requests.") and not names.qualified_name("requests." + name)


def must_be_whole(name: str) -> bool:
    """Tell whether a resource comes in whole pieces only."""
    return name in _WHOLE or is_extended(name)


def container_resource_name(name: str, path: str) -> list[FieldError]:
    """Check the name of a resource of a container."""
    errors = [fields.invalid(path, name, fault) for fault in names.qualified_name(name)]
    if errors:
        return errors
    if "/" not in name:
        if name not in _CONTAINER and not is_huge_pages(name):
            if name not in _STANDARD:
                errors.append(fields.invalid(path, name, "must be a standard resource type or fully qualified"))
            errors.append(fields.invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(fields.invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def quantity(value: Any) -> Quantity:
    """Read an amount that decoding has checked."""
    try:
        return Quantity.parse(value)
    except QuantityError:
        return Quantity.parse("0")


def validate_amount(name: str, value: Any, path: str) -> list[FieldError]:
    """Check one amount of one resource."""
    amount = quantity(value)
    if amount.sign < 0:
        return [fields.invalid(path, str(amount), NEGATIVE)]
    if must_be_whole(name) and not amount.is_whole:
        return [fields.invalid(path, str(amount), "must be an integer")]
    return []


def validate_requirements(
    resources: Tree, path: str, name_rule: NameRule = container_resource_name
) -> list[FieldError]:
    """Check requests and limits of a container or a pod."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    errors: list[FieldError] = []
    huge_pages = compute = False
    for name, value in limits.items():
        errors.extend(name_rule(name, f"{path}.limits[{name}]"))
        errors.extend(validate_amount(name, value, f"{path}.limits[{name}]"))
        huge_pages = huge_pages or is_huge_pages(name)
        compute = compute or name in ("cpu", "memory")
    for name, value in requests.items():
        errors.extend(name_rule(name, f"{path}.requests[{name}]"))
        errors.extend(validate_amount(name, value, f"{path}.requests[{name}]"))
        errors.extend(_validate_fit(name, value, limits.get(name), path))
        huge_pages = huge_pages or is_huge_pages(name)
        compute = compute or name in ("cpu", "memory")
    if huge_pages and not compute:
        errors.append(fields.forbidden(path, "HugePages require cpu or memory"))
    return errors


def _validate_fit(name: str, request: Any, limit: Any, path: str) -> list[FieldError]:
    overcommit = is_native(name) and not is_huge_pages(name)
    if limit is None:
        if overcommit:
            return []
        return [fields.required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    asked, most = quantity(request), quantity(limit)
    if asked != most and not overcommit:
        text = f"must be equal to {name} limit of {most}"
    elif asked > most:
        text = f"must be less than or equal to {name} limit of {most}"
    else:
        return []
    return [fields.invalid(f"{path}.requests", str(asked), text)]
