"""The one spelling of an object: what upstream would print after reading it.

Clients write the same object in many ways: nulls, empty lists, `1024Mi` for `1Gi`, times with an offset. What is
stored and sent is one of them, so that equal objects have equal bytes, an update that changes nothing is seen to
change nothing, and other clients find the members they always find (`status: {}`, `requests: null`).

Two steps, because validation stands between them: `normalise` respells values without losing what was given (an
empty list that may not be there is still there to be refused); `canonicalize` then drops what is empty and adds
what is always printed. Both work by the schema table, in place, on a tree that the caller owns.

The schema cannot tell Go's pointers from plain values, so the tables below name the exceptions. Upstream
counterpart: the omitempty tags of k8s.io/api and the marshalers of Quantity and Time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec

from kubedra.api import schema
from kubedra.base.quantity import Quantity, QuantityError

Tree = dict[str, Any]

_API = "io.k8s.api."

# Struct members that are printed even when empty, by the end of the definition's name.
_ALWAYS_STRUCT: dict[str, tuple[str, ...]] = {
    "apps.v1.DaemonSet": ("spec", "status"),
    "apps.v1.DaemonSetSpec": ("template", "updateStrategy"),
    "apps.v1.Deployment": ("spec", "status"),
    "apps.v1.DeploymentSpec": ("strategy", "template"),
    "apps.v1.ReplicaSet": ("spec", "status"),
    "apps.v1.ReplicaSetSpec": ("template",),
    "apps.v1.StatefulSet": ("spec", "status"),
    "apps.v1.StatefulSetSpec": ("template", "updateStrategy"),
    "batch.v1.CronJob": ("spec", "status"),
    "batch.v1.CronJobSpec": ("jobTemplate",),
    "batch.v1.Job": ("spec", "status"),
    "batch.v1.JobSpec": ("template",),
    "batch.v1.JobTemplateSpec": ("metadata", "spec"),
    "coordination.v1.Lease": ("spec",),
    "core.v1.Container": ("resources",),
    "core.v1.ContainerStatus": ("lastState", "state"),
    "core.v1.EphemeralContainer": ("resources",),
    "core.v1.Event": ("source",),
    "core.v1.Namespace": ("spec", "status"),
    "core.v1.Node": ("spec", "status"),
    "core.v1.NodeDaemonEndpoints": ("kubeletEndpoint",),
    "core.v1.NodeStatus": ("daemonEndpoints", "nodeInfo"),
    "core.v1.PersistentVolume": ("spec", "status"),
    "core.v1.PersistentVolumeClaim": ("spec", "status"),
    "core.v1.PersistentVolumeClaimSpec": ("resources",),
    "core.v1.PersistentVolumeClaimTemplate": ("spec",),
    "core.v1.Pod": ("spec", "status"),
    "core.v1.PodTemplate": ("template",),
    "core.v1.PodTemplateSpec": ("metadata", "spec"),
    "core.v1.ReplicationController": ("spec", "status"),
    "core.v1.ResourceQuota": ("spec", "status"),
    "core.v1.Service": ("spec", "status"),
    "core.v1.ServiceStatus": ("loadBalancer",),
    "networking.v1.Ingress": ("spec", "status"),
    "networking.v1.IngressStatus": ("loadBalancer",),
    "networking.v1.NetworkPolicy": ("spec",),
    "policy.v1.PodDisruptionBudget": ("spec", "status"),
    "resource.AllocationResult": ("devices",),
    "resource.DeviceClass": ("spec",),
    "resource.DeviceTaintRule": ("spec", "status"),
    "resource.DeviceTaintRuleSpec": ("taint",),
    "resource.ResourceClaim": ("spec", "status"),
    "resource.ResourceClaimSpec": ("devices",),
    "resource.ResourceClaimTemplate": ("spec",),
    "resource.ResourceClaimTemplateSpec": ("metadata", "spec"),
    "resource.ResourcePoolStatusRequest": ("spec",),
    "resource.ResourceSlice": ("spec",),
    "resource.ResourceSliceSpec": ("pool",),
}

# Members that are printed as null when there is nothing.
_ALWAYS_NULL: dict[str, tuple[str, ...]] = {
    "rbac.v1.ClusterRole": ("rules",),
    "rbac.v1.Role": ("rules",),
    "resource.AllocatedDeviceStatus": ("conditions",),
    "resource.CapacityRequestPolicy": ("default",),
    "resource.DeviceClaim": ("requests",),
}

# Scalars that are printed even when they are empty or zero, although the schema does not require them.
_ALWAYS_SCALAR: dict[str, tuple[str, ...]] = {
    "apps.v1.StatefulSetStatus": ("availableReplicas",),
    "core.v1.Event": ("reportingComponent", "reportingInstance"),
    "policy.v1.PodDisruptionBudgetStatus": ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"),
}

# Strings behind a pointer: empty is a value of its own and stays.
_POINTER_STRINGS: dict[str, tuple[str, ...]] = {
    "apps.v1.ControllerRevision": (),
    "core.v1.GRPCAction": ("service",),
    "core.v1.HostPathVolumeSource": ("type",),
    "core.v1.ObjectReference": (),
    "core.v1.PersistentVolumeClaimSpec": ("storageClassName", "volumeAttributesClassName"),
    "core.v1.TypedLocalObjectReference": ("apiGroup",),
    "core.v1.TypedObjectReference": ("apiGroup", "namespace"),
    "coordination.v1.LeaseSpec": ("holderIdentity", "preferredHolder", "strategy"),
    "discovery.v1.EndpointPort": ("appProtocol", "name", "protocol"),
    "networking.v1.IngressSpec": ("ingressClassName",),
    "resource.Device": ("nodeName",),
    "resource.BasicDevice": ("nodeName",),
    "resource.DeviceAttribute": ("string", "version"),
    "resource.DeviceConstraint": ("distinctAttribute", "matchAttribute"),
    "resource.DeviceTaintSelector": ("device", "driver", "pool"),
    "resource.ResourceSliceSpec": ("nodeName", "partitionTypeAttribute"),
    "storage.v1.StorageClass": (),
}

# Numbers that are plain values: zero is the same as nothing.
_ZERO_IS_NOTHING: dict[str, tuple[str, ...]] = {
    "apps.v1.DaemonSetStatus": ("numberAvailable", "numberUnavailable", "observedGeneration", "updatedNumberScheduled"),
    "apps.v1.DeploymentStatus": (
        "availableReplicas",
        "observedGeneration",
        "readyReplicas",
        "replicas",
        "unavailableReplicas",
        "updatedReplicas",
    ),
    "apps.v1.ReplicaSetStatus": ("availableReplicas", "fullyLabeledReplicas", "observedGeneration", "readyReplicas"),
    "apps.v1.StatefulSetStatus": ("currentReplicas", "observedGeneration", "readyReplicas", "updatedReplicas"),
    "batch.v1.JobStatus": ("active", "failed", "succeeded"),
    "core.v1.ContainerPort": ("hostPort",),
    "core.v1.Event": ("count",),
    "core.v1.PodCondition": ("observedGeneration",),
    "core.v1.PodStatus": ("observedGeneration",),
    "policy.v1.PodDisruptionBudgetStatus": ("observedGeneration",),
    "resource.DeviceRequest": ("count",),
    "resource.DeviceSubRequest": ("count",),
    "resource.ExactDeviceRequest": ("count",),
    "meta.v1.Condition": ("observedGeneration",),
    "meta.v1.ObjectMeta": ("generation",),
}

_VERSIONED_RESOURCE = re.compile(r"^resource\.v1(?:alpha|beta)?\d*\.")
_UTC_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_UTC_MICROS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


class _Plan(msgspec.Struct):
    """What to do with each member of one definition."""

    nested: dict[str, Callable[[Any, bool], Any]]
    lists: frozenset[str]
    maps: frozenset[str]
    kept_strings: frozenset[str]
    known: frozenset[str]
    zero_is_nothing: frozenset[str]
    always: tuple[tuple[str, Callable[[], Any]], ...]


def normalise(definition: str, tree: Tree) -> Tree:
    """Respell the values of an object in place: no nulls, canonical quantities and times. Returns the tree.

    What cannot be read as a quantity or a time stays as it is; decoding has to refuse it.
    """
    _walk(tree, _plan(definition), False)
    return tree


def canonicalize(definition: str, tree: Tree) -> Tree:
    """Bring a valid object into its printed form in place: empty optional members go, permanent ones come."""
    _walk(tree, _plan(definition), True)
    return tree


def same_meaning(one: Any, other: Any) -> bool:
    """Compare two values as upstream compares objects: what is empty or zero equals what is not there."""
    if one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same_meaning(one.get(name), other.get(name)) for name in {*one, *other})
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_meaning, one, other))
    if one is None or other is None:
        present = other if one is None else one
        return not present or (isinstance(present, dict) and all(same_meaning(None, item) for item in present.values()))
    return False


def canonical_quantity(value: Any) -> Any:
    """Respell a quantity; what is none comes back unchanged."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        return str(Quantity.parse(value))
    except QuantityError:
        return value


