"""The checker's first part: does one allocation satisfy its claim?

Everything is looked up again in the API objects. What may legitimately change after the allocation (taints come and
go, more devices appear for an All request) is only checked when ``strict`` says that the allocation is being made now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kubedra.allocation.amounts import needed, offered
from kubedra.allocation.violations import CheckFeatures, Violation
from kubedra.api.core_v1 import Node, NodeSelector
from kubedra.api.resource_v1 import (
    AllocationResult,
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceConstraint,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    DeviceTaintRule,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubedra.base.node_selectors import matches_node_selector

PoolSlices: TypeAlias = tuple[ResourceSlice, ...]
# The value of a derived attribute of a device (of a driver) as a set; raises ValueError when there is none.
Derive: TypeAlias = Callable[[str, Device, str], set[tuple[str, object]]]
_Request: TypeAlias = ExactDeviceRequest | DeviceSubRequest
LIMIT = 32


def newest(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """The slices of the newest generation of a pool."""
    all_slices = list(slices)
    generation = max((slice_.spec.pool.generation for slice_ in all_slices), default=0)
    return [slice_ for slice_ in all_slices if slice_.spec.pool.generation == generation]


def seen_from(slices: PoolSlices, node: Node | None) -> list[ResourceSlice]:
    """The slices of a pool that count on a node: a newer generation that lives on other nodes only does not,
    as long as the node's own slices are a complete pool."""
    if node is None:
        return newest(slices)
    own = newest(slice_ for slice_ in slices if _slice_on_node(slice_, node))
    if own and len(own) == own[0].spec.pool.resource_slice_count:
        return own
    return newest(slices)


def _slice_on_node(slice_: ResourceSlice, node: Node) -> bool:
    if slice_.spec.per_device_node_selection:
        return any(_on_node(slice_, device, node) for device in slice_.spec.devices)
    return _on_node(slice_, Device(), node)


@dataclass(slots=True)
class _Context:
    claim: ResourceClaim
    name: str
    classes: Mapping[str, DeviceClass]
    rules: Sequence[DeviceTaintRule]
    matches: Callable[[str, Device, str], bool]
    features: CheckFeatures
    strict: bool
    found: list[Violation]
    derive: Derive | None = None

    def report(self, code: str, subject: str, detail: str) -> None:
        self.found.append(Violation(code, f"{self.name}, {subject}" if subject else self.name, detail))


def check_claim(
    claim: ResourceClaim,
    allocation: AllocationResult,
    *,
    pools: Mapping[tuple[str, str], PoolSlices],
    all_pools: Callable[[], Sequence[PoolSlices]],
    classes: Mapping[str, DeviceClass],
    rules: Sequence[DeviceTaintRule],
    nodes: Mapping[str, Node],
    node: str,
    strict: bool,
    matches: Callable[[str, Device, str], bool],
    features: CheckFeatures,
    derive: Derive | None = None,
) -> list[Violation]:
    """Check an allocation against its claim. ``node`` is "" when it is not known for which node it was made."""
    name = f"claim {claim.metadata.namespace}/{claim.metadata.name}"
    context = _Context(claim, name, classes, rules, matches, features, strict, [], derive)
    results = allocation.devices.results if allocation.devices is not None else ()
    if len(results) > LIMIT:
        context.report("too-many-devices", "", f"{len(results)} devices")
    requests = _requests(claim)
    by_request: dict[str, list[DeviceRequestAllocationResult]] = {}
    devices: list[tuple[DeviceRequestAllocationResult, ResourceSlice, Device]] = []
    current: dict[tuple[str, str], list[ResourceSlice]] = {}
    published: dict[tuple[str, str], dict[str, tuple[ResourceSlice, Device]]] = {}
    for result in results:
        by_request.setdefault(result.request, []).append(result)
        if result.request not in requests:
            context.report("unknown-request", f"request {result.request}", "the claim has no such request")
            continue
        key = (result.driver, result.pool)
        if key not in current:
            current[key] = seen_from(pools.get(key, ()), nodes.get(node))
            published[key] = {
                device.name: (slice_, device)
                for slice_ in reversed(_own_first(current[key], nodes.get(node)))
                for device in slice_.spec.devices
            }
        place = published[key].get(result.device)
        if place is None:
            if strict:
                context.report("device-unknown", _subject(result), "it is not in the newest slices of its pool")
            continue
        if strict:
            problem = _pool_problem(current[key], nodes.get(node))
            if problem:
                context.report("pool-unusable", _subject(result), problem)
        devices.append((result, *place))
        _check_device(context, requests[result.request], result, *place)
    _check_counts(context, requests, by_request, all_pools, nodes.get(node))
    _check_constraints(context, requests, devices)
    _check_node_selector(context, allocation.node_selector, devices, nodes, node)
    return context.found


