"""What evicting pods could do, for the message alone: we never evict to make room.

Upstream tries, on every node where removing pods might help, whether the pod would fit without all pods of a lower
priority, and counts why not. The same sentence is made here. Where it would fit, upstream evicts and its message ends
early; ours ends there too, and our own sentence says that pods of a lower priority are in the way.

Upstream: pkg/scheduler/framework/preemption/preemption.go, plugins/defaultpreemption.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

from kubedra.scheduler import filters
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import (
    NO_VICTIMS,
    PREEMPTION_NOT_HELPFUL,
    AttemptError,
    Rejection,
    preemption_sentence,
)
from kubedra.scheduler.view import ClusterView

NEVER = "preemption: not eligible due to preemptionPolicy=Never."
NODES_TRIED = 100

ClaimsCheck = Callable[[NodeInfo], Generator[None, None, Rejection | AttemptError | None]]


def explain(
    pod: PodInfo,
    view: ClusterView,
    rejections: Mapping[str, Rejection],
    check: filters.Filter,
    claims: ClaimsCheck | None,
) -> Generator[None, None, str | None]:
    """The sentence about preemption; None when evicting pods would have made room."""
    if pod.spec.preemption_policy == "Never":
        return NEVER
    reasons: list[str] = []
    tried = 0
    for name, rejected in rejections.items():
        node = view.nodes[name]
        victims = () if rejected.unresolvable else lower(pod, node)
        if not victims:
            reasons.append(PREEMPTION_NOT_HELPFUL if rejected.unresolvable else NO_VICTIMS)
            continue
        tried += 1
        if tried > NODES_TRIED:
            reasons.append(NO_VICTIMS)
            continue
        yield
        answer: Rejection | AttemptError | None = check(without(node, victims))
        if answer is None and claims is not None:
            answer = yield from claims(node)
        if answer is None:
            return None
        reasons += answer.reasons if isinstance(answer, Rejection) else [answer.message]
    return preemption_sentence(reasons, len(view.nodes))


def lower(pod: PodInfo, node: NodeInfo) -> tuple[PodInfo, ...]:
    """The pods of the node with a lower priority."""
    return tuple(other for other in node.pods.values() if other.priority < pod.priority)


def without(node: NodeInfo, victims: tuple[PodInfo, ...]) -> NodeInfo:
    """The node as it would be without some of its pods."""
    gone = {victim.uid for victim in victims}
    copy = NodeInfo(node.name)
    copy.set_node(node.node)
    for other in node.pods.values():
        if other.uid not in gone:
            copy.add(other)
    return copy
