"""Nodes that fall silent: conditions, taints, and the pods that can't stay.

Counterparts: ``pkg/controller/nodelifecycle`` and ``tainteviction``, and the pod garbage collector for pods whose node
is gone. A node that never had a lease is somebody's bare object (a test, a rehearsal): it is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kubedra.api import codec, coordination_v1, core_v1, kinds
from kubedra.base.clock import format_time, parse_time
from kubedra.controllers.actions import Action, Delete, Patch, Tell
from kubedra.controllers.pods import Pod, condition
from kubedra.controllers.shell import Context, Controller

LEASE_NAMESPACE = "kube-node-lease"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
GRACE_SECONDS = 40.0
SILENT_TYPES = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True)
class NodeDecision:
    """What to do for a node, and when to look again (seconds)."""

    actions: list[Action]
    again: float | None = None


def decide_node(
    node: core_v1.Node,
    lease: coordination_v1.Lease | None,
    now: datetime,
    grace_seconds: float = GRACE_SECONDS,
    since: datetime | None = None,
) -> NodeDecision:
    """Conditions and taints of a node by its lease and its Ready condition.

    `since` is when somebody began to look: what happened before nobody saw, so the grace period starts there. When all
    of a cluster is started again, its agents get the time to come back.
    """
    if lease is None or not lease.spec.renew_time or node.metadata.deletion_timestamp:
        return NodeDecision([])
    duration = max(grace_seconds, float(lease.spec.lease_duration_seconds or 0))
    # An agent that comes back writes its status before its lease; either shows that it is there.
    heartbeats = [c.last_heartbeat_time for c in node.status.conditions if c.type == "Ready"]
    signs = [parse_time(text) for text in (lease.spec.renew_time, *heartbeats) if text]
    alive = max([*signs, since] if since is not None else signs)
    left = (alive + timedelta(seconds=duration) - now).total_seconds()
    actions: list[Action] = []
    ready = next((c.status for c in node.status.conditions if c.type == "Ready"), "Unknown")
    stamp = format_time(now)
    if left <= 0 and ready != "Unknown":
        conditions = [codec.to_tree(c) for c in node.status.conditions]
        for c in conditions:
            if c["type"] in SILENT_TYPES and c["status"] != "Unknown":
                c |= {
                    "status": "Unknown",
                    "reason": "NodeStatusUnknown",
                    "message": "Kubelet stopped posting node status.",
                    "lastTransitionTime": stamp,
                }
        patch = {"metadata": {"uid": node.metadata.uid}, "status": {"conditions": conditions}}
        actions.append(Patch(kinds.NODE, node.metadata.name, "", patch, subresource="status"))
        note = f"Node {node.metadata.name} status is now: NodeNotReady"
        actions.append(Tell(node, kinds.NODE, "Normal", "NodeNotReady", note))
        ready = "Unknown"
    wanted = {"True": None, "False": NOT_READY}.get(ready, UNREACHABLE)
    taints = [codec.to_tree(t) for t in node.spec.taints]
    kept = [t for t in taints if t["key"] not in (NOT_READY, UNREACHABLE) or t["key"] == wanted]
    present = {(t["key"], t["effect"]) for t in kept}
    for effect in ("NoSchedule", "NoExecute") if wanted else ():
        if (wanted, effect) not in present:
            kept.append({"key": wanted, "effect": effect, "timeAdded": stamp})
    if kept != taints:
        meta = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
        actions.append(Patch(kinds.NODE, node.metadata.name, "", {"metadata": meta, "spec": {"taints": kept or None}}))
    return NodeDecision(actions, left + 0.5 if left > 0 else None)


def eviction_time(pod: Pod, taints: Sequence[core_v1.Taint], now: datetime) -> datetime | None:
    """When a pod must leave a node for its NoExecute taints; None when it may stay for good."""
    due: datetime | None = None
    for taint in taints:
        if taint.effect != "NoExecute":
            continue
        tolerations = [t for t in pod.spec.tolerations if tolerates(t, taint)]
        start = parse_time(taint.time_added) if taint.time_added else now
        if not tolerations:
            moment = start
        else:
            seconds = [t.toleration_seconds for t in tolerations if t.toleration_seconds is not None]
            if not seconds:
                continue
            moment = start + timedelta(seconds=max(min(seconds), 0))
        due = moment if due is None else min(due, moment)
    return due


def tolerates(toleration: core_v1.Toleration, taint: core_v1.Taint) -> bool:
    """Whether a toleration of a pod tolerates a taint of a node."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (bool(toleration.key) and toleration.value == taint.value)