def _requests(claim: ResourceClaim) -> dict[str, _Request]:
    requests: dict[str, _Request] = {}
    for request in claim.spec.devices.requests if claim.spec.devices is not None else ():
        if request.exactly is not None:
            requests[request.name] = request.exactly
        for sub in request.first_available:
            requests[f"{request.name}/{sub.name}"] = sub
    return requests


def _subject(result: DeviceRequestAllocationResult) -> str:
    return f"request {result.request}, device {result.driver}/{result.pool}/{result.device}"


def _own_first(slices: Sequence[ResourceSlice], node: Node | None) -> list[ResourceSlice]:
    """The slices in order, those that a node sees before the others."""
    return sorted(slices, key=lambda slice_: node is not None and not _slice_on_node(slice_, node))


def _pool_problem(current: Sequence[ResourceSlice], node: Node | None) -> str:
    # The same name in slices of other nodes is odd, but it does not make the pool unusable here.
    own = [slice_ for slice_ in current if node is None or _slice_on_node(slice_, node)]
    names = [device.name for slice_ in own for device in slice_.spec.devices]
    expected = {slice_.spec.pool.resource_slice_count for slice_ in current}
    if len(current) not in expected:
        return f"{len(current)} slices, {max(expected)} announced"
    if len(set(names)) < len(names):
        return "a device name is used twice"
    return ""


def _check_device(
    context: _Context,
    request: _Request,
    result: DeviceRequestAllocationResult,
    slice_: ResourceSlice,
    device: Device,
) -> None:
    subject = _subject(result)
    device_class = context.classes.get(request.device_class_name)
    if device_class is None:
        if context.strict:
            context.report("class-unknown", f"request {result.request}", request.device_class_name)
        return
    for selector in (*device_class.spec.selectors, *request.selectors):
        expression = selector.cel.expression if selector.cel is not None else ""
        try:
            if not context.matches(expression, device, slice_.spec.driver):
                context.report("selector-not-met", subject, expression)
        except ValueError as error:
            context.report("selector-failed", subject, str(error))
    admin = bool(request.admin_access) if isinstance(request, ExactDeviceRequest) else False
    if admin != bool(result.admin_access):
        context.report("admin-access-differs", subject, f"recorded {bool(result.admin_access)}, requested {admin}")
    if result.tolerations != request.tolerations:
        context.report("tolerations-differ", subject, f"{len(result.tolerations)} recorded")
    if context.strict and context.features.taints:
        _check_taints(context, request.tolerations, result, device, subject)
    _check_capacity(context, request, result, device, subject)


def _check_taints(
    context: _Context,
    tolerations: Sequence[DeviceToleration],
    result: DeviceRequestAllocationResult,
    device: Device,
    subject: str,
) -> None:
    taints = list(device.taints)
    for rule in context.rules if context.features.taint_rules else ():
        wanted = rule.spec.device_selector
        if wanted is not None and all(
            want is None or want == have
            for want, have in (
                (wanted.driver, result.driver),
                (wanted.pool, result.pool),
                (wanted.device, result.device),
            )
        ):
            taints.append(rule.spec.taint)
    for taint in taints:
        if taint.effect not in ("NoSchedule", "NoExecute"):
            continue
        if not any(
            (not t.effect or t.effect == taint.effect)
            and (not t.key or t.key == taint.key)
            and (t.operator == "Exists" or (t.operator in ("", "Equal") and t.value == taint.value))
            for t in tolerations
        ):
            context.report("taint-not-tolerated", subject, f"{taint.key}={taint.value}:{taint.effect}")


