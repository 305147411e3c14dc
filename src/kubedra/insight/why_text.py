"""An answer as text for one screen: what, why, where the devices go, what helps, what doesn't."""

from __future__ import annotations

import textwrap

from kubedra.allocation.reasons import Reason
from kubedra.allocation.waterfall import Step, Waterfall
from kubedra.insight.answers import Answer, NodeGroup, plural, shortened

WIDTH = 110
MOST_GROUPS = 6
_POOLS = ("pool-incomplete", "pool-invalid", "nothing-published")
MOST_REQUESTS = 4

_STEPS = {
    "published": "published in the cluster",
    "current": "in complete, current pools",
    "class": "of the class {class_name}",
    "selector": "match {text}",
    "reachable": "on nodes that may run the pod",
    "usable": "not kept back by a feature gate that is off",
    "tolerated": "without a taint that the request does not tolerate",
    "size": "large enough for the capacity that is asked for",
    "free": "free",
    "room": "with counters and capacity left",
}


def render(answer: Answer) -> list[str]:
    """The lines."""
    lines = _wrap(f"{_capital(answer.subject)} {answer.headline}.", "", "  ")
    first = answer.reasons[0] if answer.reasons else None
    if first is not None:
        why = f"{first.subject}: {first.detail}" if first.subject else first.detail
        lines += _wrap(f"Why: {why}.", "", "  ")
        if first.remedy and not answer.remedies:
            lines += _wrap(f"What to do: {first.remedy}.", "", "  ")
    more = answer.reasons[1:]
    if more:
        lines += ["", "Also:"]
        for reason in more[:4]:
            lines += _wrap(_one(reason), "  - ", "    ")
        if len(more) > 4:
            lines.append(f"  - and {len(more) - 4} more")
    for fall in answer.requests[:MOST_REQUESTS]:
        lines += ["", *_waterfall(answer, fall)]
    if len(answer.requests) > MOST_REQUESTS:
        lines.append(f"  (and {len(answer.requests) - MOST_REQUESTS} more requests: -o json shows all)")
    if answer.nodes:
        lines += ["", "What stops it on each kind of node:", *_groups(answer.nodes)]
    if answer.remedies:
        lines += ["", "What would help (each was tried out):"]
        for number, remedy in enumerate(answer.remedies, 1):
            place = f" -> it fits on {remedy.node}" if remedy.node else ""
            lines += _wrap(f"{remedy.text}{place}", f"  {number}. ", "     ")
            if remedy.change:
                lines.append(f"     {remedy.change}")
    elif answer.requests and not answer.remedies_cut and first is not None and first.code not in _POOLS:
        lines += ["", "Nothing that was tried would help on its own."]
    if answer.remedies_cut:
        found = "these are the fewest found, not all" if answer.remedies else "none was found so far"
        lines += [*([] if answer.remedies else [""]), f"The search for remedies ended at its limit: {found}."]
    if answer.no_help:
        lines += ["", "What can't help:"]
        for reason in answer.no_help:
            lines += _wrap(f"{_capital(reason.subject)}: {reason.detail}.", "  - ", "    ")
    for note in answer.notes:
        lines += ["", *_wrap(f"{note}.", "", "  ")]
    if answer.unseen:
        lines += ["", "Not seen, so the answer holds only as far:"]
        for text in answer.unseen:
            lines += _wrap(text, "  - ", "    ")
    return lines


def _one(reason: Reason) -> str:
    text = f"{reason.subject}: {reason.detail}" if reason.subject else reason.detail
    return f"{text}. What to do: {reason.remedy}" if reason.remedy else text


def _waterfall(answer: Answer, fall: Waterfall) -> list[str]:
    needed = plural(fall.needed, "device") if fall.needed else "all matching devices"
    name = answer.names.get((fall.claim, fall.request))
    who = f"{name} needs" if name else f"Claim {fall.claim}, request {fall.request!r}, needs"
    lines = _wrap(f"{who} {needed} on one node. Devices left after each step:", "", "  ")
    stopped = fall.stopped_by()
    rooms = stopped is not None and stopped.code == "room" and any(step is stopped for step in fall.steps)
    width = max(len(str(step.count)) for step in fall.steps)
    for step in fall.steps:
        if stopped is not None and step is not stopped and not step.count:
            break
        mark = "  <- too few from here on" if step is stopped else ""
        if step.code == "constraint":
            lines += _constraint_line(answer, fall, step, width, mark)
            continue
        text = _STEPS[step.code].format(class_name=fall.class_name, text=step.text)
        where = f" (at most {step.best} on one node)" if _tell_best(fall, step) else ""
        lines += _wrap(f"{text}{where}{mark}", f"  {step.count:>{width}}  ", " " * (width + 4))
        if step.code == ("room" if rooms else "free") and fall.holders:
            held = [f"{answer.holders.get(key, key)}: {count}" for key, count in fall.holders[:3]]
            if len(fall.holders) > 3:
                held.append(f"{len(fall.holders) - 3} more claims")
            lines += _wrap(f"held by {', '.join(held)}", " " * (width + 4), " " * (width + 6))
    return lines


def _tell_best(fall: Waterfall, step: Step) -> bool:
    return bool(step.node) and step.best < max(fall.needed, 1) <= step.count


def _constraint_line(answer: Answer, fall: Waterfall, step: Step, width: int, mark: str) -> list[str]:
    kind, _, attribute = step.text.partition(" ")
    found = next((c for c in answer.constraints if c.claim == fall.claim and c.attribute == attribute), None)
    if kind == "distinctAttribute":
        text = f"with different {attribute} on one node, at best"
    else:
        text = f"with the same {attribute} on one node, at best"
        if found is not None and found.node and step.best:
            text += f" ({found.node}, {found.value})"
    return _wrap(f"{text}{mark}", f"  {step.best:>{width}}  ", " " * (width + 4))


def _groups(groups: list[NodeGroup]) -> list[str]:
    lines = []
    for group in groups[:MOST_GROUPS]:
        names = shortened(group.nodes, 2)
        count = f"{len(group.nodes)} nodes, " if len(group.nodes) > 1 else ""
        has = f" ({count}{group.has} each)" if len(group.nodes) > 1 else f" ({group.has})"
        lines += _wrap(f"{names}{has}: {group.why}", "  - ", "    ")
    rest = groups[MOST_GROUPS:]
    if rest:
        total = sum(len(group.nodes) for group in rest)
        lines.append(f"  - {plural(total, 'node')} of {len(rest)} more kinds (-o json shows all)")
    return lines


def _wrap(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
