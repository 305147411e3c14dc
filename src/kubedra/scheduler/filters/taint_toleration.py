"""Taints of nodes that the pod must tolerate. Upstream: plugins/tainttoleration, core/v1/toleration.go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubedra.api import core_v1
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import Rejection, rejection

PLUGIN = "TaintToleration"
UNTOLERATED = rejection(PLUGIN, "node(s) had untolerated taint(s)", unresolvable=True)


def prepare(pod: PodInfo) -> Callable[[NodeInfo], Rejection | None] | None:
    """Every NoSchedule and NoExecute taint must be tolerated."""
    tolerations = pod.spec.tolerations

    def check(node: NodeInfo) -> Rejection | None:
        if not node.hard_taints:
            return None
        return None if all(tolerated(taint, tolerations) for taint in node.hard_taints) else UNTOLERATED

    return check


def tolerated(taint: core_v1.Taint, tolerations: Sequence[core_v1.Toleration]) -> bool:
    """Whether one of the tolerations covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def tolerates(toleration: core_v1.Toleration, taint: core_v1.Taint) -> bool:
    """Whether a toleration covers a taint: empty effect and key stand for all, an empty operator for Equal."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return bool(toleration.key) and toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt":
            return _compares(toleration, taint)
        case _:
            return False


def _compares(toleration: core_v1.Toleration, taint: core_v1.Taint) -> bool:
    try:
        bound, value = int(toleration.value), int(taint.value)
    except ValueError:
        return False
    return value > bound if toleration.operator == "Gt" else value < bound
