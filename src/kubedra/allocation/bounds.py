"""Counting before searching: proofs that no choice of devices can satisfy what is still to be allocated.

Each proof relaxes the problem until it is easy and shows that even the easier one has no solution:
* a request has fewer devices left than it needs;
* all requests together need more devices (or shares) than there are: a matching that is too small;
* no single value of a matchAttribute leaves every covered request enough devices;
* a distinctAttribute has fewer values than devices are needed;
* the least that the requests can consume of a counter is more than is left.

Finding no proof means nothing. Alternatives of firstAvailable requests count only in the first and third proof; All
requests in none but the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubedra.allocation.attempt import Attempt
from kubedra.allocation.candidates import bits_of, takes
from kubedra.allocation.claims import Alternative
from kubedra.allocation.outcomes import Shortage

if TYPE_CHECKING:
    from kubedra.allocation.fast import FastGuide


@dataclass(slots=True)
class _Need:
    claim: int
    alternative: Alternative
    count: int
    mask: int


def impossible(
    attempt: Attempt,
    guide: FastGuide,
    everything: dict[Alternative, list[int]],
    claim: int = 0,
    request: int = 0,
    current: Alternative | None = None,
    done: int = 0,
) -> Shortage | None:
    """Why nothing from a request of a claim on can be allocated, or None if that isn't proven.

    ``current`` and ``done``: the alternative in progress of that request and how many devices it has.
    """
    needs: list[_Need] = []
    claims = attempt.pod.claims
    for number in range(claim, len(claims)):
        prepared = claims[number]
        for place in range(request if number == claim else 0, len(prepared.requests)):
            each = prepared.requests[place]
            here = number == claim and place == request and current is not None
            alternatives = [current] if here and current is not None else each.alternatives
            best = 0
            enough = False
            for alternative in alternatives:
                if alternative.all_devices:
                    enough = enough or bool(everything[alternative])
                    continue
                mask = guide.live(number, alternative)
                count = alternative.count - (done if here else 0)
                found = mask.bit_count()
                best = max(best, found)
                enough = enough or found >= count
                if len(alternatives) == 1 and count:
                    needs.append(_Need(number, alternative, count, mask))
            if not enough:
                first = alternatives[0]
                need = 1 if first.all_devices else first.count
                return Shortage("too-few-devices", prepared.name, each.name, need, best)
    return _too_few_together(attempt, needs) or _constraints(attempt, guide, needs) or _counters(attempt, needs)


def _too_few_together(attempt: Attempt, needs: list[_Need]) -> Shortage | None:
    real = [need for need in needs if not need.alternative.ask.admin]
    total = sum(need.count for need in real)
    if len(real) < 2 or all(need.mask.bit_count() >= total for need in real):
        return None
    flow = _flow(attempt, real, [need.mask for need in real])
    if flow >= total:
        return None
    return Shortage("too-few-devices-together", attempt.pod.claims[real[0].claim].name, "", total, flow)


def _flow(attempt: Attempt, needs: list[_Need], masks: list[int]) -> int:
    """How many devices or shares the needs can get at most, in a matching of requests to devices."""
    union = 0
    for mask in masks:
        union |= mask
    # Devices that the same requests could get are one group: [slots, devices].
    groups: dict[int, list[int]] = {}
    consumable = attempt.features.consumable_capacity
    for bit in bits_of(union):
        member = 0
        for index, mask in enumerate(masks):
            member |= (mask >> bit & 1) << index
        slots = 1
        if consumable and attempt.devices[bit].multi:
            slots = _shares(attempt, bit, [need for i, need in enumerate(needs) if member >> i & 1])
        entry = groups.setdefault(member, [0, 0])
        entry[0] += slots
        entry[1] += 1
    return _max_flow(
        [need.count for need in needs],
        [(member, slots, devices) for member, (slots, devices) in groups.items()],
    )


def _max_flow(wanted: list[int], groups: list[tuple[int, int, int]]) -> int:
    """Requests with the devices they want, groups with (members, slots, devices): a request takes a device once."""
    edges = [[0] * len(groups) for _ in wanted]
    used = [0] * len(groups)
    total = 0
    for source, count in enumerate(wanted):
        for _ in range(count):
            # Breadth first over requests: who could take another group so that its place becomes free?
            parent: dict[int, tuple[int, int]] = {}
            queue, seen_groups = [source], set()
            end = -1
            while queue and end < 0:
                request = queue.pop()
                for group, (member, slots, devices) in enumerate(groups):
                    if group in seen_groups or not member >> request & 1 or edges[request][group] >= devices:
                        continue
                    seen_groups.add(group)
                    parent[~group] = (request, group)
                    if used[group] < slots:
                        end = group
                        break
                    for other in range(len(wanted)):
                        if edges[other][group] and other not in parent and other != source:
                            parent[other] = (~group, group)
                            queue.append(other)
            if end < 0:
                break
            used[end] += 1
            node = ~end
            while True:
                request, group = parent[node]
                edges[request][group] += 1
                if request == source:
                    break
                back, given = parent[request]
                edges[request][given] -= 1
                node = back
            total += 1
    return total


def _shares(attempt: Attempt, bit: int, needs: list[_Need]) -> int:
    """How many more shares of a device there can be, if all of them were the smallest."""
    most = sum(need.count for need in needs)
    device = attempt.devices[bit]
    used = attempt.consumed(bit)
    least: dict[str, int] = {}
    for need in needs:
        taken = takes(device, need.alternative.ask, attempt.features)
        if taken is None:
            continue
        for key, amount in taken.items():
            least[key] = min(least.get(key, amount.nano), amount.nano)
    for key, total, _ in device.capacity.entries:
        amount_ = least.get(key, 0)
        if amount_ > 0:
            most = min(most, (total.nano - used.get(key, 0)) // amount_)
    return max(most, 0)


def _constraints(attempt: Attempt, guide: FastGuide, needs: list[_Need]) -> Shortage | None:
    for number, claim in enumerate(attempt.pod.claims):
        for index, constraint in enumerate(claim.constraints):
            covered = [n for n in needs if n.claim == number and index in n.alternative.constraints]
            if not covered:
                continue
            if constraint.distinct:
                found, total = _distinct(attempt, guide, covered, constraint.attribute)
                if found < total:
                    return Shortage("too-few-distinct-values", claim.name, constraint.attribute, total, found)
            elif not _match(attempt, guide, covered, constraint.attribute):
                total = sum(need.count for need in covered)
                return Shortage("no-matching-value", claim.name, constraint.attribute, total, 0)
    return None


def _match(attempt: Attempt, guide: FastGuide, covered: list[_Need], attribute: str) -> bool:
    total = sum(need.count for need in covered)
    elements: set[object] = set()
    columns = [guide.values(attribute, need.alternative) for need in covered]
    for values, mask in columns[0].items():
        if mask & covered[0].mask:
            elements |= values
    for element in elements:
        masks = []
        for need, column in zip(covered, columns, strict=True):
            mask = _with(column.items(), element) & need.mask
            if mask.bit_count() < need.count:
                break
            masks.append(mask)
        else:
            if len(masks) == 1 or all(mask.bit_count() >= total for mask in masks):
                return True
            if any(n.alternative.ask.admin for n in covered) or _flow(attempt, covered, masks) >= total:
                return True
    return False


def _with(column: Iterable[tuple[frozenset[tuple[str, object]], int]], element: object) -> int:
    mask = 0
    for values, devices in column:
        if element in values:
            mask |= devices
    return mask


def _distinct(attempt: Attempt, guide: FastGuide, covered: list[_Need], attribute: str) -> tuple[int, int]:
    total = sum(need.count for need in covered)
    members: dict[object, int] = {}
    for index, need in enumerate(covered):
        for values, mask in guide.values(attribute, need.alternative).items():
            if mask & need.mask:
                members[values] = members.get(values, 0) | 1 << index
    return _max_flow([need.count for need in covered], [(member, 1, 1) for member in members.values()]), total


def _counters(attempt: Attempt, needs: list[_Need]) -> Shortage | None:
    for place, (pool, offset) in enumerate(attempt.node.candidates):
        if not pool.needs:
            continue
        left = attempt.left(place)
        whole = ((1 << len(pool.devices)) - 1) << offset
        least = [0] * len(left)
        for need in needs:
            if need.mask & ~whole or not need.mask:
                continue
            smallest: list[int] | None = None
            for use in {attempt.devices[bit].consumes for bit in bits_of(need.mask)}:
                amounts = [0] * len(left)
                if use is not None:
                    for index, amount in pool.needs[use]:
                        amounts[index] = amount
                smallest = amounts if smallest is None else [min(a, b) for a, b in zip(smallest, amounts, strict=True)]
            # Shares of a device pay together, so nothing is certain for devices that can be shared.
            if smallest is None or any(attempt.devices[bit].multi for bit in bits_of(need.mask)):
                continue
            least = [a + need.count * b for a, b in zip(least, smallest, strict=True)]
        for index, amount in enumerate(least):
            if amount > max(left[index], 0):
                name = next(key for key, value in pool.counter_index.items() if value == index)
                claim = attempt.pod.claims[needs[0].claim].name
                return Shortage("too-few-counters", claim, f"{name[0]}/{name[1]}", 0, 0)
    return None
