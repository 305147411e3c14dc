"""Dynamic resource allocation for one pod: which claims it has, where they fit, what choosing a node means for them.

Pure: `gate`, `prepare`, `filter`, `rescue` and `reserve` are upstream's PreEnqueue, PreFilter, Filter, PostFilter and
Reserve; what they decide is written by `binding`. Which devices satisfy a claim is `allocation`'s business alone.

Must never: reserve what the independent checker refuses, or reserve for one claim the result of another.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.claims import PreparedPod
from kubedra.allocation.finder import Finder
from kubedra.allocation.inventory import Inventory
from kubedra.allocation.outcomes import Allocated, AllocationError, DoesNotFit, Outcome
from kubedra.api.core_v1 import ContainerExtendedResourceRequest, NodeSelector, PodResourceClaim
from kubedra.api.resource_v1 import AllocationResult, DeviceRequest, ResourceClaim
from kubedra.base.node_selectors import matches_node_selector
from kubedra.scheduler.binding_conditions import unusable
from kubedra.scheduler.claim_writes import may_deallocate
from kubedra.scheduler.claims import ClaimStore
from kubedra.scheduler.extended import ExtendedResources, ExtendedState
from kubedra.scheduler.hints import DRA_PLUGIN
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import AttemptError, Refusal, Rejection, rejection

OPTIONAL_OPERATIONS = "DRAOptionalNodeOperations"
NOT_DECLARED = rejection(
    DRA_PLUGIN, f"node does not declare the feature {OPTIONAL_OPERATIONS} that its devices need", unresolvable=True
)
CANNOT_ALLOCATE = rejection(DRA_PLUGIN, "cannot allocate all claims", unresolvable=True)
NOT_AVAILABLE = rejection(DRA_PLUGIN, "resourceclaim not available on the node", unresolvable=True)
STALE_EXTENDED = rejection(DRA_PLUGIN, "cannot schedule extended resource claim", unresolvable=True)
STILL_NOT_SCHEDULABLE = "still not schedulable"
NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
DEALLOCATED = "deallocation of ResourceClaim completed"
EXTENDED_DELETED = "deletion of ResourceClaim completed"
TIMED_OUT = AllocationError("timed out trying to allocate devices", timed_out=True)
BEST_ALTERNATIVE = 8

_encode = msgspec.json.Encoder(order="deterministic").encode
_ON_DEVICE = re.compile(r" on device (\S+)(?=: CEL )")


@dataclass(slots=True)
class DraState:
    """What is known of a pod's claims during one attempt."""

    pod: PodInfo
    claims: list[ResourceClaim]
    fresh: list[ResourceClaim]
    """Claims to allocate, in the pod's order."""
    selectors: list[tuple[ResourceClaim, NodeSelector]]
    failed_bindings: list[ResourceClaim]
    question: bytes
    prioritized: bool
    extended: ExtendedState | None = None
    unavailable: dict[str, ResourceClaim] = field(default_factory=dict)
    results: dict[str, tuple[AllocationResult, ...]] = field(default_factory=dict)
    extended_claims: dict[str, ResourceClaim] = field(default_factory=dict)
    prepared: dict[tuple[str, ...], PreparedPod] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reserved:
    """A claim and the allocation that was decided for it (None: it has one)."""

    claim: ResourceClaim
    allocation: AllocationResult | None
    extended: bool = False
    mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class Rescue:
    """What may make room for the pod: give back a claim's devices, or delete a left-over extended-resource claim."""

    claim: ResourceClaim
    delete: bool
    message: str


