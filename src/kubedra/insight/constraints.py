"""How near a cluster comes to a claim's constraints: the largest group on one node, and who lacks the attribute."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

from kubedra.allocation.candidates import free_mask, value_masks
from kubedra.allocation.claims import Constraint as Rule
from kubedra.allocation.claims import PreparedClaim
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
        groups: dict[object, int] = {}
        for pool, offset in view.candidates:
            mask = 0
            for alternative, _ in needs:
                mask |= free_mask(pool, pool.current(decision.ledger), alternative.ask, features)
            mask &= view.masked.get(offset, -1)
            if not mask:
                continue
            known = 0
            for values, devices in value_masks(pool, rule.attribute, features).items():
                known |= devices
                here = (devices & mask).bit_count()
                for element in values if here else ():
                    groups[element] = groups.get(element, 0) + here
            lacking[pool.key[0]] += (mask & ~known).bit_count()
            having[pool.key[0]] += (mask & known).bit_count()
        size = len(groups) if rule.distinct else max(groups.values(), default=0)
        if size > best:
            best, best_node = size, node
            best_value = "" if rule.distinct else _text(max(groups, key=lambda element: groups[element]))
    lines = [
        _lacks(decision, driver, count, having[driver], rule.attribute)
        for driver, count in sorted(lacking.items())
        if count
    ]
    return Constraint(claim.name, rule.attribute, rule.distinct, needed, best, best_node, best_value, tuple(lines))


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