def canonical_time(value: Any) -> Any:
    """Respell a time in UTC with whole seconds; what is none comes back unchanged."""
    if not isinstance(value, str) or _UTC_SECONDS.fullmatch(value):
        return value
    moment = _read_time(value)
    return value if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def canonical_micro_time(value: Any) -> Any:
    """Respell a time in UTC with six digits after the second; what is none comes back unchanged."""
    if not isinstance(value, str) or _UTC_MICROS.fullmatch(value):
        return value
    moment = _read_time(value)
    return value if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _read_time(value: str) -> datetime | None:
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except ValueError:
        return None


def _walk(tree: Tree, plan: _Plan, finish: bool) -> None:
    nested = plan.nested
    gone: list[str] = []
    changed: list[tuple[str, Any]] = []
    for name, value in tree.items():
        if value is None:
            gone.append(name)
            continue
        if finish and not value and _is_nothing(name, value, plan):
            gone.append(name)
            continue
        handle = nested.get(name)
        if handle is not None:
            result = handle(value, finish)
            if result is not value:
                changed.append((name, result))
    for name in gone:
        del tree[name]
    for name, value in changed:
        tree[name] = value
    if finish:
        for name, make in plan.always:
            if name not in tree:
                tree[name] = make()


def _is_nothing(name: str, value: Any, plan: _Plan) -> bool:
    """Tell whether an empty value of this member is the same as leaving it out."""
    if isinstance(value, str):
        return name not in plan.kept_strings and name in plan.known
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return name in plan.zero_is_nothing
    return name in plan.lists or name in plan.maps