class DynamicResources:
    """The claims' side of scheduling; one for each scheduler."""

    def __init__(
        self,
        inventory: Inventory,
        allocator: Allocator,
        store: ClaimStore,
        extended: ExtendedResources,
        *,
        binding_timeout: float = 600.0,
        filter_timeout: float = 10.0,
        monotonic: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._filter_timeout = filter_timeout
        self._monotonic = monotonic
        self.inventory = inventory
        self.allocator = allocator
        self.store = store
        self.extended = extended
        self._binding_timeout = binding_timeout
        self._finder = Finder(allocator)
        # Whether a node declares a feature; whoever knows the nodes says so.
        self.declares: Callable[[str, str], bool] = lambda node, feature: True

    def __repr__(self) -> str:
        return f"<DynamicResources {self.store!r}>"

    # --- PreEnqueue -----------------------------------------------------------------------------------

    def gate(self, pod: PodInfo) -> str | None:
        """Why an attempt is pointless for now: a claim of the pod is not there."""
        if not pod.spec.resource_claims:
            return None
        found = self.resolve(pod)
        return found if isinstance(found, str) else None

    def resolve(self, pod: PodInfo) -> list[ResourceClaim] | str:
        """The pod's claims in the order of its spec, or what is wrong with the first that can't be used."""
        claims: list[ResourceClaim] = []
        for entry in pod.spec.resource_claims:
            name, generated, problem = claim_name(pod, entry)
            if problem:
                return problem
            if not name:
                continue
            claim = self.store.get((pod.namespace, name))
            if claim is None:
                return f'resourceclaim "{name}" not found'
            if claim.metadata.deletion_timestamp:
                return f'resourceclaim "{name}" is being deleted'
            if generated and not _controlled_by(claim, pod.uid):
                return f"ResourceClaim {pod.namespace}/{name} was not created for Pod {pod.key} (Pod is not owner)"
            claims.append(claim)
        return claims

    # --- PreFilter ------------------------------------------------------------------------------------

    def prepare(self, pod: PodInfo, now: datetime) -> DraState | Refusal | AttemptError | None:
        """Look at the pod's claims before any node; None when it has none."""
        claims = self.resolve(pod)
        if isinstance(claims, str):
            return Refusal(DRA_PLUGIN, claims)
        extended = self.extended.prepare(pod, self.store)
        if not claims and extended is None:
            return None
        state = DraState(pod, claims, [], [], [], b"", prioritized=False, extended=extended)
        for claim in claims:
            allocation = claim.status.allocation
            if _has_alternatives(claim):
                state.prioritized = True
            if allocation is not None:
                if allocation.node_selector is not None:
                    state.selectors.append((claim, allocation.node_selector))
                if unusable(claim, now, self._binding_timeout):
                    state.failed_bindings.append(claim)
                continue
            if self.store.is_pending(claim.metadata.uid):
                name = f"{claim.metadata.namespace}/{claim.metadata.name}"
                return Refusal(DRA_PLUGIN, f"resource claim {name} is in the process of being allocated")
            problem = self._check_classes(claim)
            if problem is not None:
                return problem
            state.fresh.append(claim)
        state.question = _encode([claim.spec for claim in state.fresh])
        return state

    def _check_classes(self, claim: ResourceClaim) -> Refusal | AttemptError | None:
        where = f"resource claim {claim.metadata.namespace}/{claim.metadata.name}"
        for request in claim.spec.devices.requests if claim.spec.devices is not None else ():
            if request.exactly is not None:
                wanted = [(request.name, request.exactly.device_class_name)]
            elif request.first_available:
                if not self.inventory.features.prioritized_list:
                    return Refusal(
                        DRA_PLUGIN,
                        f"{where}, request {request.name}: has subrequests,"
                        " but the DRAPrioritizedList feature is disabled",
                    )
                wanted = [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available]
            else:
                return Refusal(DRA_PLUGIN, f"{where}, request {request.name}: unknown request type")
            for name, class_name in wanted:
                if not class_name:
                    return AttemptError(f"request {name}: unsupported request type")
                if class_name not in self.inventory.classes:
                    return Refusal(DRA_PLUGIN, f"request {name}: device class {class_name} does not exist")
        return None

    # --- Filter ---------------------------------------------------------------------------------------

    def filter(self, state: DraState, node: NodeInfo) -> Generator[None, None, Rejection | AttemptError | None]:
        """Whether all claims can be served on the node; keeps the allocation that says so."""
        claims: list[ResourceClaim] = state.fresh
        if state.extended is not None:
            if state.extended.stale is not None:
                state.unavailable.setdefault(state.extended.stale.metadata.uid, state.extended.stale)
                return STALE_EXTENDED
            synthesized = self.extended.claim_for(state.extended, node)
            if synthesized is not None:
                claims = [*claims, synthesized]
                state.extended_claims[node.name] = synthesized
        available = True
        for claim, selector in state.selectors:
            if not matches_node_selector(selector, node.labels, node.name):
                state.unavailable.setdefault(claim.metadata.uid, claim)
                available = False
        for claim in state.failed_bindings:
            state.unavailable.setdefault(claim.metadata.uid, claim)
            available = False
        if claims:
            outcome = yield from self._within_time(state, node.name, claims)
            answer = self._judge(state, node.name, outcome)
            if answer is not None:
                return answer
        return None if available else NOT_AVAILABLE

    def _prepared(self, state: DraState, claims: list[ResourceClaim]) -> PreparedPod:
        names = tuple(claim.metadata.uid for claim in claims)
        prepared = state.prepared.get(names)
        if prepared is None:
            prepared = state.prepared[names] = self.allocator.prepare(claims)
        return prepared

    def _within_time(
        self, state: DraState, node_name: str, claims: list[ResourceClaim]
    ) -> Generator[None, None, Outcome]:
        """The allocator's answer, or an error when it takes longer than one node may."""
        steps = self.allocator.steps(node_name, self._prepared(state, claims))
        started = self._monotonic()
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                outcome: Outcome = stop.value
                return outcome
            if self._filter_timeout and self._monotonic() - started > self._filter_timeout:
                steps.close()
                return TIMED_OUT
            yield

    def is_plain(self, state: DraState) -> bool:
        """Whether only fresh claims decide, the same ones on every node: then nodes can be searched together."""
        return bool(state.fresh) and not state.selectors and not state.failed_bindings and state.extended is None

    def search(
        self, state: DraState, names: Iterable[str]
    ) -> Generator[tuple[str, Rejection | AttemptError | None] | None, None, None]:
        """Ask about many nodes in order; yields the answers of those that counting does not rule out, None to pause.

        Only for a plain state. Nodes that are not mentioned can't allocate.
        """
        started, busy = self._monotonic(), ""
        for name, outcome in self._finder.outcomes(self._prepared(state, state.fresh), names):
            if name != busy:
                started, busy = self._monotonic(), name
            if outcome is not None:
                yield name, self._judge(state, name, outcome)
            elif self._filter_timeout and self._monotonic() - started > self._filter_timeout:
                yield name, self._judge(state, name, TIMED_OUT)
                return
            else:
                yield None

    def _judge(self, state: DraState, node_name: str, outcome: Outcome) -> Rejection | AttemptError | None:
        match outcome:
            case Allocated(allocations=allocations):
                if _skips_operations(allocations) and not self.declares(node_name, OPTIONAL_OPERATIONS):
                    # Its agent would wait for a driver that never answers.
                    return NOT_DECLARED
                state.results[node_name] = allocations
                return None
            case DoesNotFit():
                return CANNOT_ALLOCATE
            case AllocationError(node_only=True, message=message):
                return rejection(DRA_PLUGIN, message, unresolvable=True)
            case AllocationError(timed_out=True, message=message):
                return AttemptError(f'running "{DRA_PLUGIN}" filter plugin: node {node_name}: {message}')
            case AllocationError(message=message):
                theirs, ours = _split(message)
                return AttemptError(f'running "{DRA_PLUGIN}" filter plugin: {theirs}', ours)

    # --- Score ----------------------------------------------------------------------------------------

    def score(self, state: DraState, node_name: str) -> int:
        """Higher the earlier the alternatives that the node can serve."""
        total = 0
        fresh = dict(zip((c.metadata.uid for c in state.fresh), state.results.get(node_name, ()), strict=False))
        for claim in state.claims:
            allocation = claim.status.allocation or fresh.get(claim.metadata.uid)
            if allocation is not None and claim.spec.devices is not None:
                total += _alternatives_score(claim.spec.devices.requests, allocation)
        return total

    def best_score(self, state: DraState) -> int:
        """The score of a node that serves the first alternative of everything."""
        return BEST_ALTERNATIVE * sum(
            1
            for claim in state.claims
            for request in (claim.spec.devices.requests if claim.spec.devices is not None else ())
            if request.first_available
        )

    # --- PostFilter -----------------------------------------------------------------------------------

    def rescue(self, state: DraState | None) -> Rescue | str:
        """What could make the pod schedulable; else the words for "nothing"."""
        if state is None:
            return NOTHING_TO_DEALLOCATE
        for claim in state.unavailable.values():
            if state.extended is not None and claim is state.extended.stale:
                continue
            newest = self.store.get((claim.metadata.namespace, claim.metadata.name)) or claim
            if newest.status.allocation is not None and may_deallocate(newest, state.pod.uid):
                return Rescue(newest, delete=False, message=DEALLOCATED)
        if state.extended is not None and state.extended.stale is not None:
            return Rescue(state.extended.stale, delete=True, message=EXTENDED_DELETED)
        return STILL_NOT_SCHEDULABLE

    # --- Reserve --------------------------------------------------------------------------------------

    def reserve(self, state: DraState, node_name: str) -> tuple[Reserved, ...] | AttemptError:
        """Take the devices that were found on the chosen node, after the independent checker agreed."""
        results = state.results.get(node_name, ())
        fresh = list(state.fresh)
        extended = state.extended_claims.get(node_name)
        if extended is not None:
            fresh.append(extended)
        if len(results) != len(fresh):
            return AttemptError(
                f"internal error, have {len(results)} allocations, {len(fresh)} claims to allocate,"
                f" want {len(state.claims)} claims"
            )
        claim_of = {claim.metadata.uid: claim for claim in fresh}
        by_uid = {claim.metadata.uid: result for claim, result in zip(fresh, results, strict=True)}
        checker = self.store.checker
        if by_uid and checker is not None:
            wrong = checker.check_new(list(zip(fresh, results, strict=True)), node_name)
            if wrong:
                return AttemptError(f"kubedra's checker refused its allocation on node {node_name}: {wrong[0]}")
        for uid, allocation in by_uid.items():
            self.store.set_pending(claim_of[uid], allocation)
        reserved = [Reserved(claim, by_uid.get(claim.metadata.uid)) for claim in state.claims]
        if extended is not None:
            assert state.extended is not None
            mappings = self.extended.mappings_for(state.extended, extended)
            reserved.append(Reserved(extended, by_uid[extended.metadata.uid], extended=True, mappings=mappings))
        return tuple(reserved)


def _skips_operations(allocations: Iterable[AllocationResult]) -> bool:
    return any(
        result.skip_node_operations
        for allocation in allocations
        if allocation.devices is not None
        for result in allocation.devices.results
    )


def claim_name(pod: PodInfo, entry: PodResourceClaim) -> tuple[str, bool, str]:
    """(name of the entry's claim, whether it was generated, what is wrong); no name and no problem: none is needed."""
    if entry.resource_claim_name:
        return entry.resource_claim_name, False, ""
    if not entry.resource_claim_template_name:
        return "", False, (f'pod "{pod.key}", spec.resourceClaim "{entry.name}": none of the supported fields are set')
    for status in pod.pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name or "", True, ""
    return "", True, f'pod "{pod.key}": ResourceClaim not created yet'


def _split(message: str) -> tuple[str, str]:
    """An allocator's message as 1.36 words it, and what it says beyond that: the device, and how to help oneself."""
    message, _, hint = message.partition(". consider using")
    found = _ON_DEVICE.search(message)
    if found is None and not hint:
        return message, ""
    ours = f"That is on device {found[1]}" if found is not None else "That"
    if hint:
        ours += f"; consider using{hint}" if found is not None else f": consider using{hint}"
    return _ON_DEVICE.sub("", message, count=1), ours + "."


def _controlled_by(claim: ResourceClaim, uid: str) -> bool:
    return any(owner.controller and owner.uid == uid for owner in claim.metadata.owner_references)


def _has_alternatives(claim: ResourceClaim) -> bool:
    devices = claim.spec.devices
    return devices is not None and any(request.first_available for request in devices.requests)


def _alternatives_score(requests: Iterable[DeviceRequest], allocation: AllocationResult) -> int:
    chosen = {result.request for result in allocation.devices.results} if allocation.devices is not None else set()
    total = 0
    for request in requests:
        for index, sub in enumerate(request.first_available):
            if f"{request.name}/{sub.name}" in chosen:
                total += BEST_ALTERNATIVE - index
                break
    return total
