"""Room for cpu, memory, pods and extended resources, by subtraction.

Extended resources that DRA provides on a node (the node itself offers none, a class has the name) are left to DRA.

Upstream: plugins/noderesources/fit.go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import Rejection

PLUGIN = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"
_FIRST = ("cpu", "memory", "ephemeral-storage")


def prepare(pod: PodInfo, bridged: frozenset[str]) -> Callable[[NodeInfo], Rejection | None]:
    """Compare what is left on a node with what the pod asks for; all that lacks is named."""
    names = [name for name in _FIRST if pod.requests.get(name)]
    names += sorted(name for name, value in pod.requests.items() if value and name not in _FIRST)
    wanted = [(name, pod.requests[name]) for name in names]

    def check(node: NodeInfo) -> Rejection | None:
        lacking: list[str] = []
        unresolvable = False
        if len(node.pods) + 1 > node.allowed_pods:
            lacking.append(TOO_MANY_PODS)
        for name, value in wanted:
            total = node.allocatable.get(name, 0)
            if value > total - node.requested.get(name, 0):
                if not total and name in bridged:
                    continue
                lacking.append(f"Insufficient {name}")
                unresolvable = unresolvable or value > total
        return _rejection(tuple(lacking), unresolvable) if lacking else None

    return check


@lru_cache(maxsize=256)
def _rejection(reasons: tuple[str, ...], unresolvable: bool) -> Rejection:
    return Rejection(PLUGIN, reasons, unresolvable)
