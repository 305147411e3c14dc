"""Dropping fields of disabled features from resource.k8s.io objects.

A field whose gate is off is silently removed, unless the stored object already used the feature: then it stays, so
that switching a gate off never breaks an update of something unrelated. Whoever writes such a field must look at
what was stored.

Upstream counterpart: dropDisabled* in pkg/registry/resource/*/strategy.go and resourceclaimspec.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubedra.base.features import FeatureGates

Tree = dict[str, Any]

_LIST_VALUES = ("bools", "ints", "strings", "versions")
_NODE_FIELDS = ("nodeName", "nodeSelector", "allNodes")
_BINDING = ("bindsToNode", "bindingConditions", "bindingFailureConditions")


def drop_from_claim_spec(spec: Tree, old: Tree | None, features: FeatureGates) -> None:
    """Drop from a claim spec, in place; `old` is the stored spec."""
    old = old or {}
    if not features.enabled("DRAPrioritizedList") and not any(
        request.get("firstAvailable") for request in _requests(old)
    ):
        for request in _requests(spec):
            request.pop("firstAvailable", None)
    for gate, name in (
        ("DRADeviceTaints", "tolerations"),
        ("DRAAdminAccess", "adminAccess"),
        ("DRAConsumableCapacity", "capacity"),
        ("DRADerivedAttributes", "derivedAttributes"),
    ):
        if not features.enabled(gate) and not _used(_details(old), name):
            for details in _details(spec):
                details.pop(name, None)
    if not features.enabled("DRAConsumableCapacity") and not _used(_constraints(old), "distinctAttribute"):
        for constraint in _constraints(spec):
            constraint.pop("distinctAttribute", None)


def drop_from_claim_status(status: Tree, old: Tree | None, features: FeatureGates) -> None:
    """Drop from a claim's status, in place; `old` is the whole stored claim."""
    before = (old or {}).get("status") or {}
    spec = (old or {}).get("spec") or {}
    if not features.enabled("DRAResourceClaimDeviceStatus") and not before.get("devices"):
        status.pop("devices", None)
    if not features.enabled("DRAAdminAccess") and not (
        _used(_details(spec), "adminAccess") or _used(_results(before), "adminAccess")
    ):
        _pop_all(_results(status), "adminAccess")
    if not features.enabled("DRAConsumableCapacity") and not (
        _used(_details(spec), "capacity")
        or _used(_constraints(spec), "distinctAttribute")
        or _used(_results(before), "shareID")
        or _used(_results(before), "consumedCapacity")
    ):
        _pop_all(_results(status), "shareID", "consumedCapacity")
        _pop_all(_objects(status.get("devices")), "shareID")
    if not _binding_enabled(features) and not (
        _used(_results(before), "bindingConditions") or _used(_results(before), "bindingFailureConditions")
    ):
        _pop_all(_results(status), "bindingConditions", "bindingFailureConditions")
        if isinstance(status.get("allocation"), dict):
            status["allocation"].pop("allocationTimestamp", None)
    if not features.enabled("DRAOptionalNodeOperations") and not _used(_results(before), "skipNodeOperations"):
        _pop_all(_results(status), "skipNodeOperations")


def drop_from_class_spec(spec: Tree, old: Tree | None, features: FeatureGates) -> None:
    """Drop from a class spec, in place."""
    if not features.enabled("DRAExtendedResource") and (old or {}).get("extendedResourceName") is None:
        spec.pop("extendedResourceName", None)


def drop_from_pool_request_spec(spec: Tree, old: Tree | None, features: FeatureGates) -> None:
    """Drop from the spec of a pool status request, in place."""
    name = "defaultPartitionTypeAttribute"
    if not features.enabled("DRAPartitionableDevicesType") and (old or {}).get(name) is None:
        spec.pop(name, None)