def _check_capacity(
    context: _Context, request: _Request, result: DeviceRequestAllocationResult, device: Device, subject: str
) -> None:
    if not context.features.consumable_capacity:
        return
    wanted = dict(request.capacity.requests) if request.capacity is not None else {}
    shared = bool(device.allow_multiple_allocations)
    if shared != (result.share_id is not None):
        code = "share-missing" if shared else "share-unexpected"
        context.report(code, subject, "the device may be shared" if shared else "the device can't be shared")
        return
    for key in wanted.keys() - device.capacity.keys():
        context.report("consumed-capacity-wrong", subject, f"the device has no capacity {key}")
    for key, capacity in device.capacity.items():
        total = offered(capacity.value)
        least = needed(wanted[key]) if key in wanted else None
        if not shared:
            if least is not None and least > total:
                context.report("consumed-capacity-wrong", subject, f"{key}: {least} of {total} requested")
            continue
        policy = capacity.request_policy
        taken = needed(result.consumed_capacity[key]) if key in result.consumed_capacity else None
        if taken is None or taken.nano < 0 or taken > total:
            context.report("consumed-capacity-wrong", subject, f"{key}: {taken} of {total} recorded")
            continue
        default = needed(policy.default) if policy is not None and policy.default is not None else None
        if least is None:
            least = default if default is not None else total
            if taken != least:
                context.report("consumed-capacity-wrong", subject, f"{key}: {taken} recorded instead of {least}")
            continue
        if taken < least:
            context.report("consumed-capacity-wrong", subject, f"{key}: {taken} recorded, {least} requested")
        if policy is None or taken == default:
            continue
        if policy.valid_values and taken not in [needed(value) for value in policy.valid_values]:
            context.report("consumed-capacity-wrong", subject, f"{key}: {taken} is not one of the valid values")
        limits = policy.valid_range
        if limits is not None and (
            (limits.min and taken < needed(limits.min)) or (limits.max and taken > needed(limits.max))
        ):
            context.report("consumed-capacity-wrong", subject, f"{key}: {taken} is outside the valid range")
        if limits is not None and limits.step:
            low, step = needed(limits.min), needed(limits.step)
            # Ranges with fractions are rounded in whole units without the feature: those results fit no grid.
            exact = context.features.fractional_ranges or (low.is_whole and step.is_whole)
            if exact and step.nano > 0 and (taken.nano - low.nano) % step.nano:
                context.report("consumed-capacity-wrong", subject, f"{key}: {taken} is no step of the valid range")


def _check_counts(
    context: _Context,
    requests: Mapping[str, _Request],
    by_request: Mapping[str, Sequence[DeviceRequestAllocationResult]],
    all_pools: Callable[[], Sequence[PoolSlices]],
    node: Node | None,
) -> None:
    for name, results in by_request.items():
        places = [(result.driver, result.pool, result.device) for result in results]
        if len(set(places)) < len(places):
            context.report("device-twice-in-request", f"request {name}", "")
    for request in context.claim.spec.devices.requests if context.claim.spec.devices is not None else ():
        names = [request.name] if request.exactly is not None else []
        names += [f"{request.name}/{sub.name}" for sub in request.first_available]
        used = [name for name in dict.fromkeys(names) if by_request.get(name)]
        if len(used) > 1:
            context.report("mixed-alternatives", f"request {request.name}", ", ".join(used))
            continue
        if not used:
            if not any((requests[name].count or 0) == 0 and requests[name].allocation_mode != "All" for name in names):
                context.report("wrong-count", f"request {request.name}", "it got no device")
            continue
        chosen, got = requests[used[0]], len(by_request[used[0]])
        if chosen.allocation_mode == "All":
            if context.strict and node is not None:
                _check_all(context, used[0], chosen, by_request[used[0]], all_pools(), node)
        elif got != (chosen.count or 0):
            context.report("wrong-count", f"request {used[0]}", f"{got} devices instead of {chosen.count or 0}")


def _check_all(
    context: _Context,
    name: str,
    request: _Request,
    results: Sequence[DeviceRequestAllocationResult],
    all_pools: Sequence[PoolSlices],
    node: Node,
) -> None:
    device_class = context.classes.get(request.device_class_name)
    if device_class is None:
        return
    got = {(result.driver, result.pool, result.device) for result in results}
    wanted = set(request.capacity.requests) if request.capacity is not None else set()
    for slices in all_pools:
        for slice_ in seen_from(slices, node):
            for device in slice_.spec.devices:
                place = (slice_.spec.driver, slice_.spec.pool.name, device.name)
                if place in got or not _on_node(slice_, device, node) or wanted - device.capacity.keys():
                    continue
                if device.allow_multiple_allocations and not context.features.all_counts_full_devices:
                    continue
                if _kept_back(slice_, device, context.features):
                    continue
                selectors = (*device_class.spec.selectors, *request.selectors)
                try:
                    if all(
                        context.matches(s.cel.expression if s.cel else "", device, slice_.spec.driver)
                        for s in selectors
                    ) and not (wanted and not _could_serve(request, device)):
                        context.report("not-all", f"request {name}", f"{'/'.join(place)} matches too")
                except ValueError as error:
                    context.report("selector-failed", f"request {name}", str(error))


def _kept_back(slice_: ResourceSlice, device: Device, features: CheckFeatures) -> bool:
    """Whether a feature that is off keeps a device from everybody."""
    spec = slice_.spec
    return bool(
        (not features.partitionable and (spec.per_device_node_selection or device.consumes_counters))
        or (not features.binding_conditions and device.binding_conditions)
        or (not features.optional_node_operations and spec.skip_node_operations)
    )


def _could_serve(request: _Request, device: Device) -> bool:
    for key, text in (request.capacity.requests if request.capacity is not None else {}).items():
        capacity = device.capacity[key]
        limits = capacity.request_policy.valid_range if capacity.request_policy is not None else None
        values = capacity.request_policy.valid_values if capacity.request_policy is not None else ()
        most = limits.max if limits is not None and limits.max else capacity.value
        if values:
            most = values[-1]
        if needed(text) > needed(most):
            return False
    return True


