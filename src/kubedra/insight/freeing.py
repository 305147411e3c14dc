"""Which pods would have to end so that another fits: the fewest that were found.

Node by node: with everything freed it must fit at all; then as few claims as possible are taken away. Claims that
nobody uses come first, then those of which a single one is enough. A node's search is bounded; the whole ends when
its time is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from kubedra.api.resource_v1 import ResourceClaim
from kubedra.insight.decision import Deadline, Decision, Question, Trial
from kubedra.insight.snapshots import Snapshot

MOST_SETS = 60
MOST_NODES = 40


@dataclass(frozen=True, slots=True)
class Freed:
    """Claims whose devices would have to be given back, and what then fits where."""

    claims: tuple[str, ...]
    trial: Trial
    movable: bool = False
    """Whether the claims that were freed fit again somewhere afterwards, so that their pods only have to move."""
    back: str = ""
    """The devices they would get then."""


def fewest_to_free(decision: Decision, question: Question, nodes: Sequence[str], deadline: Deadline) -> Freed | None:
    """The smallest set of claims found whose devices would do; None when freeing does not help on these nodes."""
    best: Freed | None = None
    for node in nodes[:MOST_NODES]:
        if deadline.passed():
            break
        limit = len(best.claims) - 1 if best is not None else 8
        found = _on_node(decision, question, node, limit, deadline)
        if found is not None and (best is None or len(found.claims) < len(best.claims)):
            best = found
        if best is not None and len(best.claims) == 1:
            break
    if len(nodes) > MOST_NODES and (best is None or len(best.claims) > 1):
        deadline.cut = True
    return _moved(decision, question, best) if best is not None else None


def _on_node(decision: Decision, question: Question, node: str, limit: int, deadline: Deadline) -> Freed | None:
    if limit < 1:
        return None
    holders = holders_on(decision, node)
    own = {claim.metadata.uid for claim in question.claims}
    holders = [key for key in holders if key not in own]
    everything = _without(decision, question, node, holders)
    if not holders or not everything.fits:
        return None
    snapshot = decision.snapshot
    holders.sort(key=lambda key: _cost(snapshot, key))
    tried = 0
    for size in range(1, min(limit, 3, len(holders)) + 1):
        for chosen in combinations(holders, size):
            tried += 1
            if tried > MOST_SETS or deadline.passed():
                deadline.cut = True
                break
            trial = _without(decision, question, node, chosen)
            if trial.fits:
                return Freed(tuple(chosen), trial)
        else:
            continue
        break
    # Too many to try them all: take away one after the other what is not needed.
    keep = list(holders)
    trial = everything
    for key in reversed(holders):
        if deadline.passed():
            break
        fewer = [k for k in keep if k != key]
        attempt = _without(decision, question, node, fewer)
        if attempt.fits:
            keep, trial = fewer, attempt
    return Freed(tuple(keep), trial) if len(keep) <= limit else None


def holders_on(decision: Decision, node: str) -> list[str]:
    """The claims that hold devices of the pools that a node sees."""
    found: dict[str, None] = {}
    for pool, _ in decision.inventory.node_view(node).candidates:
        use = decision.ledger.use_of(pool.key)
        for claims in use.exclusive.values():
            found.update(dict.fromkeys(claims))
        for shares in use.shares.values():
            found.update(dict.fromkeys(claim for claim, _ in shares))
    return list(found)


def _without(decision: Decision, question: Question, node: str, keys: Sequence[str]) -> Trial:
    ledger = decision.ledger
    mark = ledger.mark()
    try:
        for key in keys:
            ledger.remove_claim(key)
        return decision.trial(question, nodes=(node,))
    finally:
        ledger.rollback(mark)


def _cost(snapshot: Snapshot, key: str) -> tuple[int, int, str]:
    claim = snapshot.claims_by_key.get(key)
    if claim is None:
        return 2, 0, key
    results = (
        claim.status.allocation.devices.results if claim.status.allocation and claim.status.allocation.devices else ()
    )
    return (1 if claim.status.reserved_for else 0), len(results), f"{claim.metadata.namespace}/{claim.metadata.name}"


def _moved(decision: Decision, question: Question, freed: Freed) -> Freed:
    """See whether the claims that were freed fit again beside the new one, on the same node or another."""
    if len(freed.claims) > 2:
        return freed
    snapshot, ledger = decision.snapshot, decision.ledger
    claims: list[ResourceClaim] = []
    for key in freed.claims:
        claim = snapshot.claims_by_key.get(key)
        if claim is None or len(claim.status.reserved_for) > 1:
            return freed
        claims.append(claim)
    mark = ledger.mark()
    try:
        for key in freed.claims:
            ledger.remove_claim(key)
        for claims_, names in question.groups:
            if freed.trial.node not in names:
                continue
            outcome = decision.allocator.allocate(freed.trial.node, claims_)
            for number, allocation in enumerate(getattr(outcome, "allocations", ())):
                ledger.assume(f"#new-{number}", allocation)
        again = decision.try_claims(tuple(claims), (freed.trial.node, *_others(decision, freed.trial.node)))
        return Freed(freed.claims, freed.trial, again.fits, ", ".join(again.devices))
    finally:
        ledger.rollback(mark)


def _others(decision: Decision, node: str) -> Iterator[str]:
    return (name for name in decision.view.nodes if name != node)
