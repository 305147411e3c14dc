"""Host ports that must be free. Upstream: plugins/nodeports."""

from __future__ import annotations

from collections.abc import Callable

from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import Rejection, rejection

PLUGIN = "NodePorts"
TAKEN = rejection(PLUGIN, "node(s) didn't have free ports for the requested pod ports")


def prepare(pod: PodInfo) -> Callable[[NodeInfo], Rejection | None] | None:
    """Ask only when the pod wants host ports."""
    if not pod.ports:
        return None
    return lambda node: TAKEN if any(node.port_taken(port) for port in pod.ports) else None
