"""Pods and nodes for the scheduler's tests, as short as the tests need them."""

from __future__ import annotations

from typing import Any

import msgspec

from kubedra.api import core_v1
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo, pod_info
from kubedra.scheduler.view import ClusterView


def pod(
    name: str, *, namespace: str = "t", node: str = "", labels: dict[str, str] | None = None, **spec: Any
) -> PodInfo:
    """A pod from a spec in JSON form; `cpu` and `memory` become the requests of its one container."""
    requests = {key: spec.pop(key) for key in ("cpu", "memory") if key in spec}
    requests |= spec.pop("requests", {})
    tree: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": requests}}], **spec}
    if node:
        tree["nodeName"] = node
    return pod_info(
        msgspec.convert(
            {
                "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}},
                "spec": tree,
            },
            core_v1.Pod,
        )
    )


def node(
    name: str, *, labels: dict[str, str] | None = None, allocatable: dict[str, str] | None = None, **spec: Any
) -> core_v1.Node:
    """A node of 8 cores and 16Gi unless said otherwise."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "spec": spec,
            "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110", **(allocatable or {})}},
        },
        core_v1.Node,
    )


def view(*nodes: core_v1.Node, pods: tuple[PodInfo, ...] = ()) -> ClusterView:
    """A view of these nodes and bound pods."""
    made = ClusterView()
    for item in nodes:
        made.set_node(item.metadata.name, item)
    for item in pods:
        made.set_pod(item)
    return made


def info(item: core_v1.Node, *pods: PodInfo) -> NodeInfo:
    """One node with these pods on it."""
    return view(item, pods=tuple(pods)).nodes[item.metadata.name]
