"""Which nodes can take a pod of a file apart from its devices: the scheduler's own filters on the objects of a dump.

A node that says nothing of what it has (a fleet sketched by hand) is taken to have enough of everything.

Upstream has no counterpart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from kubedra.api.core_v1 import Namespace, Node, Pod
from kubedra.scheduler import filters
from kubedra.scheduler.pods import is_finished, pod_info
from kubedra.scheduler.view import ClusterView

# Where a workload says how many pods it wants.
_WORKLOADS = {"Deployment": "replicas", "ReplicaSet": "replicas", "StatefulSet": "replicas", "Job": "parallelism"}
_MOST_PODS = 1000
_PLENTY = {"cpu": "1M", "memory": "1Ei", "ephemeral-storage": "1Ei", "pods": "1M"}


class Places:
    """The nodes of a cluster with the pods that run on them."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[Pod], namespaces: Iterable[Namespace]) -> None:
        self._view = ClusterView()
        for namespace in namespaces:
            self._view.set_namespace(namespace.metadata.name, namespace.metadata.labels)
        for node in nodes:
            if not node.status.allocatable:
                node = replace(node, status=replace(node.status, allocatable=_PLENTY))
            self._view.set_node(node.metadata.name, node)
        for pod in pods:
            if pod.spec.node_name and not is_finished(pod):
                self._view.set_pod(pod_info(_with_uid(pod)))

    def rejected(self, pod: Pod, bridged: frozenset[str]) -> dict[str, str]:
        """The nodes that can't take a pod, each with the first reason. ``bridged``: resources that DRA may provide."""
        info = pod_info(_with_uid(pod))
        local, placement = filters.local(info, bridged), filters.placement(info, self._view)
        found: dict[str, str] = {}
        for name, node in self._view.nodes.items():
            rejection = local(node)
            for check in placement:
                rejection = rejection or check(node)
            if rejection is not None:
                found[name] = rejection.reasons[0]
        return found

    def take(self, pod: Pod, node: str) -> None:
        """Count a pod on a node."""
        self._view.assume(pod_info(_with_uid(pod)), node)


def workload_pods(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The pods that a workload of a file would make, numbered; none for other kinds."""
    spec, metadata = tree.get("spec"), tree.get("metadata")
    kind = str(tree.get("kind"))
    if kind not in _WORKLOADS or not isinstance(spec, dict) or not isinstance(metadata, dict):
        return []
    template, count = spec.get("template"), spec.get(_WORKLOADS[kind], 1)
    if not isinstance(template, dict) or not isinstance(count, int):
        return []
    given = template.get("metadata")
    labels = given.get("labels") if isinstance(given, dict) else None
    head = {"namespace": metadata.get("namespace"), "labels": labels}
    head = {key: value for key, value in head.items() if value}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**head, "name": f"{metadata.get('name', '')}-{number}"},
            "spec": template.get("spec") or {},
        }
        for number in range(min(count, _MOST_PODS))
    ]


def summary(rejected: dict[str, str]) -> str:
    """The reasons with how many nodes they concern, most frequent first."""
    counts = Counter(rejected.values())
    return ", ".join(f"{count} × {reason}" for reason, count in counts.most_common(4))


def _with_uid(pod: Pod) -> Pod:
    if pod.metadata.uid:
        return pod
    uid = f"{pod.metadata.namespace}/{pod.metadata.name}"
    return replace(pod, metadata=replace(pod.metadata, uid=uid))
