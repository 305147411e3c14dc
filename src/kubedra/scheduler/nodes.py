"""A node and what the pods on it take.

Changed in place by the view alone, pod by pod, so that neither a pod nor an event costs more than itself.
`generation` grows with every change that a filter or a score could notice.

Upstream: pkg/scheduler/framework/types.go (NodeInfo).
"""

from __future__ import annotations

from collections import Counter

from kubedra.api import core_v1
from kubedra.scheduler.pods import HostPort, PodInfo, Resources, resources

ANY_ADDRESS = "0.0.0.0"
HARD_EFFECTS = ("NoSchedule", "NoExecute")


class NodeInfo:
    """One node: its labels, taints and room, and the pods it carries (assumed ones included)."""

    __slots__ = (
        "allocatable",
        "allowed_pods",
        "generation",
        "hard_taints",
        "labels",
        "name",
        "node",
        "nonzero_cpu",
        "nonzero_memory",
        "pods",
        "ports",
        "requested",
        "soft_taints",
        "unschedulable",
        "with_affinity",
        "with_anti_affinity",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: core_v1.Node | None = None
        self.labels: dict[str, str] = {}
        self.hard_taints: tuple[core_v1.Taint, ...] = ()
        self.soft_taints: tuple[core_v1.Taint, ...] = ()
        self.unschedulable = False
        self.allocatable: Resources = {}
        self.allowed_pods = 0
        self.requested: Resources = {}
        self.nonzero_cpu = 0
        self.nonzero_memory = 0
        self.pods: dict[str, PodInfo] = {}
        self.ports: Counter[HostPort] = Counter()
        self.with_affinity: dict[str, PodInfo] = {}
        self.with_anti_affinity: dict[str, PodInfo] = {}
        self.generation = 0

    def __repr__(self) -> str:
        return f"<NodeInfo {self.name} pods={len(self.pods)}/{self.allowed_pods} requested={self.requested}>"

    def set_node(self, node: core_v1.Node | None) -> None:
        """Take over the node object; None when it is gone but pods are left on it."""
        self.node = node
        if node is None:
            self.labels, self.hard_taints, self.soft_taints = {}, (), ()
            self.unschedulable, self.allocatable, self.allowed_pods = False, {}, 0
            return
        self.labels = node.metadata.labels
        self.hard_taints = tuple(t for t in node.spec.taints if t.effect in HARD_EFFECTS)
        self.soft_taints = tuple(t for t in node.spec.taints if t.effect == "PreferNoSchedule")
        self.unschedulable = bool(node.spec.unschedulable)
        self.allocatable = resources(node.status.allocatable)
        self.allowed_pods = self.allocatable.get("pods", 0)

    def add(self, pod: PodInfo) -> None:
        """Put a pod on the node."""
        self.pods[pod.uid] = pod
        requested = self.requested
        for name, value in pod.requests.items():
            requested[name] = requested.get(name, 0) + value
        self.nonzero_cpu += pod.nonzero_cpu
        self.nonzero_memory += pod.nonzero_memory
        self.ports.update(pod.ports)
        if pod.has_affinity:
            self.with_affinity[pod.uid] = pod
        if pod.required_anti_affinity:
            self.with_anti_affinity[pod.uid] = pod

    def remove(self, uid: str) -> None:
        """Take a pod off the node; unknown uids are ignored."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        requested = self.requested
        for name, value in pod.requests.items():
            requested[name] -= value
            if not requested[name]:
                del requested[name]
        self.nonzero_cpu -= pod.nonzero_cpu
        self.nonzero_memory -= pod.nonzero_memory
        if pod.ports:
            self.ports.subtract(pod.ports)
            self.ports += Counter()
        self.with_affinity.pop(uid, None)
        self.with_anti_affinity.pop(uid, None)

    def port_taken(self, port: HostPort) -> bool:
        """Whether a host port is in use; the wildcard address collides with every other."""
        if not self.ports:
            return False
        address, protocol, number = port
        for used_address, used_protocol, used_number in self.ports:
            if (used_protocol, used_number) == (protocol, number) and (
                used_address == address or ANY_ADDRESS in (used_address, address)
            ):
                return True
        return False