def decide_evictions(node: core_v1.Node, pods: Sequence[Pod], now: datetime) -> NodeDecision:
    """Pods that must leave a node now, and when the next one must."""
    actions: list[Action] = []
    again: float | None = None
    for pod in pods:
        if pod.metadata.deletion_timestamp or pod.status.phase in ("Succeeded", "Failed"):
            continue
        due = eviction_time(pod, node.spec.taints, now)
        if due is None:
            continue
        left = (due - now).total_seconds()
        if left > 0:
            again = left if again is None else min(again, left)
            continue
        actions += evict(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", now)
        note = f"Marking for deletion Pod {pod.metadata.namespace}/{pod.metadata.name}"
        actions.append(Tell(pod, kinds.POD, "Normal", "TaintManagerEviction", note))
    return NodeDecision(actions, again)


def evict(pod: Pod, reason: str, message: str, now: datetime, grace: int | None = None) -> list[Action]:
    """Say on the pod that it is disrupted, then delete it."""
    actions: list[Action] = []
    found = condition(pod, "DisruptionTarget")
    if found is None or found.status != "True":
        entry: dict[str, Any] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": format_time(now),
        }
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [entry]}}
        meta = pod.metadata
        actions.append(Patch(kinds.POD, meta.name, meta.namespace, patch, patch_type="strategic", subresource="status"))
    actions.append(
        Delete(
            kinds.POD,
            pod.metadata.name,
            pod.metadata.namespace,
            uid=pod.metadata.uid,
            grace_period_seconds=grace,
        )
    )
    return actions


def decide_orphans(pods: Sequence[Pod], now: datetime) -> list[Action]:
    """Pods of a node that is gone: nobody can end them, so their objects go at once."""
    actions: list[Action] = []
    for pod in pods:
        actions += evict(pod, "DeletionByPodGC", "PodGC: node no longer exists", now, grace=0)
    return actions


class NodeLifecycleController(Controller):
    """Keys are names of nodes."""

    name = "node-lifecycle-controller"

    def __init__(self, grace_seconds: float = GRACE_SECONDS) -> None:
        self._grace = grace_seconds
        self._seen: set[str] = set()

    def setup(self, context: Context) -> None:
        """Watch nodes, leases and bound pods."""
        self._context = context
        self._since = context.clock.now()
        self._nodes = context.watch(kinds.NODE, self._keys_of_node)
        self._leases = context.caches.of(kinds.LEASE)
        self._leases.add_handler(self._lease_changed)
        self._pods = context.watch(kinds.POD, lambda p: [p.spec.node_name] if p.spec.node_name else [])
        self._pods.add_index("node", lambda p: [p.spec.node_name] if p.spec.node_name else ())

    def _keys_of_node(self, node: core_v1.Node) -> list[str]:
        self._seen.add(node.metadata.name)
        return [node.metadata.name]

    def _lease_changed(self, old: coordination_v1.Lease | None, new: coordination_v1.Lease | None) -> None:
        # Renewals are the rule and concern nobody; the timer of the node looks at the lease when it would be over.
        if new is not None and new.metadata.namespace == LEASE_NAMESPACE:
            node = self._nodes.get("", new.metadata.name)
            silent = node is not None and any(t.key == UNREACHABLE for t in node.spec.taints)
            if old is None or silent:
                self._context.queue.add(new.metadata.name)

    async def sync(self, key: str) -> float | None:
        """Bring one node and its pods into order."""
        now = self._context.clock.now()
        node = self._nodes.get("", key)
        pods = self._pods.by_index("node", key)
        if node is None:
            # A pod that names a node which never was is the business of whoever made it.
            if key in self._seen:
                await self._context.carry_out(decide_orphans(pods, now))
            return None
        lease = self._leases.get(LEASE_NAMESPACE, key)
        first = decide_node(node, lease, now, self._grace, self._since)
        await self._context.carry_out(first.actions)
        second = decide_evictions(node, pods, now)
        await self._context.carry_out(second.actions)
        times = [t for t in (first.again, second.again) if t is not None]
        return min(times) if times else None
