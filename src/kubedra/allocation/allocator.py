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
from kubedra.allocation.claims import Asks, PreparedPod, prepare
from kubedra.allocation.inventory import Inventory, NodeView
from kubedra.allocation.ledger import Ledger
from kubedra.allocation.outcomes import (
    INVALID_POOLS,
    Allocated,
    AllocationError,
    AllocationFailure,
    DoesNotFit,
    Outcome,
)
from kubedra.allocation.results import assemble
from kubedra.allocation.search import make_search
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
        return (yield from self._plain_steps(view, pod))

    def _plain_steps(self, view: NodeView, pod: PreparedPod) -> Generator[None, None, Outcome]:
        attempt = Attempt(view, self.ledger, pod, self.inventory.features)
        steps = 0
        try:
            search = make_search(view, pod, attempt, None, self.budget)
            try:
                found = yield from search.run()
            finally:
                steps = search.steps
            if found:
                return Allocated(assemble(attempt, self._new_share_id or numbered_share_ids()), steps)
        except AllocationFailure as failure:
            return failure.outcome(steps)
        if view.invalid:
            return AllocationError(INVALID_POOLS, node_only=True, steps=steps)
        return DoesNotFit(steps=steps)
