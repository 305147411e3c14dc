"""Our sentence after upstream's message: what exactly is missing, and what would help.

Upstream: nothing like it.
"""

from __future__ import annotations

from kubedra.scheduler.cycle import NoPlace
from kubedra.scheduler.dra import DynamicResources
from kubedra.scheduler.view import ClusterView


def sentence(verdict: NoPlace, dra: DynamicResources, view: ClusterView) -> str:
    """One sentence for the pod's owner; "" when upstream's message says it all."""
    if verdict.preemptable:
        return "Pods of a lower priority are in the way; kubedra does not evict pods to make room for others."
    return ""
