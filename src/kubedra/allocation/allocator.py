"""The allocator: which devices a node can give to the claims of a pod.

Ties the published side (``Inventory``), the taken side (``Ledger``) and the search together. Pure: share IDs come from
the caller, and so does the decision to stop. ``steps`` is the search as a generator for those who must not block;
``allocate`` drives it to its end.

Upstream counterpart: structured.Allocator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import count

from kubedra.allocation.attempt import Attempt
from kubedra.allocation.bounds import impossible
from kubedra.allocation.claims import Asks, PreparedPod, prepare
from kubedra.allocation.fast import FastGuide, may_overflow, node_masks
from kubedra.allocation.inventory import Inventory, NodeView
from kubedra.allocation.ledger import Ledger
from kubedra.allocation.outcomes import (
    INVALID_POOLS,
    Allocated,
    AllocationError,
    AllocationFailure,
    DoesNotFit,
    Outcome,
    Shortage,
)
from kubedra.allocation.results import assemble
from kubedra.allocation.search import Search, make_search
from kubedra.api.resource_v1 import ResourceClaim

DEFAULT_BUDGET = 2_000_000


def numbered_share_ids() -> Callable[[], str]:
    """Share IDs for answers that are only shown: share-1, share-2…"""
    numbers = count(1)
    return lambda: f"share-{next(numbers)}"


class Allocator:
    """Answers for one inventory and ledger. ``plain`` turns all shortcuts off (for comparing)."""

    def __init__(
        self,
        inventory: Inventory,
        ledger: Ledger,
        *,
        new_share_id: Callable[[], str] | None = None,
        budget: int = DEFAULT_BUDGET,
        plain: bool = False,
    ) -> None:
        self.inventory = inventory
        self.ledger = ledger
        self.budget = budget
        self.plain = plain
        self._new_share_id = new_share_id
        self._asks = Asks()

    def prepare(self, claims: Sequence[ResourceClaim]) -> PreparedPod:
        """Prepare the claims of a pod once, to ask about several nodes."""
        return prepare(claims, self.inventory, self._asks)

    def allocate(self, node: str, claims: Sequence[ResourceClaim] | PreparedPod) -> Outcome:
        """Find devices for the claims on a node, all of them together."""
        steps = self.steps(node, claims)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]

    def steps(self, node: str, claims: Sequence[ResourceClaim] | PreparedPod) -> Generator[None, None, Outcome]:
        """The same in steps: yields now and then, returns the outcome."""
        pod = claims if isinstance(claims, PreparedPod) else self.prepare(claims)
        view = self.inventory.node_view(node)
        return (yield from self.view_steps(view, pod))

    def view_steps(self, view: NodeView, pod: PreparedPod) -> Generator[None, None, Outcome]:
        """The same for a node's view and prepared claims."""
        attempt = self._attempt(view, pod)
        try:
            search = make_search(view, pod, attempt, None, self.budget)
        except AllocationFailure as failure:
            return failure.outcome()
        masks = None
        # An All request under a constraint can end in an error that depends on how the search got there.
        if not self.plain and not pod.may_conflict:
            masks = node_masks(view, self.ledger, pod, attempt)
        if masks is None:
            return (yield from self._run(search))
        guide = FastGuide(attempt, masks, search.everything)
        shortage = impossible(attempt, guide, search.everything)
        if shortage is not None:
            return self._none(view, 0, shortage)
        search.guide = guide
        outcome = yield from self._run(search)
        if isinstance(outcome, Allocated) and may_overflow(pod, search.everything):
            # Fits: but which alternatives upstream gets to depends on where it meets the limit of devices.
            return (yield from self._run(make_search(view, pod, self._attempt(view, pod), None, self.budget)))
        return outcome

    def _attempt(self, view: NodeView, pod: PreparedPod) -> Attempt:
        return Attempt(view, self.ledger, pod, self.inventory.features)

    def _run(self, search: Search) -> Generator[None, None, Outcome]:
        try:
            if (yield from search.run()):
                share_ids = self._new_share_id or numbered_share_ids()
                return Allocated(assemble(search.attempt, share_ids), search.steps)
        except AllocationFailure as failure:
            return failure.outcome(search.steps)
        return self._none(search.attempt.node, search.steps)

    def _none(self, view: NodeView, steps: int, shortage: Shortage | None = None) -> Outcome:
        if view.invalid:
            return AllocationError(INVALID_POOLS, node_only=True, steps=steps)
        return DoesNotFit(() if shortage is None else (shortage,), steps)
