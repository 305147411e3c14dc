"""Nodes that are alike, in one line each: what they have, and what stops the pod there.

5,000 nodes must fit a screen, so nodes are put together when they have the same devices and the same thing stops the
pod; only the numbers may differ, and then the line gives their range.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kubedra.allocation.waterfall import NODE_STEPS, Waterfall
from kubedra.insight.answers import NodeGroup
from kubedra.insight.decision import ELSEWHERE, Decision, Question
from kubedra.insight.devices import NO_DEVICES, Summaries
from kubedra.scheduler.filters.taint_toleration import tolerated
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import Rejection

_NUMBERS = re.compile(r"\d+(\.\d+)?")
# Taints that Kubernetes itself sets while something is wrong with a node.
CONDITIONS = {
    "node.kubernetes.io/not-ready": "the node is not ready",
    "node.kubernetes.io/unreachable": "the node does not answer",
    "node.kubernetes.io/unschedulable": "cordoned (kubectl uncordon lets pods in again)",
    "node.kubernetes.io/memory-pressure": "the node is short of memory",
    "node.kubernetes.io/disk-pressure": "the node is short of disk space",
    "node.kubernetes.io/pid-pressure": "the node is short of process ids",
    "node.kubernetes.io/network-unavailable": "the node's network is not set up",
    "node.cloudprovider.kubernetes.io/uninitialized": "the cloud provider has not set the node up yet",
}

# What a node's stop is called; the waterfall's words are about the whole cluster.
_CODES = {
    "reachable": "too-few-match",
    "usable": "feature-off",
    "tolerated": "tainted",
    "size": "too-small",
    "free": "in-use",
    "room": "no-room",
    "constraint": "constraint",
}


def node_groups(decision: Decision, question: Question, falls: Sequence[Waterfall]) -> list[NodeGroup]:
    """All nodes of the cluster, alike ones together, those that come nearest first."""
    summaries = Summaries()
    groups: dict[tuple[str, str, str], list[str]] = {}
    ranges: dict[tuple[str, str, str], list[tuple[int, ...]]] = {}
    rank: dict[tuple[str, str, str], int] = {}
    texts: dict[tuple[str, str, str], dict[str, None]] = {}
    alternatives: dict[tuple[str, str], list[Waterfall]] = {}
    for fall in falls:
        alternatives.setdefault((fall.claim, fall.request.partition("/")[0]), []).append(fall)
    for name, info in decision.view.nodes.items():
        has = summaries.of_view(decision.inventory.node_view(name))
        rejected = question.rejected.get(name)
        if rejected is not None:
            text = rejection_text(rejected, info, question.pod)
            # Nodes that differ only in numbers are alike; the first one's numbers are told.
            key = (has, "node-rejects", _NUMBERS.sub("#", text))
            groups.setdefault(key, []).append(name)
            texts.setdefault(key, {})[text] = None
            rank.setdefault(key, 0 if rejected.plugin == ELSEWHERE else -1)
            continue
        stop = _stop(alternatives, name)
        problem = pool_problem(decision, name)
        if problem and stop[0] == "too-few-match":
            stop = ("pool-incomplete", problem, (), stop[3])
        elif has == NO_DEVICES:
            stop = ("no-devices", _served_otherwise(info), (), -2)
        if stop[0] == "not-together" and question.failed:
            stop = ("would-fit", "it would do, if the selector could be evaluated on all devices", (), stop[3])
        key = (has, *stop[:2])
        groups.setdefault(key, []).append(name)
        ranges.setdefault(key, []).append(stop[2])
        rank[key] = max(rank.get(key, 0), stop[3])
    found = []
    for key in sorted(groups, key=lambda k: (-rank[k], -len(groups[k]), k)):
        has, code, text = key
        if key in texts:
            first = next(iter(texts[key]))
            text = first if len(texts[key]) == 1 else f"for example {first}"
        found.append(NodeGroup(tuple(groups[key]), has, code, _with_numbers(text, ranges.get(key, []))))
    return found


def _stop(alternatives: Mapping[tuple[str, str], list[Waterfall]], node: str) -> tuple[str, str, tuple[int, ...], int]:
    """What stops the pod on a node: code, text with places for numbers, the numbers, and how far it got."""
    for (_, request), mine in alternatives.items():
        stops = [_stop_of(fall, node) for fall in mine]
        if any(stop is None for stop in stops):
            continue
        # Of alternatives the one that got furthest says what is missing.
        stop = max((stop for stop in stops if stop is not None), key=lambda s: s[3])
        if len(alternatives) > 1:
            return stop[0], f"request {request}: {stop[1]}", stop[2], stop[3]
        return stop
    return "not-together", "each request could be served, all of them together can't", (), len(NODE_STEPS) + 2


def _stop_of(fall: Waterfall, node: str) -> tuple[str, str, tuple[int, ...], int] | None:
    counts = fall.nodes.get(node)
    if counts is None:
        return None
    need = max(fall.needed, 1)
    if min(counts) >= need:
        return None
    before = counts[0]
    for place, count in enumerate(counts):
        name = NODE_STEPS[place] if place < len(NODE_STEPS) else "constraint"
        if count < need:
            wanted = f"{need} needed"
            rank = place + 1 + (count > 0)
            match name:
                case "reachable":
                    return _CODES[name], "{} of its devices match, " + wanted, (count,), place + (count > 0)
                case "usable":
                    return _CODES[name], "{} match, a feature gate that is off keeps them back", (before,), rank
                case "tolerated":
                    return _CODES[name], "{} match, {} without a taint, " + wanted, (before, count), rank
                case "size":
                    return _CODES[name], "{} match, {} large enough, " + wanted, (before, count), rank
                case "free":
                    return _CODES[name], "{} match, {} free, " + wanted, (before, count), rank
                case "room":
                    text = "{} not taken, {} with counters and capacity left, " + wanted
                    return _CODES[name], text, (before, count), rank
            step = [s for s in fall.steps if s.code == "constraint"][place - len(NODE_STEPS)]
            attribute = step.text.partition(" ")[2]
            if not count:
                return _CODES[name], "{} free, none of them has a " + f"usable {attribute}, {wanted}", (before,), rank
            agree = "different in" if step.text.startswith("distinct") else "with one value of"
            return _CODES[name], "{} free, at most {} " + f"{agree} {attribute}, {wanted}", (before, count), rank
        if name != "constraint":
            before = count
    return None


def _served_otherwise(info: NodeInfo) -> str:
    """What a node without DRA devices has instead."""
    plugins = [f"{name}: {count}" for name, count in sorted(info.allocatable.items()) if "/" in name and count]
    plugins = [text for text in plugins if not text.startswith(("hugepages-", "attachable-volumes"))]
    if plugins:
        return f"no DRA driver publishes devices there (a device plugin serves {', '.join(plugins)})"
    return "no DRA driver publishes devices there"


def pool_problem(decision: Decision, node: str) -> str:
    """Which pools of a node can't be used for now, and why; "" when all can."""
    view = decision.inventory.node_view(node)
    parts = [f"its pool {pool.key[1]} of {pool.key[0]} is incomplete ({pool.problem})" for pool in view.incomplete]
    parts += [f"its pool {pool.key[1]} of {pool.key[0]} is invalid ({pool.problem})" for pool in view.invalid]
    return "; ".join(parts)


