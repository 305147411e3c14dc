"""Cards that are cut into parts or shared: what of the nearest one is used up, by whom, and what can still be had."""

from __future__ import annotations

from collections import Counter

from kubedra.allocation.candidates import bits_of, free_mask, selected
from kubedra.allocation.claims import Alternative
from kubedra.allocation.inventory import NodeView
from kubedra.allocation.pools import PoolView, groups_allow
from kubedra.allocation.reasons import Reason
from kubedra.allocation.waterfall import Step, Waterfall
from kubedra.base.quantity import Quantity
from kubedra.insight.answers import plural, shortened
from kubedra.insight.decision import Decision, Question
from kubedra.insight.devices import counted, model
from kubedra.insight.holders import held_by, holder_text


def no_room(decision: Decision, question: Question, subject: str, fall: Waterfall, step: Step) -> Reason:
    """Counters or capacity are used up: on the card that comes nearest, what lacks and what can still be had."""
    alternative = alternative_of(decision, question, fall)
    shared = _nearest_share(decision, question, alternative) if alternative is not None else ""
    had = fall.before(step)
    count = had.count if had is not None else 0
    left = "none of them" if not step.count else f"only {step.count} of them"
    match = "matches and is" if count == 1 else "match and are"
    cards = "it is part of" if count == 1 else "they are parts of"
    too_much = f"too much of {'the card' if count == 1 else 'the cards'} {cards} is in use"
    if shared:
        too_much = "less than what is asked for is left of " + ("its capacity" if count == 1 else "their capacity")
    detail = (
        f"{plural(count, 'device')} {match} not taken, but {too_much}:"
        f" {left} can be had, {fall.needed or 'at least 1'} needed"
    )
    if shared:
        detail += f"; nearest: {shared}"
    found = _nearest_card(decision, question, alternative) if alternative is not None else None
    if found is not None:
        lacking, fitting = found
        if lacking:
            detail += f"; nearest: {lacking}"
        if fitting:
            detail += f"; what still fits there: {fitting}"
    remedy = "wait until one of these pods has ended, or ask for a smaller part"
    return Reason("no-room", subject, detail + held_by(decision, fall), remedy)


def _nearest_share(decision: Decision, question: Question, alternative: Alternative) -> str:
    """The shared device of which most of what is asked for is left."""
    best: tuple[int, str] | None = None
    for node in question.nodes[:500]:
        for pool, _ in decision.inventory.node_view(node).candidates:
            state = pool.current(decision.ledger)
            chosen, _errors = selected(pool, alternative.ask.selection)
            for bit in bits_of(chosen & state.shared):
                device = pool.devices[bit]
                used = state.consumed.get(bit, {})
                for key, total, _item in device.capacity.entries:
                    asked = alternative.ask.capacity_requests.get(key, total)
                    left = total - Quantity.parse(f"{used.get(key, 0)}n")
                    if left < asked and (best is None or left.nano - asked.nano > best[0]):
                        text = f"{device.name} on {node} has {left} of {total} {key} left, {asked} asked for"
                        best = left.nano - asked.nano, text
    return "" if best is None else best[1]


def _nearest_card(decision: Decision, question: Question, alternative: Alternative) -> tuple[str, str] | None:
    features = decision.inventory.features
    best: tuple[int, str, NodeView, PoolView, int] | None = None
    for node in question.nodes[:500]:
        view = decision.inventory.node_view(node)
        for pool, _ in view.candidates:
            if not pool.needs:
                continue
            state = pool.current(decision.ledger)
            chosen, _errors = selected(pool, alternative.ask.selection)
            for bit in bits_of(chosen & ~state.exclusive & ~free_mask(pool, state, alternative.ask, features)):
                use = pool.devices[bit].consumes
                if use is None:
                    continue
                short = [index for index, amount in pool.needs[use] if state.left[index] < amount]
                if best is None or len(short) < best[0]:
                    best = len(short), node, view, pool, bit
    if best is None:
        return None
    _, node, _, pool, bit = best
    state = pool.current(decision.ledger)
    use = pool.devices[bit].consumes
    assert use is not None
    names = {index: key for key, index in pool.counter_index.items()}
    lacks = [
        f"{names[index][1]} ({_amount(state.left[index])} left, {_amount(amount)} needed)"
        for index, amount in pool.needs[use]
        if state.left[index] < amount
    ]
    sets = {names[index][0] for index, _ in pool.needs[use]}
    if not groups_allow(state.groups, use):
        lacks.append("the partitions in use on it are not compatible")
    device = pool.devices[bit]
    takers = _takers(decision, pool, {index for index, amount in pool.needs[use] if state.left[index] < amount})
    lacking = f"device {device.name} on {node} lacks {shortened(lacks, 4)} of {'/'.join(sorted(sets))}"
    if takers:
        lacking += f", which {'is' if len(lacks) == 1 else 'are'} used by {shortened(takers)}"
    fitting: Counter[str] = Counter()
    for other in range(len(pool.devices)):
        candidate = pool.devices[other]
        need = candidate.consumes
        if need is None or not {names[index][0] for index, _ in pool.needs[need]} & sets:
            continue
        if state.fitting >> other & 1 and not state.exclusive >> other & 1:
            fitting[model(candidate.raw, candidate.slice.driver)] += 1
    return lacking, counted(fitting, 4).replace(", ", " or ") if fitting else "nothing"


def _takers(decision: Decision, pool: PoolView, counters: set[int]) -> list[str]:
    """Devices in use that consume these counters, and who holds them."""
    use = decision.ledger.use_of(pool.key)
    found = []
    for device in (*pool.devices, *pool.elsewhere):
        holders = [*use.exclusive.get(device.name, ()), *(claim for claim, _ in use.shares.get(device.name, {}))]
        if not holders or device.consumes is None:
            continue
        if counters & {index for index, amount in pool.needs[device.consumes] if amount}:
            found.append(f"{device.name} of {holder_text(decision.snapshot, holders[0])}")
    return found


def _amount(nano: int) -> str:
    return str(Quantity.parse(f"{max(nano, 0)}n")) if nano % 1_000_000_000 else str(max(nano, 0) // 1_000_000_000)


def alternative_of(decision: Decision, question: Question, fall: Waterfall) -> Alternative | None:
    """The prepared request that a waterfall is about."""
    for claims, _ in question.groups:
        for claim in decision.allocator.prepare(claims).claims:
            for request in claim.requests:
                for alternative in request.alternatives:
                    if claim.name == fall.claim and alternative.name == fall.request:
                        return alternative
    return None
