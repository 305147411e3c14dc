"""The allocator's reasons in the words of somebody who wants a device and does not know DRA.

``allocation.reasons`` says what stopped a request; here it gets what only a reader of the whole cluster can add: who
holds the devices, which values come nearest, which names were meant, what of a card is still to be had.
"""

from __future__ import annotations

from collections import Counter

from kubedra.allocation.candidates import bits_of, free_mask, selected
from kubedra.allocation.claims import Alternative
from kubedra.allocation.inventory import NodeView
from kubedra.allocation.pools import PoolView, groups_allow
from kubedra.allocation.reasons import Explanation, Reason
from kubedra.allocation.waterfall import Step, Waterfall
from kubedra.base.quantity import Quantity
from kubedra.insight.answers import Answer, Constraint, plural, shortened
from kubedra.insight.decision import Decision, Question
from kubedra.insight.devices import counted, model
from kubedra.insight.holders import holder_text
from kubedra.insight.relaxing import accesses, nearest_values, similar_names
from kubedra.insight.trying import class_devices

MOST_HOLDERS = 3


def reworded(decision: Decision, question: Question, explanation: Explanation, answer: Answer) -> list[Reason]:
    """The reasons of an explanation, with what a person needs to act on them."""
    stops = {
        f"claim {fall.claim}, request {fall.request}": (fall, step)
        for fall in explanation.waterfalls
        if (step := fall.stopped_by()) is not None
    }
    out = []
    for reason in explanation.reasons:
        fall, step = stops.get(reason.subject, (None, None))
        if fall is not None and step is not None:
            reason = _request_reason(decision, question, reason, fall, step, answer)
        elif reason.subject.startswith("pool "):
            driver = reason.subject.removeprefix("pool ").partition("/")[0]
            detail = reason.detail
            if reason.code == "pool-incomplete":
                detail += "; its devices can't be used before all its slices are published"
            else:
                detail = f"{reason.subject} is invalid: {detail}"
            reason = Reason(reason.code, f"driver {driver}", detail, reason.remedy)
        out.append(reason)
    if out and out[0].subject.startswith("driver ") and out[0].code == "pool-incomplete":
        # What follows from it is no news.
        out = [reason for reason in out if reason.code != out[0].code or reason.subject.startswith("driver ")]
    return out


def attempt_reason(question: Question, message: str) -> Reason:
    """An error of the scheduler that is not a selector's, in its own words."""
    text = message.partition("filter plugin: ")[2] or message
    subject, colon, detail = text.partition(": ")
    if not colon or not subject.startswith("claim "):
        subject, detail = f"pod {question.pod.key}", text
    if "currently being updated" in text:
        remedy = "wait until the driver has published all slices of that pool; if that lasts, look at the driver"
        return Reason("pool-incomplete", subject, f"it {detail}" if detail.startswith("asks") else detail, remedy)
    if "currently invalid" in text or "invalid resource pools" in text:
        return Reason("pool-invalid", subject, detail, "correct what the driver publishes")
    return Reason("attempt-error", subject, detail, "correct the claim")


def _request_reason(
    decision: Decision, question: Question, reason: Reason, fall: Waterfall, step: Step, answer: Answer
) -> Reason:
    needed = plural(fall.needed, "device") if fall.needed else "all devices, at least one,"
    verb = "is" if fall.needed == 1 else "are"
    before = fall.before(step)
    had = before.count if before is not None else 0
    match reason.code:
        case "selector-fails":
            return failing_selector(decision, question, fall)
        case "class-matches-nothing":
            drivers = sorted({s.driver for s in decision.inventory.slices.values()})
            detail = (
                f"none of the {plural(had, 'published device')} is of the class {fall.class_name} ({step.text})"
                if not step.count
                else f"{plural(step.count, 'device')} of {had} {'is' if step.count == 1 else 'are'} of the class"
                f" {fall.class_name}, {needed} {verb} needed"
            )
            published = f"; devices are published by {shortened(drivers)}" if drivers else ""
            return Reason(reason.code, reason.subject, detail + published, "use another class, or install its driver")
        case "selector-matches-too-few":
            return _selector(decision, reason, fall, step, had)
        case "in-use":
            free = f"{plural(had, 'device')} match{'es' if had == 1 else ''}, {step.count} of them "
            free += f"{'is' if step.count == 1 else 'are'} free, {needed} {verb} needed"
            if step.count >= max(fall.needed, 1):
                free += f" on one node; the best node, {step.node}, has {step.best}" if step.node else " on one node"
            held = _held(decision, fall)
            return Reason(reason.code, reason.subject, free + held, "wait until one is released, or see below")
        case "no-room":
            return _room(decision, question, reason, fall, step)
        case "constraint":
            report = next((c for c in answer.constraints if step.text.endswith(f" {c.attribute}")), None)
            if report is not None:
                return _constraint(reason, report)
    return reason


def _held(decision: Decision, fall: Waterfall) -> str:
    if not fall.holders:
        return ""
    names = [holder_text(decision.snapshot, key) for key, _ in fall.holders]
    return f"; held by {shortened(names, MOST_HOLDERS)}"


