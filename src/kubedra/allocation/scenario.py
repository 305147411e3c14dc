"""Allocation scenarios: a cluster and the claims of a pod as one JSON tree, and the answer as another.

This is the form of ``kubedra allocate --jsonl``: plain resource.k8s.io/v1 objects, nothing invented. The tests replay
recorded scenarios through it, and people test their claims with it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.features import Features
from kubedra.allocation.inventory import Inventory
from kubedra.allocation.ledger import Entry, Ledger
from kubedra.allocation.outcomes import Allocated, AllocationError, Outcome
from kubedra.allocation.selection import Compile
from kubedra.api import kinds
from kubedra.api.canonical import normalise
from kubedra.api.codec import from_tree, to_tree
from kubedra.api.core_v1 import Node
from kubedra.api.resource_v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kubedra.base.quantity import Quantity, QuantityError

T = TypeVar("T")
EngineFor = Callable[[Features], Compile]


class ScenarioError(ValueError):
    """A scenario that can't be read; the message says where."""


def load(scenario: Mapping[str, Any], features: Features, compile_: Compile) -> tuple[Inventory, Ledger]:
    """Build the index that a scenario describes."""
    inventory = Inventory(compile_, features)
    ledger = Ledger(features.consumable_capacity)
    for rule in _objects(scenario, "taintRules", DeviceTaintRule):
        inventory.update_taint_rule(rule)
    for node in _objects(scenario, "nodes", Node):
        inventory.update_node(node)
    for device_class in _objects(scenario, "classes", DeviceClass):
        inventory.update_class(device_class)
    for number, slice_ in enumerate(_objects(scenario, "slices", ResourceSlice)):
        # Hand-written scenarios may leave names out or use one twice.
        name = slice_.metadata.name
        inventory.update_slice(slice_, f"{name}#{number}" if not name or name in inventory.slices else name)
    for number, claim in enumerate(_objects(scenario, "allocated", ResourceClaim)):
        # Scenarios needn't give names or uids.
        ledger.assume(f"allocated-{number}", claim.status.allocation) if claim.status.allocation else None
    try:
        _extra(scenario.get("allocatedState") or {}, ledger, features)
    except (AttributeError, TypeError, QuantityError) as error:
        raise ScenarioError(f"allocatedState: {error}") from None
    return inventory, ledger


def claims_of(scenario: Mapping[str, Any]) -> list[ResourceClaim]:
    """The claims to allocate, with API defaults where the scenario asks for them."""
    trees = scenario.get("claims") or []
    if scenario.get("defaults"):
        trees = [with_defaults(tree) for tree in trees]
    return [_object(tree, f"claims[{i}]", ResourceClaim) for i, tree in enumerate(trees)]


def run(
    scenario: Mapping[str, Any], version: str, engine: EngineFor, *, plain: bool = False, budget: int | None = None
) -> dict[str, Any]:
    """Answer a scenario. Raises ScenarioError for one that can't be read."""
    features = Features.everything(version, scenario.get("features") or {})
    inventory, ledger = load(scenario, features, engine(features))
    allocator = Allocator(inventory, ledger, plain=plain)
    if budget is not None:
        allocator.budget = budget
    pod = allocator.prepare(claims_of(scenario))
    wanted = scenario.get("node") or "*"
    results = []
    for node in inventory.node_names() if wanted == "*" else (wanted,):
        outcome = allocator.allocate(node, pod)
        results.append(as_tree(node, outcome))
        if scenario.get("stopAtFirst") and isinstance(outcome, Allocated):
            break
    return {"name": scenario.get("name", ""), "results": results}


def as_tree(node: str, outcome: Outcome) -> dict[str, Any]:
    """An outcome in the form of the scenario's results."""
    tree: dict[str, Any] = {"node": node, "allocations": None}
    if isinstance(outcome, Allocated):
        tree["allocations"] = [to_tree(allocation) for allocation in outcome.allocations]
    elif isinstance(outcome, AllocationError):
        tree["error"] = outcome.message
        if outcome.node_only:
            tree["errorOnNode"] = True
    return tree


def with_defaults(claim: Mapping[str, Any]) -> dict[str, Any]:
    """A claim with the defaults the API server would set: ExactCount, one device. What is no claim stays as it is."""
    spec = claim.get("spec")
    devices = spec.get("devices") if isinstance(spec, dict) else None
    wanted = devices.get("requests") if isinstance(devices, dict) else None
    if not wanted or not isinstance(wanted, list) or not isinstance(spec, dict) or not isinstance(devices, dict):
        return dict(claim)
    requests = [_default_request(request) for request in wanted]
    return {**claim, "spec": {**spec, "devices": {**devices, "requests": requests}}}


def _default_request(request: Any) -> Any:
    if not isinstance(request, dict):
        return request
    request = dict(request)
    if request.get("exactly") is not None:
        request["exactly"] = _default_count(request["exactly"])
    if isinstance(request.get("firstAvailable"), list):
        request["firstAvailable"] = [_default_count(sub) for sub in request["firstAvailable"]]
    return request


