"""Why claims do not fit, as data and as one sentence.

A ``Reason`` has a stable code, what it is about, what is the case, and what to do. The scheduler puts the sentence into
the pod's condition, ``why`` renders all of it; both read the waterfalls, which read the masks of the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kubedra.allocation.attempt import Attempt
from kubedra.allocation.bounds import impossible
from kubedra.allocation.claims import PreparedPod
from kubedra.allocation.fast import FastGuide, node_masks
from kubedra.allocation.inventory import Inventory
from kubedra.allocation.ledger import Ledger
from kubedra.allocation.outcomes import AllocationFailure, Shortage
from kubedra.allocation.search import NodeSelectable, check_node
from kubedra.allocation.waterfall import Step, Waterfall, waterfalls

REASON_CODES = {
    "claim-invalid": "the claim asks for something that can't be answered (unknown class, feature off, …)",
    "no-nodes": "there is no node to look at",
    "nothing-published": "no driver publishes devices",
    "pool-incomplete": "a pool lacks slices: its driver is publishing, or stopped while it did",
    "pool-invalid": "a pool contradicts itself",
    "class-matches-nothing": "no device passes the class's selectors",
    "selector-matches-too-few": "too few devices pass a selector of the request",
    "selector-fails": "a selector can't be evaluated on a device",
    "not-reachable": "the devices that match are not on the nodes in question",
    "feature-off": "a feature gate that is off keeps the devices back",
    "tainted": "the devices that match have taints that the request does not tolerate",
    "too-small": "no device can serve the requested capacity",
    "in-use": "the devices that match are held by others",
    "no-room": "the counters or capacities of the devices that match are used up",
    "constraint": "the devices that are free don't agree with a constraint",
    "too-few-on-one-node": "there are enough devices, but on different nodes",
    "not-together": "each request could be served, all of them together can't",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: ``code`` (see REASON_CODES), what it is about, what is the case, what to do."""

    code: str
    subject: str
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the claims of a pod fit on none of the nodes."""

    reasons: tuple[Reason, ...]
    waterfalls: tuple[Waterfall, ...]
    # How many of the reasons belong together because they are about alternatives of one request.
    leading: int = 1

    def sentence(self) -> str:
        """The first reason in one sentence (all of them where a request has alternatives)."""
        if not self.reasons:
            return "no reason found"
        leading = self.reasons[: self.leading]
        texts = [f"{reason.subject}: {reason.detail}" if reason.subject else reason.detail for reason in leading]
        text = "; ".join(texts)
        return f"{text}; {leading[0].remedy}" if leading[0].remedy and len(leading) == 1 else text

    def to_tree(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "reasons": [asdict(reason) for reason in self.reasons],
            "requests": [
                {
                    "claim": fall.claim,
                    "request": fall.request,
                    "deviceClass": fall.class_name,
                    "needed": fall.needed or "all",
                    "steps": [asdict(step) for step in fall.steps],
                    "holders": [{"claim": claim, "devices": count} for claim, count in fall.holders],
                }
                for fall in self.waterfalls
            ],
        }


def explain(inventory: Inventory, ledger: Ledger, pod: PreparedPod, nodes: Sequence[str]) -> Explanation:
    """Say why a pod's claims fit on none of these nodes. Presumes that they don't."""
    for check in pod.checks:
        if isinstance(check, str):
            return Explanation((Reason("claim-invalid", "", check),), ())
    if not nodes:
        return Explanation((Reason("no-nodes", "", "there is no node to look at"),), ())
    falls = waterfalls(inventory, ledger, pod, nodes)
    reasons: list[Reason] = []
    place = leading = 0
    for claim in pod.claims:
        for request in claim.requests:
            mine = falls[place : place + len(request.alternatives)]
            place += len(request.alternatives)
            stopped = [(fall, step) for fall in mine if (step := fall.stopped_by()) is not None]
            if mine and len(stopped) == len(mine):
                reasons += [_reason(fall, step) for fall, step in stopped]
                leading = leading or len(stopped)
    pools = _pool_reasons(inventory, nodes)
    if not reasons or _nothing_current(falls):
        # Without one complete pool everything else follows.
        reasons, leading = [*pools, *reasons], leading if not pools else 1
    elif any(reason.code in _PERHAPS_POOLS for reason in reasons):
        reasons += pools
    if not reasons:
        reasons.append(_together(inventory, ledger, pod, nodes))
    return Explanation(tuple(reasons), tuple(falls), max(leading, 1))


_PERHAPS_POOLS = frozenset(
    ("nothing-published", "class-matches-nothing", "selector-matches-too-few", "pool-incomplete")
)


def _nothing_current(falls: Sequence[Waterfall]) -> bool:
    return all(fall.steps[1].count == 0 for fall in falls)


def _reason(fall: Waterfall, step: Step) -> Reason:
    subject = f"claim {fall.claim}, request {fall.request}"
    needed = f"{fall.needed} requested" if fall.needed else "all requested, at least one is needed"
    before = fall.before(step)
    had = before.count if before is not None else 0
    if fall.failing and step.code in ("class", "selector", "reachable"):
        return Reason(
            "selector-fails",
            subject,
            f"a selector can't be evaluated on {fall.failing[0][1]}",
            "guard optional attributes with has() or .?name.orValue()",
        )
    match step.code:
        case "published":
            return Reason("nothing-published", subject, "no driver publishes devices", "install or start a driver")
        case "current":
            detail = f"{step.count} of {had} devices are in complete current pools, {needed}"
            return Reason("pool-incomplete", subject, detail, "look at the driver: it is publishing, or stopped")
        case "class":
            detail = (
                f"{step.count} of {had} devices pass the selector of class {fall.class_name}: {step.text} ({needed})"
            )
            return Reason("class-matches-nothing", subject, detail)
        case "selector":
            detail = f"{step.count} of {had} devices match {step.text}, {needed}"
            return Reason("selector-matches-too-few", subject, detail, "relax the selector or lower the count")
        case "reachable" if step.count >= max(fall.needed, 1):
            return _spread(subject, fall, step, "match")
        case "reachable":
            detail = f"{_match(had)}, {step.count} of them on the nodes in question, {needed}"
            return Reason("not-reachable", subject, detail)
        case "usable":
            return Reason("feature-off", subject, f"feature gates that are off keep back {had - step.count} devices")
        case "tolerated":
            taints = ", ".join(sorted(fall.untolerated)[:3])
            detail = f"{_match(had)}, {_of(had - step.count)} tainted ({taints}), {needed}"
            return Reason("tainted", subject, detail, "tolerate the taint, or have it removed")
        case "size":
            detail = f"{_match(had)}, {step.count} of them can serve the requested capacity, {needed}"
            return Reason("too-small", subject, detail, "request less capacity")
        case "free":
            detail = f"{_match(had)}, {_of(step.count)} free, {needed}{_holders(fall)}"
            if step.count >= max(fall.needed, 1):
                detail += f"; the best node, {step.node or 'any'}, has {step.best}"
            return Reason("in-use", subject, detail, "wait until one is released")
        case "room":
            detail = f"{had} free, for {step.count} of them counters and capacity are left, {needed}"
            if step.best:
                detail += f"; the best node, {step.node}, has {step.best}"
            return Reason("no-room", subject, detail + _holders(fall), "wait until partitions or shares are released")
    detail = (
        f"{step.text}: the best node{', ' + step.node + ',' if step.node else ''} has {step.best} that agree, {needed}"
    )
    return Reason("constraint", subject, detail, "drop the constraint or lower the count")


def _match(count: int) -> str:
    return f"{count} device matches" if count == 1 else f"{count} devices match"


def _of(count: int) -> str:
    return f"{count} of them is" if count == 1 else f"{count} of them are"


def _spread(subject: str, fall: Waterfall, step: Step, verb: str) -> Reason:
    detail = f"{step.count} devices {verb}, but no node has {fall.needed}; the best, {step.node}, has {step.best}"
    return Reason("too-few-on-one-node", subject, detail, "lower the count, or use a node with more devices")


def _holders(fall: Waterfall) -> str:
    if not fall.holders:
        return ""
    names = [claim for claim, _ in fall.holders[:3]]
    more = len(fall.holders) - len(names)
    return f" (held by {', '.join(names)}{f' and {more} more' if more else ''})"


def _pool_reasons(inventory: Inventory, nodes: Sequence[str]) -> list[Reason]:
    found: dict[tuple[str, str], Reason] = {}
    for name in nodes:
        view = inventory.node_view(name)
        for pool in (*view.incomplete, *view.invalid):
            subject = f"pool {pool.key[0]}/{pool.key[1]}"
            if pool.state == "incomplete":
                detail = (
                    f"pool {pool.key[1]} incomplete ({pool.found}/{pool.expected} slices, generation {pool.generation})"
                )
                reason = Reason("pool-incomplete", subject, detail, "look at its driver: it is publishing, or stopped")
            else:
                reason = Reason("pool-invalid", subject, pool.problem, "correct what its driver publishes")
            found.setdefault(pool.key, reason)
    return list(found.values())


def _together(inventory: Inventory, ledger: Ledger, pod: PreparedPod, nodes: Sequence[str]) -> Reason:
    """Each request fits somewhere: find what keeps them apart on the node that comes nearest."""
    shortage: Shortage | None = None
    for name in nodes[:500]:
        view = inventory.node_view(name)
        attempt = Attempt(view, ledger, pod, inventory.features)
        try:
            everything = check_node(view, pod, attempt, NodeSelectable(attempt))
        except AllocationFailure as failure:
            return Reason("claim-invalid", f"node {name}", str(failure))
        masks = node_masks(view, ledger, pod, attempt)
        if masks is None:
            continue
        found = impossible(attempt, FastGuide(attempt, masks, everything), everything)
        if found is None:
            return Reason("not-together", f"node {name}", "each request could be served, all of them together can't")
        if shortage is None or shortage.code == "too-few-devices":
            shortage = found
    if shortage is None:
        return Reason("not-together", "", "each request could be served, all of them together can't")
    subject = f"claim {shortage.claim}"
    match shortage.code:
        case "too-few-devices":
            subject += f", request {shortage.request}"
            detail = (
                f"no node serves all requests; where the others fit, {shortage.found} of {shortage.needed} are left"
            )
        case "too-few-devices-together":
            detail = f"the requests need {shortage.needed} devices together, at most {shortage.found} can be had"
        case "no-matching-value":
            detail = f"matchAttribute {shortage.request}: no value is common to enough devices of every request"
        case "too-few-distinct-values":
            detail = f"distinctAttribute {shortage.request}: {shortage.found} values for {shortage.needed} devices"
        case _:
            detail = f"counter {shortage.request}: less is left than the requests need together"
    return Reason("not-together", subject, detail)