def _selector(decision: Decision, reason: Reason, fall: Waterfall, step: Step, had: int) -> Reason:
    published = class_devices(decision, fall.class_name)
    detail = f"{step.count} of {plural(had, 'device')} match{'es' if step.count == 1 and had == 1 else ''} the selector"
    detail += f" {step.text}, {fall.needed or 'at least 1'} requested"
    told: set[tuple[bool, str]] = set()
    for access in accesses(step.text):
        if published.values(access) or (access.capacity, access.full_name) in told:
            continue
        told.add((access.capacity, access.full_name))
        word = "capacity" if access.capacity else "attribute"
        detail += f"; the {word} {access.name!r} exists on 0 of {plural(published.devices, 'device')}"
        near = [
            f"the {'capacity' if capacity else 'attribute'} {name.removeprefix(access.domain + '/')}"
            for capacity, name in similar_names(access, published)
        ]
        if near:
            detail += f" (nearest: {', '.join(near)})"
    near_values = [
        f"{n.name} {n.value} ({n.owners}{f'; {n.miss}' if n.miss else ''})"
        for n in nearest_values(step.text, published)[:3]
    ]
    if near_values:
        detail += f"; nearest: {', '.join(near_values)}"
    return Reason(reason.code, reason.subject, detail, "relax the selector, or add such devices")


def failing_selector(decision: Decision, question: Question, fall: Waterfall) -> Reason:
    """A selector that raises an error: on which device, what is missing there, and on how many more."""
    subject = f"claim {fall.claim}, request {fall.request}"
    alternative = alternative_of(decision, question, fall)
    if alternative is None:
        return Reason("selector-fails", subject, "a selector can't be evaluated")
    selection = alternative.ask.selection
    failing, total, text = 0, 0, ""
    for slice_ in decision.inventory.slices.values():
        row = selection.row(slice_)
        total += len(slice_.devices)
        failing += row.errors.bit_count()
        if row.errors and not text:
            index = next(bits_of(row.errors))
            device = slice_.devices[index]
            verdict = selection.verdict(slice_, index)
            text = selection.describe_error(verdict, fall.class_name, fall.claim, fall.request, device)
    text = text.partition(". consider using CEL")[0].removeprefix(f"claim {fall.claim}: ")
    detail = f"{text}; it fails on {failing} of {plural(total, 'device')}"
    detail += ", and one device that can't be judged keeps the pod from every node"
    remedy = "guard what not all devices have, for example with has(…) && … or .?name.orValue(false)"
    return Reason("selector-fails", subject, detail, remedy)


def _constraint(reason: Reason, report: Constraint) -> Reason:
    kind = "distinctAttribute" if report.distinct else "matchAttribute"
    if report.distinct:
        detail = f"{plural(report.needed, 'device')} must differ in {report.attribute} ({kind}); "
        detail += (
            f"the best node, {report.node}, has {report.best} different values" if report.best else "no device has it"
        )
    else:
        detail = f"{plural(report.needed, 'device')} must have the same {report.attribute} ({kind}); "
        if report.best:
            detail += f"at best {report.best} {'is' if report.best == 1 else 'are'} free with one value"
            detail += f", {report.value} on {report.node}"
        else:
            detail += "no free device that matches has that attribute"
    if report.lacking:
        detail += f"; {'; '.join(report.lacking)}"
    remedy = "drop the constraint or lower the count"
    if report.lacking and not report.best:
        remedy = "name an attribute that the driver publishes, or have the driver publish this one"
    return Reason(reason.code, reason.subject, detail, remedy)


def alternative_of(decision: Decision, question: Question, fall: Waterfall) -> Alternative | None:
    """The prepared request that a waterfall is about."""
    for claims, _ in question.groups:
        for claim in decision.allocator.prepare(claims).claims:
            for request in claim.requests:
                for alternative in request.alternatives:
                    if claim.name == fall.claim and alternative.name == fall.request:
                        return alternative
    return None


# ---- partitions ----


def _room(decision: Decision, question: Question, reason: Reason, fall: Waterfall, step: Step) -> Reason:
    """Counters or capacity are used up: on the card that comes nearest, what lacks and what can still be had."""
    alternative = alternative_of(decision, question, fall)
    had = fall.before(step)
    count = had.count if had is not None else 0
    left = "none of them" if not step.count else f"only {step.count} of them"
    match = "matches and is" if count == 1 else "match and are"
    detail = (
        f"{plural(count, 'device')} {match} not taken, but too much of the cards they are parts of is in use:"
        f" {left} can be had, {fall.needed or 'at least 1'} needed"
    )
    found = _nearest_card(decision, question, alternative) if alternative is not None else None
    if found is not None:
        lacking, fitting = found
        if lacking:
            detail += f"; nearest: {lacking}"
        if fitting:
            detail += f"; what still fits there: {fitting}"
    remedy = "wait until one of these pods has ended, or ask for a smaller part"
    return Reason(reason.code, reason.subject, detail + _held(decision, fall), remedy)


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
