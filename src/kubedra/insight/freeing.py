"""Which pods would have to end so that another fits: the fewest that were found.

Node by node: with everything freed it must fit at all; then as few claims as possible are taken away. Claims that
nobody uses come first, then those of which a single one is enough. A node's search is bounded; the whole ends when
its time is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice

from kubedra.api.resource_v1 import ResourceClaim
from kubedra.insight.decision import Deadline, Decision, Question, Trial
from kubedra.insight.snapshots import Snapshot

MOST_SETS = 60
MOST_SIZE = 3
MOST_CLAIMS = 32
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


def fewest_to_free(
    decision: Decision, question: Question, missing: Mapping[str, int], deadline: Deadline
) -> Freed | None:
    """The smallest set of claims found whose devices would do; None when freeing does not help on any node.

    ``missing``: the nodes in question, and how many devices are too few there, as far as counting tells.
    """
    best: Freed | None = None
    least = {node: _least_claims(decision, node, count) for node, count in missing.items()}
    nodes = sorted(least, key=lambda node: least[node])
    for looked, node in enumerate(nodes):
        if best is not None and len(best.claims) <= least[node]:
            # No later node can do with fewer.
            break
        if looked >= MOST_NODES:
            deadline.cut = True
            break
        if deadline.passed():
            break
        most = len(best.claims) - 1 if best is not None else MOST_CLAIMS
        found = _on_node(decision, question, node, least[node], most, deadline)
        if found is not None:
            best = found
    return _moved(decision, question, best) if best is not None else None


def _least_claims(decision: Decision, node: str, missing: int) -> int:
    """At least so many claims must go on a node for that many devices; 1 where counting proves nothing."""
    held: Counter[str] = Counter()
    for pool, _ in decision.inventory.node_view(node).candidates:
        use = decision.ledger.use_of(pool.key)
        if pool.needs or use.shares:
            # One partition or share less can make room for several devices.
            return 1
        for claims in use.exclusive.values():
            held.update(claims)
    least = 0
    for _, count in held.most_common():
        if missing <= 0:
            break
        missing -= count
        least += 1
    return max(least, 1)


def _on_node(
    decision: Decision, question: Question, node: str, least: int, most: int, deadline: Deadline
) -> Freed | None:
    """The fewest claims on one node: at least ``least`` are needed, more than ``most`` are of no interest."""
    own = {claim.metadata.uid for claim in question.claims}
    holders = [key for key in holders_on(decision, node) if key not in own]
    everything = _without(decision, question, node, holders)
    if most < least or not holders or not everything.fits:
        return None
    snapshot = decision.snapshot
    holders.sort(key=lambda key: _cost(snapshot, key))
    sizes = range(least, min(most, MOST_SIZE, len(holders)) + 1)
    for chosen in islice(chain.from_iterable(combinations(holders, size) for size in sizes), MOST_SETS):
        if deadline.passed():
            return None
        trial = _without(decision, question, node, chosen)
        if trial.fits:
            return Freed(chosen, trial)
    # Too many to try them all: keep what is not in the way, the dearest first.
    keep = list(holders)
    trial = everything
    for key in reversed(holders):
        if deadline.passed():
            break
        fewer = [k for k in keep if k != key]
        attempt = _without(decision, question, node, fewer)
        if attempt.fits:
            keep, trial = fewer, attempt
    if len(keep) > most:
        return None
    if len(keep) > least:
        deadline.cut = True
    return Freed(tuple(keep), trial)


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
