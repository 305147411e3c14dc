"""Rules of one device in a slice: attributes, capacity, counters, node, taints, binding conditions.

Upstream counterpart: validateDevice of pkg/apis/resource/validation.
"""

from __future__ import annotations

import re
from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base import names
from kubedra.validation import formats
from kubedra.validation.context import Context
from kubedra.validation.device_taint import validate_taint
from kubedra.validation.lists import check_list, check_map, check_set
from kubedra.validation.node_allocatable import validate_node_allocatable
from kubedra.validation.node_selector import validate_node_selector
from kubedra.validation.request_policy import validate_policy

Tree = dict[str, Any]

MEMBERS_MAX = 32
ATTRIBUTE_VALUES_MAX = 48
VALUE_MAX = 64
TAINTS_MAX = 16
COUNTER_SETS_MAX = 2
COUNTERS_MAX = 32
GROUPS_MAX = 2
CONDITIONS_MAX = 4

LISTS = ("bools", "ints", "strings", "versions")
_SCALARS = ("bool", "int", "string", "version")

_NUMBER = r"(0|[1-9]\d*)"
_PRERELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = r"[0-9a-zA-Z-]+"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?",
    re.ASCII,
)

_ONE_NODE_FIELD = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required "
    "when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NO_NODE_FIELDS = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set "
    "if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)


