"""Which waiting pods an event can help: the rest stay where they are.

Each function makes a `Hint` for one thing that happened; it is asked about every unschedulable pod. When in doubt it
says yes (a pod tried in vain costs a little, a pod not tried waits five minutes), but an event that can't change the
answer of what rejected the pod must not wake it.

Where upstream overlooks events we do not: a slice that is deleted may make a pool valid, a claim that vanishes without
being deallocated first frees its devices (spec §4.2, cluster-observed note 5).

Upstream: EventsToRegister and the hint functions of each plugin.
"""

from __future__ import annotations

from collections.abc import Callable

from kubedra.api import core_v1
from kubedra.scheduler import filters
from kubedra.scheduler.filters import node_ports, node_resources, pod_affinity, topology_spread
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.queue import Hint, QueuedPod

DRA_PLUGIN = "DynamicResources"
ANYTHING = "*"
"""Rejected by nothing in particular (there was no node at all): every event may help."""
ROOM = frozenset((node_resources.PLUGIN, node_ports.PLUGIN))
NEIGHBOURS = frozenset((topology_spread.PLUGIN, pod_affinity.PLUGIN))

Bridged = Callable[[PodInfo], frozenset[str]]


def node_appeared(node: NodeInfo, bridged: Bridged) -> Hint:
    """A node is new or changed: it helps pods that it would take as far as it alone decides."""
    answers: dict[bytes, bool] = {}

    def hint(entry: QueuedPod) -> bool:
        if ANYTHING in entry.rejected_by or not NEIGHBOURS.isdisjoint(entry.rejected_by):
            return True
        shape = entry.pod.shape
        if shape not in answers:
            answers[shape] = filters.local(entry.pod, bridged(entry.pod))(node) is None
        return answers[shape]

    return hint


def node_matters(old: core_v1.Node | None, new: core_v1.Node) -> bool:
    """Whether a node update can help anybody; heartbeats and conditions can't."""
    return old is None or (
        old.metadata.labels != new.metadata.labels
        or old.spec.taints != new.spec.taints
        or old.spec.unschedulable != new.spec.unschedulable
        or old.status.allocatable != new.status.allocatable
        or old.status.declared_features != new.status.declared_features
    )


def pod_left(node: NodeInfo | None, bridged: Bridged) -> Hint:
    """A pod is gone from a node (None: the node is gone too): its room, ports and company are."""

    def hint(entry: QueuedPod) -> bool:
        if not NEIGHBOURS.isdisjoint(entry.rejected_by):
            return True
        if node is None or ROOM.isdisjoint(entry.rejected_by):
            return False
        return filters.local(entry.pod, bridged(entry.pod))(node) is None

    return hint


def neighbours_changed(entry: QueuedPod) -> bool:
    """A pod was placed or relabelled, a node left, a namespace got other labels."""
    return not NEIGHBOURS.isdisjoint(entry.rejected_by)


def devices_changed(names: frozenset[str]) -> Hint:
    """Slices, classes or taint rules changed, or devices were given back; `names`: extended resources concerned."""

    def hint(entry: QueuedPod) -> bool:
        return (
            DRA_PLUGIN in entry.rejected_by
            or ANYTHING in entry.rejected_by
            or (node_resources.PLUGIN in entry.rejected_by and not names.isdisjoint(entry.pod.requests))
        )

    return hint


def users_of(uids: frozenset[str]) -> Hint:
    """A claim changed in a way that only concerns the pods that use it."""
    return lambda entry: entry.pod.uid in uids


def own_change_matters(old: core_v1.Pod, new: core_v1.Pod) -> bool:
    """Whether a change of a pending pod itself can make it schedulable; conditions can't."""
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    )
