"""What the scheduler would decide about a pod, asked of the scheduler's own code on a snapshot.

Nothing here judges: filters, claims, classes and devices are looked at by ``scheduler.cycle`` and ``scheduler.dra``,
on the same structures that the running scheduler keeps, filled from objects. That is what keeps an answer from saying
"fits" of what the scheduler refuses. Everything a question takes is given back, so questions don't influence another.

Upstream has no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import msgspec

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.engine import cel_engine
from kubedra.allocation.features import Features
from kubedra.allocation.finder import Finder
from kubedra.allocation.inventory import Inventory
from kubedra.allocation.ledger import Ledger
from kubedra.allocation.outcomes import Allocated, AllocationError
from kubedra.api import core_v1, resource_v1
from kubedra.base.node_selectors import matches_node_selector
from kubedra.insight.snapshots import Snapshot
from kubedra.scheduler import filters
from kubedra.scheduler.claims import ClaimStore
from kubedra.scheduler.cycle import Cycle, NoPlace, Placed
from kubedra.scheduler.dra import DraState, DynamicResources
from kubedra.scheduler.extended import ExtendedResources
from kubedra.scheduler.pods import PodInfo, is_finished, pod_info
from kubedra.scheduler.unsupported import unsupported_field
from kubedra.scheduler.verdicts import AttemptError, Refusal, Rejection
from kubedra.scheduler.view import ClusterView

T = TypeVar("T")
Verdict = Placed | NoPlace | AttemptError


Claims = tuple[resource_v1.ResourceClaim, ...]
ELSEWHERE = "claim-elsewhere"


@dataclass(frozen=True, slots=True)
class Trial:
    """Whether claims fit somewhere: the first node and its devices, or "" and the error that ended the attempt."""

    node: str = ""
    devices: tuple[str, ...] = ()
    error: str = ""

    @property
    def fits(self) -> bool:
        """Whether they fit."""
        return bool(self.node)


@dataclass(frozen=True)
class Question:
    """What a pod asks of the cluster: claims to allocate, on nodes that may run it."""

    pod: PodInfo
    claims: Claims
    """The claims to allocate; those for extended resources are in ``groups`` alone."""
    rejected: dict[str, Rejection]
    """Nodes that can't take the pod whatever its devices are."""
    groups: tuple[tuple[Claims, tuple[str, ...]], ...]
    """Nodes that may run the pod, by the claims it would need there."""
    refusal: Refusal | AttemptError | None = None
    failed: bool = False
    """Whether the attempt ended in an error (a selector that can't be evaluated), which is not "does not fit"."""
    state: DraState | None = None
    nodes: tuple[str, ...] = field(default=())
    """All nodes that may run the pod."""

    @cached_property
    def group_of(self) -> dict[str, int]:
        """The place of each node's group."""
        return {name: place for place, (_, names) in enumerate(self.groups) for name in names}


