"""How near a cluster comes to a claim's constraints: the largest group on one node, and who lacks the attribute."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

from kubedra.allocation.candidates import free_mask, value_masks
from kubedra.allocation.claims import Alternative, PreparedClaim
from kubedra.allocation.claims import Constraint as Rule
from kubedra.insight.answers import Constraint, plural
from kubedra.insight.decision import Decision, Question


def constraint_reports(decision: Decision, question: Question) -> list[Constraint]:
    """One report for each constraint of the claims."""
    out = []
    for claims, nodes in question.groups[:1]:
        for claim in decision.allocator.prepare(claims).claims:
            out += [_report(decision, claim, index, rule, nodes) for index, rule in enumerate(claim.constraints)]
    return out


def _report(decision: Decision, claim: PreparedClaim, index: int, rule: Rule, nodes: Sequence[str]) -> Constraint:
    features = decision.inventory.features
    needs = [
        (alternative, max(alternative.count, 1))
        for request in claim.requests
        for alternative in request.alternatives[:1]
        if index in alternative.constraints
    ]
    needed = sum(count for _, count in needs)
    best, best_node, best_value = 0, "", ""
    lacking: Counter[str] = Counter()
    having: Counter[str] = Counter()
    for node in nodes:
        view = decision.inventory.node_view(node)
        # For each value: how many devices each request could get with it, and how many there are in all.
        groups: dict[object, list[int]] = {}
        for pool, offset in view.candidates:
            here = view.masked.get(offset, -1)
            state = pool.current(decision.ledger)
            masks = [free_mask(pool, state, alternative.ask, features) & here for alternative, _ in needs]
            union = 0
            for mask in masks:
                union |= mask
            if not union:
                continue
            known = 0
            for values, devices in value_masks(pool, rule.attribute, features).items():
                known |= devices
                if not devices & union:
                    continue
                for element in values:
                    counts = groups.setdefault(element, [0] * (len(needs) + 1))
                    for place, mask in enumerate((*masks, union)):
                        counts[place] += (devices & mask).bit_count()
            lacking[pool.key[0]] += (union & ~known).bit_count()
            having[pool.key[0]] += (union & known).bit_count()
        sizes = {element: _usable(counts, needs) for element, counts in groups.items()}
        size = len(sizes) if rule.distinct else max(sizes.values(), default=0)
        if size > best:
            best, best_node = size, node
            best_value = "" if rule.distinct else _text(max(sizes, key=lambda element: sizes[element]))
    lines = [
        _lacks(decision, driver, count, having[driver], rule.attribute)
        for driver, count in sorted(lacking.items())
        if count
    ]
    return Constraint(claim.name, rule.attribute, rule.distinct, needed, best, best_node, best_value, tuple(lines))


def _usable(counts: list[int], needs: Sequence[tuple[Alternative, int]]) -> int:
    """How many devices of one group the requests could use together, at most."""
    return min(counts[-1], sum(min(count, need) for count, (_, need) in zip(counts, needs, strict=False)))


def _text(element: object) -> str:
    value = element[1] if isinstance(element, tuple) else element
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lacks(decision: Decision, driver: str, count: int, have: int, attribute: str) -> str:
    names = _published_names(decision, driver)
    similar = similar_attributes(attribute, names)
    total = plural(count + have, "matching device")
    who = f"none of the {total} of the driver {driver} has" if not have else f"{count} of {total} of {driver} lack"
    text = f"{who} {attribute}"
    if similar:
        return f"{text}; what the driver publishes instead is {', '.join(similar)}"
    return f"{text}; it publishes {', '.join(sorted(names)[:6]) or 'no attributes'}"


def _published_names(decision: Decision, driver: str) -> set[str]:
    names: set[str] = set()
    for slice_ in decision.inventory.slices.values():
        if slice_.driver == driver:
            for device in slice_.devices[:4]:
                names.update(n if "/" in n else f"{driver}/{n}" for n in device.raw.attributes)
    return names


def similar_attributes(attribute: str, names: set[str]) -> list[str]:
    """Names that may mean the same, whatever their domain: pciRoot for pcieRoot."""
    short = attribute.rpartition("/")[2]
    by_short: dict[str, list[str]] = {}
    for name in sorted(names):
        by_short.setdefault(name.rpartition("/")[2].lower(), []).append(name)
    near = difflib.get_close_matches(short.lower(), by_short, n=2, cutoff=0.75)
    return [name for word in near for name in by_short[word] if name != attribute]
