"""The node that the pod names. Upstream: plugins/nodename."""

from __future__ import annotations

from collections.abc import Callable

from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import Rejection, rejection

PLUGIN = "NodeName"
WRONG_NAME = rejection(PLUGIN, "node(s) didn't match the requested node name", unresolvable=True)


def prepare(pod: PodInfo) -> Callable[[NodeInfo], Rejection | None] | None:
    """Ask only when the pod names a node."""
    if not pod.node_name:
        return None
    return lambda node: None if node.name == pod.node_name else WRONG_NAME
