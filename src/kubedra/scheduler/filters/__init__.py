"""May this pod run on this node? One question a file, asked in upstream's order; the first "no" is the reason.

A filter is prepared once per pod: `prepare(...)` returns a function from a node to its `Rejection` (or None), or None
itself when the pod gives it nothing to ask. The filters of single nodes (`local`) read nothing but the node, so their
answers are kept until the node changes; the others (`placement`) compare with pods elsewhere and are asked each time.

Upstream: pkg/scheduler/framework/plugins.
"""

from __future__ import annotations

from collections.abc import Callable

from kubedra.scheduler.filters import (
    node_affinity,
    node_name,
    node_ports,
    node_resources,
    node_unschedulable,
    pod_affinity,
    taint_toleration,
    topology_spread,
)
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import Rejection
from kubedra.scheduler.view import ClusterView

Filter = Callable[[NodeInfo], Rejection | None]


def local(pod: PodInfo, bridged: frozenset[str]) -> Filter:
    """The filters of single nodes, chained. `bridged`: extended resources of the pod that DRA may provide."""
    chain = [
        check
        for check in (
            node_unschedulable.prepare(pod),
            node_name.prepare(pod),
            taint_toleration.prepare(pod),
            node_affinity.prepare(pod),
            node_ports.prepare(pod),
            node_resources.prepare(pod, bridged),
        )
        if check is not None
    ]

    def first_rejection(node: NodeInfo) -> Rejection | None:
        for check in chain:
            found = check(node)
            if found is not None:
                return found
        return None

    return first_rejection


def placement(pod: PodInfo, view: ClusterView) -> list[Filter]:
    """The filters that compare with pods on other nodes; empty for most pods."""
    return [
        check for check in (topology_spread.prepare(pod, view), pod_affinity.prepare(pod, view)) if check is not None
    ]
