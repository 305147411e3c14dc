"""From picks to the AllocationResult of each claim: results, configuration, node selector.

Configuration is assembled per claim: that of the classes first, each class once with all requests that chose it, then
that of the claim which is for everyone or names something chosen. Since 1.37 an entry that ends up naming every request
of the claim loses its scope; it must cover requests for that, not merely count as many (spec/allocator.md 3.5).

Upstream counterpart: the tail of Allocate and createNodeSelector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubedra.allocation.attempt import Attempt, Pick
from kubedra.allocation.claims import PreparedClaim
from kubedra.allocation.outcomes import AllocationFailure
from kubedra.api.core_v1 import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubedra.api.resource_v1 import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)


def assemble(attempt: Attempt, new_share_id: Callable[[], str]) -> tuple[AllocationResult, ...]:
    """The allocations of a search that succeeded, in the order of the claims.

    Raises AllocationFailure when the node selectors of the devices can't be combined.
    """
    by_claim: list[list[Pick]] = [[] for _ in attempt.pod.claims]
    for pick in attempt.picks:
        by_claim[pick.claim].append(pick)
    return tuple(
        AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple(_result(attempt, pick, new_share_id) for pick in picks),
                config=_config(attempt, claim, picks),
            ),
            node_selector=_node_selector(attempt, picks),
        )
        for claim, picks in zip(attempt.pod.claims, by_claim, strict=True)
    )


def _result(attempt: Attempt, pick: Pick, new_share_id: Callable[[], str]) -> DeviceRequestAllocationResult:
    device = attempt.devices[pick.bit]
    raw = device.raw
    driver, pool, name = device.id
    consumed = pick.consumed
    bindings = attempt.features.binding_conditions
    return DeviceRequestAllocationResult(
        request=pick.alternative.name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if pick.alternative.ask.admin else None,
        tolerations=pick.alternative.ask.tolerations,
        binding_conditions=raw.binding_conditions if bindings else (),
        binding_failure_conditions=raw.binding_failure_conditions if bindings else (),
        share_id=new_share_id() if consumed is not None else None,
        consumed_capacity={key: str(amount) for key, amount in (consumed or {}).items()},
        skip_node_operations=device.slice.raw.spec.skip_node_operations,
    )


def _config(attempt: Attempt, claim: PreparedClaim, picks: list[Pick]) -> tuple[DeviceAllocationConfiguration, ...]:
    # The alternative that was chosen for each request; an exact request is its own. A choice without any device
    # (count 0) leaves no trace.
    chosen = {}
    for pick in picks:
        chosen[pick.alternative.name.partition("/")[0]] = pick.alternative
    alternatives = [
        alternative
        for request in claim.requests
        if (alternative := chosen.get(request.name) if request.choice else request.alternatives[0]) is not None
    ]
    classes: dict[str, list[str]] = {}
    for alternative in alternatives:
        classes.setdefault(alternative.class_name, []).append(alternative.name)
    config = []
    names = {alternative.name for alternative in alternatives}
    unscoped = attempt.features.config_of_all_requests_is_unscoped
    for class_name, requests in classes.items():
        device_class = next(a.device_class for a in alternatives if a.class_name == class_name)
        scope = () if unscoped and names <= set(requests) else tuple(requests)
        for entry in device_class.spec.config:
            config.append(DeviceAllocationConfiguration(source="FromClass", requests=scope, opaque=entry.opaque))
    devices = claim.claim.spec.devices
    for item in devices.config if devices is not None else ():
        named = sum(_names(item.requests, alternative.name) for alternative in alternatives)
        if item.requests and not named:
            continue
        scope = item.requests
        if unscoped and scope and all(_names(scope, name) for name in names):
            scope = ()
        entry_ = DeviceAllocationConfiguration(source="FromClaim", requests=scope, opaque=item.opaque)
        # Up to 1.36 an entry stands once for each chosen request that it names.
        config += [entry_] * (1 if unscoped or not item.requests else named)
    return tuple(config)


def _names(requests: Sequence[str], name: str) -> bool:
    return name in requests or name.partition("/")[0] in requests


def _node_selector(attempt: Attempt, picks: list[Pick]) -> NodeSelector | None:
    requirements: list[NodeSelectorRequirement] = []
    fields: list[NodeSelectorRequirement] = []
    for pick in picks:
        device = attempt.devices[pick.bit]
        raw, spec = device.raw, device.slice.raw.spec
        node_name = raw.node_name if spec.per_device_node_selection else spec.node_name
        selector = raw.node_selector if spec.per_device_node_selection else spec.node_selector
        if node_name or (raw.binds_to_node and attempt.features.binding_conditions):
            own = NodeSelectorRequirement(key="metadata.name", operator="In", values=(attempt.node.name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(own,)),))
        if selector is None:
            continue
        if len(selector.node_selector_terms) != 1:
            raise AllocationFailure(f"unsupported number of node selector terms: {len(selector.node_selector_terms)}")
        term = selector.node_selector_terms[0]
        requirements += [r for r in term.match_expressions if r not in requirements]
        fields += [r for r in term.match_fields if r not in fields]
    if not requirements and not fields:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(requirements), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))