class Decision:
    """The scheduler's structures, filled from a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        gates = snapshot.gates
        features = Features.of(gates)
        self.view = ClusterView()
        self.inventory = Inventory(cel_engine(features), features)
        self.ledger = Ledger(features.consumable_capacity)
        self.store = ClaimStore(self.ledger)
        self.allocator = Allocator(self.inventory, self.ledger)
        self.extended = ExtendedResources(gates.enabled("DRAExtendedResource"))
        self.dra = DynamicResources(self.inventory, self.allocator, self.store, self.extended, filter_timeout=0)
        self.cycle = Cycle(self.view, self.dra)
        self._finder = Finder(self.allocator)
        self._fill(snapshot)

    def _fill(self, snapshot: Snapshot) -> None:
        for namespace in snapshot.namespaces:
            self.view.set_namespace(namespace.metadata.name, namespace.metadata.labels)
        for rule in snapshot.rules:
            self.inventory.update_taint_rule(rule)
        for node in snapshot.nodes:
            self.add_node(node)
        for device_class in snapshot.classes:
            self.inventory.update_class(device_class)
            self.extended.update_class(None, device_class)
        for slice_ in snapshot.slices:
            self.inventory.update_slice(slice_)
        for claim in snapshot.claims:
            self.store.observe(None, claim)
            self.extended.observe(None, claim)
        for pod in snapshot.pods:
            if pod.spec.node_name and not is_finished(pod):
                self.view.set_pod(pod_info(pod))

    def add_node(self, node: core_v1.Node) -> None:
        """Take a node in."""
        self.view.set_node(node.metadata.name, node)
        self.inventory.update_node(node)

    # ---- the verdict ----

    def place(self, pod: PodInfo) -> Verdict:
        """The scheduler's verdict about a pod; nothing stays taken."""
        self.cycle._start = 0
        verdict = _drive(self.cycle.place(pod if self.snapshot.embedded else _without_volumes(pod), self.snapshot.now))
        if isinstance(verdict, Placed):
            self.view.forget(pod.uid)
            for reserved in verdict.reserved:
                if reserved.allocation is not None:
                    self.store.drop_pending(reserved.claim.metadata.uid, None if reserved.extended else reserved.claim)
        return verdict

    def place_with(self, pod: PodInfo, change: Callable[[Claims], Claims]) -> Verdict:
        """The verdict if the pod's claims were changed."""
        before = [claim for claim in self.dra.resolve(pod) if not isinstance(claim, str)]
        after = change(tuple(before))
        try:
            for old, new in zip(before, after, strict=True):
                self.store.observe(old, new)
            return self.place(pod)
        finally:
            for old, new in zip(before, after, strict=True):
                self.store.observe(new, old)

    def rejected_nodes(self, pod: PodInfo) -> dict[str, Rejection]:
        """The nodes that can't take the pod whatever its devices are, and why."""
        local = filters.local(pod, self.extended.bridged(pod))
        placement = filters.placement(pod, self.view)
        found: dict[str, Rejection] = {}
        for name, info in self.view.nodes.items():
            rejected = local(info)
            for check in placement:
                rejected = rejected or check(info)
            if rejected is not None:
                found[name] = rejected
        return found

    def question(self, pod: PodInfo) -> Question:
        """Split what decides about a pod into its nodes and its claims."""
        state = self.dra.prepare(pod, self.snapshot.now)
        rejected = self.rejected_nodes(pod)
        if not isinstance(state, DraState):
            names = tuple(name for name in self.view.nodes if name not in rejected)
            return Question(pod, (), rejected, (((), names),) if names else (), refusal=state, nodes=names)
        for claim, selector in state.selectors:
            reason = f"claim {claim.metadata.name} has its devices {_place_of(selector)}{_users_of(claim, pod.uid)}"
            for name, info in self.view.nodes.items():
                if name not in rejected and not matches_node_selector(selector, info.labels, name):
                    rejected[name] = Rejection(ELSEWHERE, (reason,), unresolvable=True)
        fresh = tuple(state.fresh)
        groups: dict[str, tuple[Claims, list[str]]] = {}
        for name, info in self.view.nodes.items():
            if name in rejected:
                continue
            made = self.extended.claim_for(state.extended, info) if state.extended is not None else None
            claims = fresh if made is None else (*fresh, made)
            groups.setdefault("" if made is None else repr(made.spec), (claims, []))[1].append(name)
        # The most frequent question first: it is the one that is told in full.
        ordered = sorted(groups.values(), key=lambda group: -len(group[1]))
        found = tuple((claims, tuple(names)) for claims, names in ordered)
        nodes = tuple(name for _, names in found for name in names)
        return Question(pod, fresh, rejected, found, state=state, nodes=nodes)

    # ---- trials ----

    def trial(
        self,
        question: Question,
        change: Callable[[Claims], Claims] | None = None,
        *,
        nodes: Sequence[str] | None = None,
        deadline: Deadline | None = None,
    ) -> Trial:
        """Whether the claims, changed, fit on one of the pod's nodes (or of those given).

        An error that ends the scheduler's attempt ends the trial.
        """
        for place, (claims, names) in enumerate(question.groups):
            asked = change(claims) if change is not None else claims
            wanted = names if nodes is None else tuple(n for n in nodes if question.group_of.get(n) == place)
            if not wanted:
                continue
            trial = self.try_claims(asked, wanted, deadline)
            if trial.fits or trial.error:
                return trial
        return Trial()

    def try_claims(self, claims: Claims, nodes: Sequence[str], deadline: Deadline | None = None) -> Trial:
        """Whether claims fit on one of the nodes."""
        if not claims:
            return Trial(nodes[0]) if nodes else Trial()
        for node, outcome in self._finder.outcomes(claims, nodes):
            if deadline is not None and deadline.passed():
                return Trial(error="cut off")
            if isinstance(outcome, Allocated):
                names = tuple(
                    f"{result.driver}/{result.pool}/{result.device}"
                    for allocation in outcome.allocations
                    for result in (allocation.devices.results if allocation.devices is not None else ())
                )
                return Trial(node, names)
            if isinstance(outcome, AllocationError) and not outcome.node_only:
                return Trial(error=outcome.message)
        return Trial()


class Deadline:
    """A span of time that may be spent; the clock is the caller's."""

    def __init__(self, now: Callable[[], float], seconds: float) -> None:
        self._now = now
        self._end = now() + seconds
        self.cut = False
        """Whether anything was left out, because the time was over or there was too much to try."""

    def passed(self) -> bool:
        """Whether the time is over; then something is left out."""
        over = self._now() >= self._end
        self.cut = self.cut or over
        return over


def _place_of(selector: core_v1.NodeSelector) -> str:
    """Where an allocation ties a claim to: "on n1", or in general."""
    names = [
        value
        for term in selector.node_selector_terms
        for field_ in term.match_fields
        if field_.key == "metadata.name"
        for value in field_.values
    ]
    return f"on {', '.join(names[:3])}" if names else "on other nodes"


def _users_of(claim: resource_v1.ResourceClaim, but: str) -> str:
    names = [f"{c.resource.rstrip('s')} {c.name}" for c in claim.status.reserved_for if c.uid != but]
    return f", used by {', '.join(names[:3])}{' and others' if len(names) > 3 else ''}" if names else ""


def _without_volumes(pod: PodInfo) -> PodInfo:
    """The pod without what only kubedra's scheduler refuses: others know what to do with it."""
    if unsupported_field(pod.pod) is None:
        return pod
    spec = msgspec.structs.replace(pod.pod.spec, volumes=(), scheduling_group=None)
    return replace(pod, pod=msgspec.structs.replace(pod.pod, spec=spec))


def _drive(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
