"""The allocator's reasons in the words of somebody who wants a device and does not know DRA.

``allocation.reasons`` says what stopped a request; here it gets what only a reader of the whole cluster can add: who
holds the devices, which values come nearest, which names were meant, what of a card is still to be had.
"""

from __future__ import annotations

from kubedra.allocation.candidates import bits_of
from kubedra.allocation.reasons import Explanation, Reason
from kubedra.allocation.waterfall import Step, Waterfall
from kubedra.insight.answers import Answer, Constraint, plural, shortened
from kubedra.insight.decision import Decision, Question
from kubedra.insight.holders import held_by
from kubedra.insight.node_groups import rejections_text
from kubedra.insight.partitions import alternative_of, no_room
from kubedra.insight.relaxing import accesses, nearest_values, similar_names
from kubedra.insight.trying import class_devices


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
        case "in-use" if step.count == had and had < max(fall.needed, 1):
            detail = f"the cluster has {plural(had, 'device')} that match{'es' if had == 1 else ''}"
            detail = detail.replace("0 devices that match", "no device that matches")
            remedy = "add devices, or ask for fewer"
            return Reason("too-few-devices", reason.subject, f"{detail}, {needed} {verb} needed", remedy)
        case "in-use":
            free = f"{plural(had, 'device')} match{'es' if had == 1 else ''}, {step.count} of them "
            free += f"{'is' if step.count == 1 else 'are'} free, {needed} {verb} needed"
            if step.count >= max(fall.needed, 1):
                free += f" on one node; the best node, {step.node}, has {step.best}" if step.node else " on one node"
            held = held_by(decision, fall)
            return Reason(reason.code, reason.subject, free + held, "wait until one is released, or see below")
        case "not-reachable":
            where = f"{plural(had, 'device')} match{'es' if had == 1 else ''}, but "
            where += "on nodes that can't run the pod" if not step.count else f"only {step.count} on nodes that may"
            detail = f"{where} ({rejections_text(decision, question)}), {needed} {verb} needed"
            return Reason(reason.code, reason.subject, detail, "let the pod run on the nodes that have the devices")
        case "tainted":
            taints = shortened(sorted(fall.untolerated))
            lost = had - step.count
            it = "it is" if had == 1 else f"{lost} of them {'is' if lost == 1 else 'are'}"
            detail = f"{plural(had, 'device')} match{'es' if had == 1 else ''}, but {it} tainted ({taints}),"
            detail += f" {needed} {verb} needed"
            return Reason(reason.code, reason.subject, detail, "tolerate the taint, or have it removed")
        case "no-room":
            return no_room(decision, question, reason.subject, fall, step)
        case "constraint":
            report = next((c for c in answer.constraints if step.text.endswith(f" {c.attribute}")), None)
            if report is not None:
                return _constraint(reason, report)
    return reason


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
    text = text.partition(". consider using CEL")[0].removeprefix(f"claim {fall.claim}: ").partition("\n")[0]
    if failing == total:
        detail = f"{text}; it fails on every device"
    else:
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