def _with_numbers(text: str, numbers: Sequence[tuple[int, ...]]) -> str:
    if "{}" not in text or not numbers:
        return text
    spans = []
    for column in zip(*numbers, strict=True):
        low, high = min(column), max(column)
        spans.append(str(low) if low == high else f"{low} to {high}")
    return text.format(*spans)


def rejections_text(decision: Decision, question: Question) -> str:
    """Why nodes can't run the pod, the most frequent reasons first."""
    texts: dict[str, int] = {}
    for name, rejected in question.rejected.items():
        text = rejection_text(rejected, decision.view.nodes[name], question.pod)
        texts[text] = texts.get(text, 0) + 1
    ordered = sorted(texts.items(), key=lambda item: -item[1])
    return "; ".join(f"{text} ({count} nodes)" if count > 1 else text for text, count in ordered[:3])


def rejection_text(rejected: Rejection, info: NodeInfo, pod: PodInfo) -> str:
    """A node's own reason in plain words."""
    match rejected.plugin:
        case "NodeUnschedulable":
            return "cordoned (kubectl uncordon lets pods in again)"
        case "TaintToleration":
            taints = [t for t in info.hard_taints if not tolerated(t, pod.spec.tolerations)]
            wrong = [CONDITIONS[t.key] for t in taints if t.key in CONDITIONS]
            if wrong:
                return ", ".join(dict.fromkeys(wrong))
            return f"the pod does not tolerate the node's taint {', '.join(map(taint_text, taints))}"
        case "NodeAffinity":
            wanted = _unmet_labels(pod, info.labels)
            return f"the pod's node selector or affinity excludes it{wanted}"
        case "NodeName":
            return f"the pod asks for the node {pod.node_name}"
        case "NodeResourcesFit":
            return ", ".join(_lacking(reason, info, pod) for reason in rejected.reasons)
    return ", ".join(rejected.reasons)


def taint_text(taint: object) -> str:
    """``key=value:Effect``."""
    key, value, effect = (getattr(taint, name) for name in ("key", "value", "effect"))
    return f"{key}{'=' + value if value else ''}:{effect}"


def _unmet_labels(pod: PodInfo, labels: Mapping[str, str]) -> str:
    unmet = [f"{key}={value}" for key, value in pod.spec.node_selector.items() if labels.get(key) != value]
    return f" (it wants {', '.join(unmet)})" if unmet else ""


def _lacking(reason: str, info: NodeInfo, pod: PodInfo) -> str:
    name = reason.removeprefix("Insufficient ")
    if name == reason:
        if reason != "Too many pods":
            return reason
        if not info.allowed_pods:
            return "the node says that it takes no pods (status.allocatable.pods)"
        return f"full: {len(info.pods)} of {info.allowed_pods} pods"
    total, used = info.allocatable.get(name, 0), info.requested.get(name, 0)
    wanted = pod.requests.get(name, 0)
    if name == "cpu":
        return f"too little cpu: {wanted / 1000:g} wanted, {max(total - used, 0) / 1000:g} of {total / 1000:g} free"
    if name in ("memory", "ephemeral-storage"):
        free = max(total - used, 0)
        return f"too little {name}: {_bytes(wanted)} wanted, {_bytes(free)} of {_bytes(total)} free"
    return f"too few {name}: {wanted} wanted, {max(total - used, 0)} of {total} free"


def _bytes(amount: int) -> str:
    for unit, size in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20)):
        if amount >= size:
            return f"{amount / size:.1f}".rstrip("0").rstrip(".") + unit
    return str(amount)