def _default_count(request: Any) -> Any:
    if not isinstance(request, dict):
        return request
    request = dict(request)
    if not request.get("allocationMode"):
        request["allocationMode"] = "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1
    return request


def read(line: bytes | str) -> dict[str, Any]:
    """A scenario from its JSON text, the objects of the cluster already decoded. Raises ScenarioError."""
    try:
        scenario = _READER.decode(line)
        fields = msgspec.structs.asdict(scenario)
    except RecursionError:
        raise ScenarioError("nested too deeply") from None
    except msgspec.ValidationError:
        # Nulls and the like; what is really wrong is found object by object.
        try:
            fields = msgspec.json.decode(line)
        except RecursionError:
            raise ScenarioError("nested too deeply") from None
        except msgspec.DecodeError as error:
            raise ScenarioError(f"not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise ScenarioError("a scenario is a JSON object") from None
    except msgspec.DecodeError as error:
        raise ScenarioError(f"not JSON: {error}") from None
    _check_shape(fields)
    return fields


def _check_shape(fields: Mapping[str, Any]) -> None:
    """Refuse values of another kind than the field's; null counts as absent."""
    for field, (kind, noun) in _SHAPES.items():
        value = fields.get(field)
        if value is not None and not isinstance(value, kind):
            raise ScenarioError(f"{field}: {noun} is expected here")
    for name, value in (fields.get("features") or {}).items():
        if not isinstance(value, bool):
            raise ScenarioError(f"features: {name}: true or false is expected here")
    for number, claim in enumerate(fields.get("claims") or []):
        if not isinstance(claim, dict):
            raise ScenarioError(f"claims[{number}]: an object is expected here")


class _Decoded(msgspec.Struct):
    name: Any = ""
    nodes: list[Node] | None = None
    classes: list[DeviceClass] | None = None
    slices: list[ResourceSlice] | None = None
    taintRules: list[DeviceTaintRule] | None = None
    allocated: list[ResourceClaim] | None = None
    claims: list[dict[str, Any]] | None = None
    node: Any = None
    features: dict[str, bool] | None = None
    stopAtFirst: bool | None = None
    allocatedState: dict[str, Any] | None = None
    defaults: bool | None = None


_DEFINITIONS: dict[type[Any], str] = {
    kind.type: kind.definition
    for kind in (kinds.NODE, kinds.DEVICE_CLASS, kinds.RESOURCE_SLICE, kinds.RESOURCE_CLAIM, kinds.DEVICE_TAINT_RULE)
}
_READER = msgspec.json.Decoder(_Decoded)
_SHAPES: dict[str, tuple[type[Any], str]] = {
    **dict.fromkeys(("nodes", "classes", "slices", "taintRules", "allocated", "claims"), (list, "a list")),
    **dict.fromkeys(("features", "allocatedState"), (dict, "an object")),
    **dict.fromkeys(("stopAtFirst", "defaults"), (bool, "true or false")),
    "node": (str, "the name of a node, or *,"),
    "name": (str, "a text"),
}


def _objects(scenario: Mapping[str, Any], field: str, kind: type[T]) -> Iterable[T]:
    for number, tree in enumerate(scenario.get(field) or []):
        yield _object(tree, f"{field}[{number}]", kind)


def _object(tree: Any, where: str, kind: type[T]) -> T:
    if isinstance(tree, kind):
        return tree
    try:
        return from_tree(kind, tree)
    except msgspec.ValidationError:
        pass
    try:
        # People write quantities as numbers, too.
        return from_tree(kind, normalise(_DEFINITIONS[kind], copy.deepcopy(tree)) if isinstance(tree, dict) else tree)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{where}: {error}") from None


def _extra(state: Mapping[str, Any], ledger: Ledger, features: Features) -> None:
    """Extra state: devices taken, shares held, capacity consumed (beyond what the allocated claims say)."""
    for number, text in enumerate(state.get("devices") or []):
        ledger.set_entries(f"state-device-{number}", [Entry(_device(text))])
    consumed: dict[tuple[str, str, str], tuple[tuple[str, int], ...]] = {
        _device(text): tuple((key, Quantity.parse(value).nano) for key, value in amounts.items())
        for text, amounts in (state.get("capacity") or {}).items()
    }
    for number, text in enumerate(state.get("shared") or []):
        device_text, _, share = text.rpartition("/")
        device = _device(device_text)
        if features.consumable_capacity:
            ledger.set_entries(f"state-share-{number}", [Entry(device, share, consumed.pop(device, ()))])
        else:
            ledger.set_entries(f"state-share-{number}", [Entry(device)])
    if features.consumable_capacity:
        for number, (device, amounts) in enumerate(consumed.items()):
            ledger.set_entries(f"state-capacity-{number}", [Entry(device, "", amounts)])


def _device(text: str) -> tuple[str, str, str]:
    # Pool names may have slashes, driver and device names never do.
    driver, _, rest = text.partition("/")
    pool, _, device = rest.rpartition("/")
    if not driver or not pool or not device:
        raise ScenarioError(f"allocatedState: {text!r} is not driver/pool/device")
    return driver, pool, device