def drop_from_slice_spec(spec: Tree, old: Tree | None, features: FeatureGates) -> None:
    """Drop from a slice spec, in place."""
    old = old or {}
    if not features.enabled("DRADeviceTaints") and not _used(_devices(old), "taints"):
        _pop_all(_devices(spec), "taints")
    if not features.enabled("DRAPartitionableDevices") and not _uses_partitions(old):
        spec.pop("sharedCounters", None)
        spec.pop("perDeviceNodeSelection", None)
        _pop_all(_devices(spec), "consumesCounters", *_NODE_FIELDS)
    if not _binding_enabled(features) and not any(_used(_devices(old), name) for name in _BINDING):
        _pop_all(_devices(spec), *_BINDING)
    if not features.enabled("DRAConsumableCapacity") and not (
        _used(_devices(old), "allowMultipleAllocations") or _used(_capacities(old), "requestPolicy")
    ):
        _pop_all(_devices(spec), "allowMultipleAllocations")
        _pop_all(_capacities(spec), "requestPolicy")
    if not features.enabled("DRAListTypeAttributes") and not any(
        attribute.get(name) is not None for attribute in _attributes(old) for name in _LIST_VALUES
    ):
        _pop_all(_attributes(spec), *_LIST_VALUES)
    if not features.enabled("DRANodeAllocatableResources") and not _used(_devices(old), "nodeAllocatableResources"):
        _pop_all(_devices(spec), "nodeAllocatableResources")
    if not features.enabled("DRADeviceCompatibilityGroups") and not _used(_consumptions(old), "compatibilityGroups"):
        _pop_all(_consumptions(spec), "compatibilityGroups")
    for gate, name in (
        ("DRAOptionalNodeOperations", "skipNodeOperations"),
        ("DRAPartitionableDevicesType", "partitionTypeAttribute"),
    ):
        if not features.enabled(gate) and not old.get(name):
            spec.pop(name, None)


def _binding_enabled(features: FeatureGates) -> bool:
    return features.enabled("DRADeviceBindingConditions") and features.enabled("DRAResourceClaimDeviceStatus")


def _uses_partitions(spec: Tree) -> bool:
    if spec.get("sharedCounters") or spec.get("perDeviceNodeSelection") is not None:
        return True
    return any(_used(_devices(spec), name) for name in ("consumesCounters", *_NODE_FIELDS))


def _used(objects: Iterator[Tree], name: str) -> bool:
    """Tell whether any object has a member; `false` counts as had, an empty list does not."""
    return any(item.get(name) not in (None, [], {}) for item in objects)


def _pop_all(objects: Iterator[Tree], *names: str) -> None:
    for item in objects:
        for name in names:
            item.pop(name, None)


def _objects(value: Any) -> Iterator[Tree]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def _values(value: Any) -> Iterator[Tree]:
    if isinstance(value, dict):
        yield from (item for item in value.values() if isinstance(item, dict))


def _requests(spec: Tree) -> Iterator[Tree]:
    return _objects((spec.get("devices") or {}).get("requests"))


def _constraints(spec: Tree) -> Iterator[Tree]:
    return _objects((spec.get("devices") or {}).get("constraints"))


def _details(spec: Tree) -> Iterator[Tree]:
    """Walk the exact requests and the alternatives of a claim."""
    for request in _requests(spec):
        if isinstance(request.get("exactly"), dict):
            yield request["exactly"]
        yield from _objects(request.get("firstAvailable"))


def _results(status: Tree) -> Iterator[Tree]:
    return _objects(((status.get("allocation") or {}).get("devices") or {}).get("results"))


def _devices(spec: Tree) -> Iterator[Tree]:
    return _objects(spec.get("devices"))


def _attributes(spec: Tree) -> Iterator[Tree]:
    for device in _devices(spec):
        yield from _values(device.get("attributes"))


def _capacities(spec: Tree) -> Iterator[Tree]:
    for device in _devices(spec):
        yield from _values(device.get("capacity"))


def _consumptions(spec: Tree) -> Iterator[Tree]:
    for device in _devices(spec):
        yield from _objects(device.get("consumesCounters"))