@cache
def _plan(name: str) -> _Plan:
    definition = schema.definition(name)
    short = _short(name)
    nested: dict[str, Callable[[Any, bool], Any]] = {}
    lists: set[str] = set()
    maps: set[str] = set()
    always: list[tuple[str, Callable[[], Any]]] = []
    nulls = _ALWAYS_NULL.get(short, ())
    structs = _ALWAYS_STRUCT.get(short, ())
    scalars = _ALWAYS_SCALAR.get(short, ())
    for member, field in definition.fields.items():
        handle = _handler(field)
        if handle is not None:
            nested[member] = handle
        required = member in definition.required
        if field.type == "array" and not required:
            lists.add(member)
        if field.type == "object" and not field.ref and not required:
            maps.add(member)
        if member in nulls:
            always.append((member, _null))
        elif member in structs or (required and field.type == "object" and field.ref and member != "metadata"):
            always.append((member, _struct(field.ref)))
        elif (required or member in scalars) and member not in ("apiVersion", "kind"):
            always.append((member, _ZEROS.get(field.type, _null)))
    if "metadata" in definition.fields and definition.gvk:
        always.append(("metadata", dict))
    kept = set(_POINTER_STRINGS.get(short, ())) | set(definition.required) | set(scalars)
    return _Plan(
        nested=nested,
        lists=frozenset(lists),
        maps=frozenset(maps),
        kept_strings=frozenset(kept),
        known=frozenset(definition.fields),
        zero_is_nothing=frozenset(_ZERO_IS_NOTHING.get(short, ())),
        always=tuple(always),
    )


def _short(name: str) -> str:
    """Shorten a definition's name; the versions of resource.k8s.io share their rows."""
    if name.startswith(_API):
        return _VERSIONED_RESOURCE.sub("resource.", name.removeprefix(_API))
    return name.removeprefix("io.k8s.apimachinery.pkg.apis.")


def _null() -> None:
    return None


_ZEROS: dict[str, Callable[[], Any]] = {
    "string": str,
    "integer": int,
    "number": int,
    "boolean": bool,
    "quantity": lambda: "0",
}


def _struct(ref: str) -> Callable[[], Tree]:
    def make() -> Tree:
        return canonicalize(ref, {})

    return make


def _handler(field: schema.Field) -> Callable[[Any, bool], Any] | None:
    """Choose what happens to a value of a field; None where it is left alone."""
    if field.type == "quantity":
        return lambda value, _finish: canonical_quantity(value)
    if field.type == "time":
        return lambda value, _finish: canonical_time(value)
    if field.type == "microtime":
        return lambda value, _finish: canonical_micro_time(value)
    if field.type == "array" and field.items is not None:
        return _list_handler(field.items)
    if field.type == "object":
        if field.ref:
            return _struct_handler(field.ref)
        if field.values is not None:
            return _map_handler(field.values)
    return None


def _struct_handler(ref: str) -> Callable[[Any, bool], Any]:
    def handle(value: Any, finish: bool) -> Any:
        if isinstance(value, dict):
            _walk(value, _plan(ref), finish)
        return value

    return handle


def _list_handler(items: schema.Field) -> Callable[[Any, bool], Any] | None:
    handle_item = _handler(items)
    if handle_item is None:
        return None

    def handle(value: Any, finish: bool) -> Any:
        if isinstance(value, list):
            for index, item in enumerate(value):
                # A null in a list of objects is an empty object; it cannot be dropped without moving the others.
                present = {} if item is None and items.ref else item
                result = handle_item(present, finish)
                if result is not item:
                    value[index] = result
        return value

    return handle


def _map_handler(values: schema.Field) -> Callable[[Any, bool], Any] | None:
    handle_value = _handler(values)
    if handle_value is None:
        return None

    def handle(value: Any, finish: bool) -> Any:
        if isinstance(value, dict):
            for name, item in value.items():
                present = {} if item is None and values.ref else item
                result = handle_value(present, finish)
                if result is not item:
                    value[name] = result
        return value

    return handle