def _check_constraints(
    context: _Context,
    requests: Mapping[str, _Request],
    devices: Sequence[tuple[DeviceRequestAllocationResult, ResourceSlice, Device]],
) -> None:
    constraints = context.claim.spec.devices.constraints if context.claim.spec.devices is not None else ()
    for constraint in constraints:
        attribute = constraint.match_attribute or constraint.distinct_attribute
        values: list[set[tuple[str, object]]] = []
        for result, slice_, device in devices:
            if not _covers(constraint, result.request):
                continue
            derived = [item for item in requests[result.request].derived_attributes if item.name == attribute]
            if derived and context.features.derived_attributes:
                if context.derive is None:
                    # Without an evaluator nothing can be said about this constraint.
                    values = []
                    break
                try:
                    values.append(context.derive(derived[0].expression, device, slice_.spec.driver))
                except ValueError as error:
                    context.report("selector-failed", _subject(result), f"derived attribute {attribute}: {error}")
                    return
                continue
            value = device.attributes.get(attribute)
            domain, _, bare = attribute.partition("/")
            if value is None and domain == slice_.spec.driver:
                value = device.attributes.get(bare)
            members = _members(value, context.features.list_attributes) if value is not None else set()
            if not members:
                context.report("constraint-not-met", _subject(result), f"it has no attribute {attribute}")
                return
            values.append(members)
        if constraint.match_attribute and values and not set.intersection(*values):
            context.report("constraint-not-met", "", f"matchAttribute {attribute}: no value is common to all")
        if constraint.distinct_attribute and len(set().union(*values)) < sum(map(len, values)):
            context.report("constraint-not-met", "", f"distinctAttribute {attribute}: a value occurs twice")


def _covers(constraint: DeviceConstraint, request: str) -> bool:
    return not constraint.requests or request in constraint.requests or request.split("/")[0] in constraint.requests


def _members(value: DeviceAttribute, lists: bool) -> set[tuple[str, object]]:
    if value.string is not None:
        return {("string", value.string)}
    if value.int_ is not None:
        return {("int", value.int_)}
    if value.bool_ is not None:
        return {("bool", value.bool_)}
    if value.version is not None:
        return {("version", value.version)}
    if not lists:
        return set()
    return {
        *(("string", item) for item in value.strings),
        *(("int", item) for item in value.ints),
        *(("bool", item) for item in value.bools),
        *(("version", item) for item in value.versions),
    }


def _check_node_selector(
    context: _Context,
    selector: NodeSelector | None,
    devices: Sequence[tuple[DeviceRequestAllocationResult, ResourceSlice, Device]],
    nodes: Mapping[str, Node],
    node: str,
) -> None:
    def selects(candidate: Node) -> bool:
        return selector is None or matches_node_selector(selector, candidate.metadata.labels, candidate.metadata.name)

    if node and node in nodes and not selects(nodes[node]):
        context.report("node-not-selected", "", f"node {node}")
    if all(_pinned(selector, slice_, device) for _, slice_, device in devices):
        return
    for candidate in nodes.values():
        if not selects(candidate):
            continue
        for result, slice_, device in devices:
            if not _on_node(slice_, device, candidate):
                context.report("node-selector-too-wide", _subject(result), f"node {candidate.metadata.name}")
                return


def _pinned(selector: NodeSelector | None, slice_: ResourceSlice, device: Device) -> bool:
    """Whether a selector plainly selects no node beyond those that a device is for; False if that takes a look."""
    spec = slice_.spec
    where: ResourceSliceSpec | Device = device if spec.per_device_node_selection else spec
    if where.all_nodes:
        return True
    if selector is None or len(selector.node_selector_terms) != 1:
        return False
    (term,) = selector.node_selector_terms
    if where.node_name:
        return any(
            r.key == "metadata.name" and r.operator == "In" and tuple(r.values) == (where.node_name,)
            for r in term.match_fields
        )
    terms = where.node_selector.node_selector_terms if where.node_selector is not None else ()
    return len(terms) == 1 and all(
        r in term.match_expressions or r in term.match_fields
        for r in (*terms[0].match_expressions, *terms[0].match_fields)
    )


def _on_node(slice_: ResourceSlice, device: Device, node: Node) -> bool:
    spec = slice_.spec
    place: ResourceSlice | Device = slice_
    if spec.per_device_node_selection:
        place = device
    where = place.spec if isinstance(place, ResourceSlice) else place
    if where.node_name:
        return where.node_name == node.metadata.name
    if where.all_nodes:
        return True
    return where.node_selector is not None and matches_node_selector(
        where.node_selector, node.metadata.labels, node.metadata.name
    )
