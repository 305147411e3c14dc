"""Prefer nodes with much left (least allocated), and nodes whose cpu and memory fill up evenly.

Upstream: plugins/noderesources (least_allocated.go, balanced_allocation.go).
"""

from __future__ import annotations

from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.scores import MAX_SCORE, WEIGHTS

_LEAST = WEIGHTS["NodeResourcesFit"]
_BALANCED = WEIGHTS["NodeResourcesBalancedAllocation"]


def score(pod: PodInfo, node: NodeInfo) -> int:
    """Both scores, weighed: all that depends on this node alone."""
    return _LEAST * least_allocated(pod, node) + _BALANCED * balanced(pod, node)


def least_allocated(pod: PodInfo, node: NodeInfo) -> int:
    """The mean share of cpu and memory that would stay free, pods without requests counted with a default."""
    total = resources = 0
    for capacity, used in (
        (node.allocatable.get("cpu", 0), node.nonzero_cpu + pod.nonzero_cpu),
        (node.allocatable.get("memory", 0), node.nonzero_memory + pod.nonzero_memory),
    ):
        if capacity:
            resources += 1
            if used <= capacity:
                total += (capacity - used) * MAX_SCORE // capacity
    return total // resources if resources else 0


def balanced(pod: PodInfo, node: NodeInfo) -> int:
    """100 when cpu and memory would be used to the same degree; pods without requests are not scored."""
    cpu, memory = pod.requests.get("cpu", 0), pod.requests.get("memory", 0)
    if not cpu and not memory:
        return 0
    fractions = [
        min(1.0, (node.requested.get(name, 0) + wanted) / node.allocatable[name])
        for name, wanted in (("cpu", cpu), ("memory", memory))
        if node.allocatable.get(name, 0)
    ]
    deviation = abs(fractions[0] - fractions[1]) / 2 if len(fractions) == 2 else 0.0
    return int((1 - deviation) * MAX_SCORE)
