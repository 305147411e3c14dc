"""Cordoned nodes. Upstream: plugins/nodeunschedulable."""

from __future__ import annotations

from collections.abc import Callable

from kubedra.api import core_v1
from kubedra.scheduler.filters.taint_toleration import tolerated
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import Rejection, rejection

PLUGIN = "NodeUnschedulable"
UNSCHEDULABLE = rejection(PLUGIN, "node(s) were unschedulable", unresolvable=True)
CORDON_TAINT = core_v1.Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def prepare(pod: PodInfo) -> Callable[[NodeInfo], Rejection | None] | None:
    """A pod that tolerates the taint of cordoned nodes may go to them."""
    if tolerated(CORDON_TAINT, pod.spec.tolerations):
        return None
    return lambda node: UNSCHEDULABLE if node.unschedulable else None
