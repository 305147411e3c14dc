"""Rules of what a device adds to the node's ordinary resources (alpha, in its 1.37 shape).

Upstream counterpart: validateNodeAllocatableResources of pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base.quantity import Quantity, QuantityError

Tree = dict[str, Any]

_NATIVE = ("cpu", "memory", "ephemeral-storage")


def validate_node_allocatable(resources: Any, capacity: Tree, path: str) -> list[FieldError]:
    """Check the map of one device against the capacities that it may refer to."""
    errors: list[FieldError] = []
    for name, entry in (resources or {}).items():
        at = f"{path}[{name}]"
        if name not in _NATIVE and not name.startswith("hugepages-"):
            errors.append(fields.invalid(at, name, "must be a node allocatable resource name"))
        mapping, overhead = entry.get("mapping"), entry.get("overhead")
        if mapping is None and overhead is None:
            errors.append(fields.required(at, "at least one of mapping or overhead must be set"))
        if mapping is not None:
            errors.extend(_validate_mapping(mapping, capacity, f"{at}.mapping"))
        if overhead is not None:
            errors.extend(_validate_overhead(overhead, f"{at}.overhead"))
    return errors


def _validate_mapping(mapping: Tree, capacity: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    key, factor, each = (mapping.get(name) for name in ("capacityKey", "capacityMultiplier", "deviceMultiplier"))
    if (key is not None or factor is not None) and each is not None:
        text = "capacityKey and capacityMultiplier cannot be set together with deviceMultiplier"
        errors.append(fields.invalid(path, mapping, text))
    if key is None and factor is None and each is None:
        errors.append(fields.required(path, "one of capacityKey or deviceMultiplier must be set"))
    if key is not None:
        at = f"{path}.capacityKey"
        if key == "":
            errors.append(fields.invalid(at, "", "capacityKey must not be an empty string"))
        elif key not in capacity:
            errors.append(fields.not_found(at, key))
        if factor is None:
            text = "capacityMultiplier is required when capacityKey is set"
            errors.append(fields.required(f"{path}.capacityMultiplier", text))
    elif factor is not None:
        errors.append(fields.required(f"{path}.capacityKey", "capacityKey is required when capacityMultiplier is set"))
    for name, value in (("capacityMultiplier", factor if key is not None else None), ("deviceMultiplier", each)):
        if value is not None and _sign(value) <= 0:
            errors.append(fields.invalid(f"{path}.{name}", str(value), "must be positive"))
    return errors


def _validate_overhead(overhead: Tree, path: str) -> list[FieldError]:
    amounts = [(name, overhead.get(name)) for name in ("perPod", "perContainer")]
    if all(value is None for _, value in amounts):
        return [fields.invalid(path, "", "at least one of perPod or perContainer must be set")]
    return [
        fields.invalid(f"{path}.{name}", str(value), "must be non-negative")
        for name, value in amounts
        if value is not None and _sign(value) < 0
    ]


def _sign(value: Any) -> int:
    try:
        return Quantity.parse(value).sign
    except QuantityError:
        return 0
