"""Rules of ResourceSlice: pool, node selection, devices or shared counters.

The rules look at one slice only. Whether device names are unique in the pool and whether counter sets exist is found
out by the allocator, which sees all slices of a pool.

Upstream counterpart: ValidateResourceSlice of pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.validation import formats
from kubedra.validation.context import Context
from kubedra.validation.device import has_list_attribute, validate_counters, validate_device
from kubedra.validation.lists import check_set
from kubedra.validation.metadata import IMMUTABLE
from kubedra.validation.node_selector import validate_node_selector

Tree = dict[str, Any]

DEVICES_MAX = 128
DEVICES_MAX_ADVANCED = 64
COUNTER_SETS_MAX = 8
SKIP_OPERATIONS = ("*", "NodePrepareResources", "NodeUnprepareResources")

_ONE_NODE_FIELD = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_UNSET_OR_TRUE = "must be either unset or set to true"


def validate(tree: Tree, context: Context) -> list[FieldError]:
    """Check a new slice."""
    return _validate_spec(tree.get("spec") or {}, None, context)


def validate_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed slice: driver, pool name and node name stay what they were."""
    return _validate_spec(new.get("spec") or {}, old.get("spec") or {}, context)


def warnings(tree: Tree) -> list[str]:
    """Warn of a driver name that will not be accepted for ever."""
    driver = (tree.get("spec") or {}).get("driver") or ""
    if driver == driver.lower():
        return []
    return [f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase characters']


def validate_skip_operations(operations: Any, path: str) -> list[FieldError]:
    """Check which node operations are skipped: preparing cannot be skipped alone."""

    def check(operation: str, at: str) -> list[FieldError]:
        return [] if operation in SKIP_OPERATIONS else [fields.not_supported(at, operation, SKIP_OPERATIONS)]

    errors = check_set(operations, None, check, path)
    given = set(operations or ())
    if "NodePrepareResources" in given and not given & {"NodeUnprepareResources", "*"}:
        text = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
        errors.append(fields.invalid(path, operations, text))
    return errors


def _validate_spec(spec: Tree, old: Tree | None, context: Context) -> list[FieldError]:
    errors = formats.driver(spec.get("driver") or "", "spec.driver")
    errors.extend(_validate_pool(spec.get("pool") or {}))
    if old is not None:
        errors.extend(_validate_immutable(spec, old))
    errors.extend(_validate_node(spec))
    devices, counters = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and counters is not None:
        errors.append(fields.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    before = {device.get("name"): device for device in (old or {}).get("devices") or ()}
    per_device_node = bool(spec.get("perDeviceNodeSelection"))

    same_selection = bool((old or {}).get("perDeviceNodeSelection")) == per_device_node

    def check_device(device: Tree, path: str) -> list[FieldError]:
        known = before.get(device.get("name"))
        if known is not None and same_selection and known == device:
            return []
        return validate_device(device, known, path, per_device_node=per_device_node, context=context)

    limit = DEVICES_MAX_ADVANCED if _is_advanced(devices or ()) else DEVICES_MAX
    errors.extend(check_set(devices, limit, check_device, "spec.devices", key=_name))
    errors.extend(check_set(counters, COUNTER_SETS_MAX, _validate_counter_set, "spec.sharedCounters", key=_name))
    errors.extend(_validate_partition_type(spec))
    errors.extend(validate_skip_operations(spec.get("skipNodeOperations"), "spec.skipNodeOperations"))
    return errors


def _name(item: Tree) -> str:
    return item.get("name") or ""


def _validate_pool(pool: Tree) -> list[FieldError]:
    errors = formats.pool(pool.get("name") or "", "spec.pool.name")
    count = pool.get("resourceSliceCount") or 0
    if count <= 0:
        errors.append(fields.invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    generation = pool.get("generation") or 0
    if generation < 0:
        text = "must be greater than or equal to zero"
        errors.append(fields.invalid("spec.pool.generation", generation, text))
    return errors


def _validate_immutable(spec: Tree, old: Tree) -> list[FieldError]:
    pool, old_pool = spec.get("pool") or {}, old.get("pool") or {}
    changes = (
        ("spec.pool.name", pool.get("name") or "", old_pool.get("name") or ""),
        ("spec.driver", spec.get("driver") or "", old.get("driver") or ""),
        ("spec.nodeName", spec.get("nodeName"), old.get("nodeName")),
    )
    return [fields.invalid(path, value, IMMUTABLE) for path, value, before in changes if value != before]


def _validate_node(spec: Tree) -> list[FieldError]:
    errors: list[FieldError] = []
    given: list[str] = []
    node = spec.get("nodeName")
    if node:
        given.append("`nodeName`")
        errors.extend(formats.node_name(node, "spec.nodeName"))
    elif node is not None:
        text = "must be either unset or set to a non-empty string"
        errors.append(fields.invalid("spec.nodeName", node, text))
    selector = spec.get("nodeSelector")
    if selector is not None:
        given.append("`nodeSelector`")
        errors.extend(validate_node_selector(selector, "spec.nodeSelector"))
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            text = "must have exactly one node selector term"
            errors.append(fields.invalid("spec.nodeSelector.nodeSelectorTerms", terms, text))
    for name in ("allNodes", "perDeviceNodeSelection"):
        value = spec.get(name)
        if value:
            given.append(f"`{name}`")
        elif value is not None:
            errors.append(fields.invalid(f"spec.{name}", value, _UNSET_OR_TRUE))
    if not given:
        errors.append(fields.required("spec", _ONE_NODE_FIELD))
    elif len(given) > 1:
        shown = "{" + ", ".join(given) + "}"
        errors.append(fields.invalid("spec", shown, f"{_ONE_NODE_FIELD}, but multiple fields are set"))
    return errors


def _is_advanced(devices: Any) -> bool:
    """Tell whether any device uses what makes devices large; then fewer fit into a slice."""
    return any(
        device.get("taints") or device.get("consumesCounters") or has_list_attribute(device) for device in devices
    )


def _validate_counter_set(counter_set: Tree, path: str) -> list[FieldError]:
    errors = formats.required_label(counter_set.get("name") or "", f"{path}.name")
    errors.extend(validate_counters(counter_set.get("counters"), f"{path}.counters"))
    return errors


def _validate_partition_type(spec: Tree) -> list[FieldError]:
    """Check that every device that consumes counters has the attribute that names its partition type."""
    name = spec.get("partitionTypeAttribute")
    if name is None:
        return []
    path = "spec.partitionTypeAttribute"
    devices = spec.get("devices") or ()
    if not any(device.get("consumesCounters") for device in devices):
        text = "may only be set on a slice which declares devices that consume counters"
        return [fields.invalid(path, name, text), *formats.fully_qualified(name, path)]
    faults = formats.fully_qualified(name, path)
    if faults:
        return faults
    domain, _, bare = name.partition("/")
    errors: list[FieldError] = []
    for index, device in enumerate(devices):
        if not device.get("consumesCounters"):
            continue
        at = f"spec.devices[{index}].attributes[{name}]"
        attributes = device.get("attributes") or {}
        attribute = attributes.get(name)
        if attribute is None and domain == spec.get("driver"):
            attribute = attributes.get(bare)
        if attribute is None:
            text = "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"
            errors.append(fields.required(at, text))
        elif attribute.get("string") is None:
            text = "must be a string value because `partitionTypeAttribute` names this attribute"
            errors.append(fields.invalid(at, attribute, text))
    return errors
