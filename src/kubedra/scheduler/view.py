"""The cluster as the scheduler sees it: nodes with the pods on them, kept current by watch events.

Pods that were placed but whose binding has not come back through the watch yet are *assumed*: they count like bound
ones until the watch shows them or the placement is undone. Nothing is copied per pod: events that arrive while a pod
is being placed wait until it is (see `cycle`), which gives every attempt one consistent picture.

Nodes are kept in an order that alternates between zones, so that a walk from any start spreads over them.

Upstream: pkg/scheduler/backend/cache (cache.go, node_tree.go, snapshot.go).
"""

from __future__ import annotations

from collections.abc import Iterator

from kubedra.api import core_v1
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo

REGION_LABEL = "topology.kubernetes.io/region"
ZONE_LABEL = "topology.kubernetes.io/zone"
CHANGES_KEPT = 4096


class ClusterView:
    """Nodes by name, pods by uid, labels of namespaces; every change is numbered so that caches can follow."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        self.pods_with_affinity = 0
        self.pods_with_anti_affinity = 0
        self.nodes_with_soft_taints = 0
        self._orphans: dict[str, NodeInfo] = {}
        self._node_of: dict[str, str] = {}
        self._assumed: set[str] = set()
        self._order: list[str] = []
        self._order_stale = False
        self._zones: dict[str, str] = {}
        self.structure = 0
        """Grows when nodes come, go or change their place in the order."""
        self.sequence = 0
        """Grows with every change of any node."""
        self._changes: list[str] = []
        self._changes_from = 0

    def __repr__(self) -> str:
        return f"<ClusterView nodes={len(self.nodes)} pods={len(self._node_of)} assumed={len(self._assumed)}>"

    # --- reading ---------------------------------------------------------------------------------

    def order(self) -> list[str]:
        """Names of the nodes, one zone after the other in turn."""
        if self._order_stale:
            self._order = _interleave(self.nodes, self._zones)
            self._order_stale = False
        return self._order

    def changed_since(self, sequence: int) -> list[str] | None:
        """Names of nodes changed after that number (repeats possible); None when it is too long ago to tell."""
        if sequence < self._changes_from:
            return None
        return self._changes[sequence - self._changes_from :]

    def node_of(self, uid: str) -> str | None:
        """The node that a pod is on or assumed on."""
        return self._node_of.get(uid)

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod's placement is only ours so far."""
        return uid in self._assumed

    def pods(self) -> Iterator[PodInfo]:
        """All placed pods, those on vanished nodes included."""
        for info in (*self.nodes.values(), *self._orphans.values()):
            yield from info.pods.values()

    # --- changing --------------------------------------------------------------------------------

    def set_namespace(self, name: str, labels: dict[str, str] | None) -> None:
        """Take over a namespace's labels; None when it is gone."""
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels

    def set_node(self, name: str, node: core_v1.Node | None) -> None:
        """Take over a node; None when it is gone. Pods on a node that is gone are remembered for its return."""
        if node is None:
            info = self.nodes.pop(name, None)
            if info is None:
                return
            self._soft(info, -1)
            info.set_node(None)
            if info.pods:
                self._orphans[name] = info
            self._zones.pop(name, None)
            self._restructure()
            return
        info = self.nodes.get(name)
        zone = _zone(node)
        if info is None:
            info = self._orphans.pop(name, None) or NodeInfo(name)
            self.nodes[name] = info
            self._restructure()
        elif self._zones.get(name) != zone:
            self._restructure()
        self._zones[name] = zone
        self._soft(info, -1)
        info.set_node(node)
        self._soft(info, +1)
        self._touch(info)

    def declares(self, name: str, feature: str) -> bool:
        """Whether the agent of a node declares a feature."""
        info = self.nodes.get(name)
        return info is not None and info.node is not None and feature in info.node.status.declared_features

    def set_pod(self, pod: PodInfo) -> None:
        """Take over a pod that is bound to a node: confirms an assumed one, replaces an older version."""
        self._assumed.discard(pod.uid)
        self._place(pod, pod.node_name)

    def remove_pod(self, uid: str) -> None:
        """Forget a pod that is gone or finished."""
        self._assumed.discard(uid)
        self._unplace(uid)

    def assume(self, pod: PodInfo, node_name: str) -> None:
        """Count a pod on a node before the API server knows."""
        self._assumed.add(pod.uid)
        self._place(pod, node_name)

    def forget(self, uid: str) -> bool:
        """Undo `assume`; a pod that was bound meanwhile stays. Says whether anything was undone."""
        if uid not in self._assumed:
            return False
        self._assumed.discard(uid)
        self._unplace(uid)
        return True

    # --- inside ----------------------------------------------------------------------------------

    def _place(self, pod: PodInfo, node_name: str) -> None:
        self._unplace(pod.uid)
        info = self.nodes.get(node_name)
        if info is None:
            info = self._orphans.setdefault(node_name, NodeInfo(node_name))
        info.add(pod)
        self._node_of[pod.uid] = node_name
        self.pods_with_affinity += pod.has_affinity
        self.pods_with_anti_affinity += bool(pod.required_anti_affinity)
        self._touch(info)

    def _unplace(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        info = self.nodes.get(node_name)
        if info is None:
            info = self._orphans.get(node_name)
        if info is None:
            return
        pod = info.pods[uid]
        self.pods_with_affinity -= pod.has_affinity
        self.pods_with_anti_affinity -= bool(pod.required_anti_affinity)
        info.remove(uid)
        if node_name in self._orphans and not info.pods:
            del self._orphans[node_name]
        self._touch(info)

    def _soft(self, info: NodeInfo, sign: int) -> None:
        if info.soft_taints:
            self.nodes_with_soft_taints += sign

    def _restructure(self) -> None:
        self._order_stale = True
        self.structure += 1

    def _touch(self, info: NodeInfo) -> None:
        info.generation += 1
        self.sequence += 1
        self._changes.append(info.name)
        if len(self._changes) > 2 * CHANGES_KEPT:
            del self._changes[:CHANGES_KEPT]
            self._changes_from += CHANGES_KEPT


def _zone(node: core_v1.Node) -> str:
    labels = node.metadata.labels
    return f"{labels.get(REGION_LABEL, '')}\0{labels.get(ZONE_LABEL, '')}"


def _interleave(nodes: dict[str, NodeInfo], zones: dict[str, str]) -> list[str]:
    by_zone: dict[str, list[str]] = {}
    for name in nodes:
        by_zone.setdefault(zones.get(name, ""), []).append(name)
    if len(by_zone) == 1:
        return list(nodes)
    queues = list(by_zone.values())
    order: list[str] = []
    turn = 0
    while len(order) < len(nodes):
        order.extend(queue[turn] for queue in queues if turn < len(queue))
        turn += 1
    return order