def validate_device(
    device: Tree, old: Tree | None, path: str, *, per_device_node: bool, context: Context
) -> list[FieldError]:
    """Check a device; `old` is the device of that name in the stored slice, whose unchanged parts stay valid."""
    errors = formats.label(device.get("name") or "", f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    members = len(attributes) + len(capacity)
    if members > MEMBERS_MAX:
        text = f"the total number of attributes and capacities must not exceed {MEMBERS_MAX}"
        errors.append(fields.invalid(path, members, text))
    values = sum(_value_count(attribute) for attribute in attributes.values())
    if values > ATTRIBUTE_VALUES_MAX:
        text = f"the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}"
        errors.append(fields.invalid(path, values, text))
    errors.extend(
        check_map(
            attributes, None, formats.QUALIFIED_KEY_MAX, formats.qualified, validate_attribute, f"{path}.attributes"
        )
    )
    if old is None or (old.get("capacity") or {}) != capacity:
        shared = bool(device.get("allowMultipleAllocations"))

        def check_capacity(entry: Tree, at: str) -> list[FieldError]:
            return _validate_capacity(entry, at, shared=shared, context=context)

        errors.extend(
            check_map(capacity, None, formats.QUALIFIED_KEY_MAX, formats.qualified, check_capacity, f"{path}.capacity")
        )
    taints = device.get("taints") or []
    if old is None or (old.get("taints") or []) != taints:
        errors.extend(check_list(taints, TAINTS_MAX, validate_taint, f"{path}.taints"))
    errors.extend(
        check_set(
            device.get("consumesCounters"),
            COUNTER_SETS_MAX,
            _validate_consumption,
            f"{path}.consumesCounters",
            key=lambda item: item.get("counterSet") or "",
        )
    )
    errors.extend(_validate_node(device, path, per_device_node))
    errors.extend(
        validate_binding_conditions(device.get("bindingConditions"), device.get("bindingFailureConditions"), path)
    )
    errors.extend(
        validate_node_allocatable(device.get("nodeAllocatableResources"), capacity, f"{path}.nodeAllocatableResources")
    )
    return errors


def validate_attribute(attribute: Tree, path: str) -> list[FieldError]:
    """Check one attribute: exactly one value of a known type."""
    errors: list[FieldError] = []
    given = [name for name in (*_SCALARS, *LISTS) if attribute.get(name) is not None]
    for name in given:
        value, at = attribute[name], f"{path}.{name}"
        if name == "string":
            errors.extend(_validate_string(value, at))
        elif name == "version":
            errors.extend(_validate_version(value, at))
        elif name in LISTS:
            if not value:
                errors.append(fields.invalid(at, value, "must not be empty if specified"))
            check = {"strings": _validate_string, "versions": _validate_version}.get(name)
            if check is not None:
                errors.extend(check_list(value, None, check, at))
    if not given:
        errors.append(fields.invalid(path, "", "exactly one value must be specified"))
    elif len(given) > 1:
        errors.append(fields.invalid(path, attribute, "exactly one value must be specified"))
    return errors


def validate_binding_conditions(conditions: Any, failures: Any, path: str) -> list[FieldError]:
    """Check the conditions that binding waits for: a few, all different, and none without the other list."""
    errors: list[FieldError] = []
    given, failing = conditions or [], failures or []
    at, at_failing = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    errors.extend(check_list(given, CONDITIONS_MAX, formats.label_key, at))
    errors.extend(check_list(failing, CONDITIONS_MAX, formats.label_key, at_failing))
    # Repetitions are reported even in lists that are too long.
    errors.extend(_repeated(given, at))
    errors.extend(_repeated(failing, at_failing))
    for index, condition in enumerate(failing):
        if condition in given:
            text = "bindingFailureConditions must not overlap with bindingConditions"
            errors.append(fields.invalid(f"{at_failing}[{index}]", condition, text))
    if failing and not given:
        text = "bindingConditions are required to use bindingFailureConditions"
        errors.append(fields.invalid(at, conditions, text))
    if given and not failing:
        text = "bindingFailureConditions are required to use bindingConditions"
        errors.append(fields.invalid(at_failing, failures, text))
    return errors


def has_list_attribute(device: Tree) -> bool:
    """Tell whether a device has an attribute with several values."""
    return any(
        attribute.get(name) is not None for attribute in (device.get("attributes") or {}).values() for name in LISTS
    )


def _repeated(values: list[str], path: str) -> list[FieldError]:
    return [
        fields.duplicate(f"{path}[{index}]", value) for index, value in enumerate(values) if value in values[:index]
    ]


def _value_count(attribute: Tree) -> int:
    return sum(len(attribute.get(name) or ()) for name in LISTS) or 1


def _validate_string(value: str, path: str) -> list[FieldError]:
    return [fields.too_long(path, VALUE_MAX)] if len(value.encode()) > VALUE_MAX else []


def _validate_version(value: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not _SEMVER.fullmatch(value):
        errors.append(fields.invalid(path, value, "must be a string compatible with semver.org spec 2.0.0"))
    errors.extend(_validate_string(value, path))
    return errors


def _validate_capacity(entry: Tree, path: str, *, shared: bool, context: Context) -> list[FieldError]:
    policy = entry.get("requestPolicy")
    if policy is None:
        return []
    if not shared:
        return [fields.forbidden(f"{path}.requestPolicy", "allowMultipleAllocations must be true")]
    return validate_policy(policy, entry.get("value"), f"{path}.requestPolicy", context)


def _validate_consumption(consumption: Tree, path: str) -> list[FieldError]:
    errors = formats.required_label(consumption.get("counterSet") or "", f"{path}.counterSet")
    errors.extend(validate_counters(consumption.get("counters"), f"{path}.counters"))
    errors.extend(
        check_set(
            consumption.get("compatibilityGroups"), GROUPS_MAX, lambda _item, _at: [], f"{path}.compatibilityGroups"
        )
    )
    return errors


def validate_counters(counters: Any, path: str) -> list[FieldError]:
    """Check a map of counters: some, not too many, each named by a label (any amount will do)."""
    if not counters:
        return [fields.required(path)]
    return check_map(counters, COUNTERS_MAX, names.DNS_LABEL_MAX, formats.label, lambda _item, _at: [], path)


def _validate_node(device: Tree, path: str, per_device_node: bool) -> list[FieldError]:
    node, selector, everywhere = (device.get(name) for name in ("nodeName", "nodeSelector", "allNodes"))
    if not per_device_node:
        if node is None and selector is None and everywhere is None:
            return []
        return [fields.invalid(path, None, _NO_NODE_FIELDS)]
    errors: list[FieldError] = []
    given: list[str] = []
    if node is not None:
        if node:
            given.append("`nodeName`")
            errors.extend(formats.node_name(node, f"{path}.nodeName"))
        else:
            errors.append(fields.invalid(f"{path}.nodeName", "", "must not be empty"))
    if selector is not None:
        given.append("`nodeSelector`")
        errors.extend(validate_node_selector(selector, f"{path}.nodeSelector"))
    if everywhere:
        given.append("`allNodes`")
    elif everywhere is not None:
        errors.append(fields.invalid(f"{path}.allNodes", False, "must be either unset or set to true"))
    if not given:
        errors.append(fields.required(path, _ONE_NODE_FIELD))
    elif len(given) > 1:
        errors.append(fields.invalid(path, "{" + ", ".join(given) + "}", _ONE_NODE_FIELD))
    return errors
