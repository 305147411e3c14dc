"""ReplicaSets: as many pods of a template as asked for. Counterpart: ``pkg/controller/replicaset``."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kubedra.api import apps_v1, kinds
from kubedra.api.errors import ApiError
from kubedra.controllers import pods as podlib
from kubedra.controllers.actions import Action, Create, Delete
from kubedra.controllers.pods import Pod
from kubedra.controllers.shell import Context, Controller

BURST = 500


def decide_replica_set(replica_set: apps_v1.ReplicaSet, candidates: Iterable[Pod], now: datetime) -> list[Action]:
    """Pods to make or to give up, and the status."""
    meta, spec = replica_set.metadata, replica_set.spec
    mine, patches = podlib.claim_pods(kinds.REPLICA_SET, meta, spec.selector, candidates)
    actions: list[Action] = list(patches)
    active = [p for p in mine if podlib.is_active(p)]
    wanted = 1 if spec.replicas is None else spec.replicas
    if not meta.deletion_timestamp:
        missing = wanted - len(active)
        if missing > 0:
            tree = podlib.pod_tree(kinds.REPLICA_SET, meta, spec.template)
            actions += [podlib.create_pod(tree) for _ in range(min(missing, BURST))]
        for pod in podlib.first_to_go(active)[: max(-missing, 0)]:
            actions.append(Delete(kinds.POD, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid))
    ready = [p for p in active if podlib.is_ready(p)]
    available = [p for p in ready if podlib.is_available(p, spec.min_ready_seconds or 0, now)]
    labels = spec.template.metadata.labels
    status: dict[str, Any] = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(all(p.metadata.labels.get(k) == v for k, v in labels.items()) for p in active),
        "readyReplicas": len(ready),
        "availableReplicas": len(available),
        "observedGeneration": meta.generation,
    }
    return [*actions, *podlib.status_patch(kinds.REPLICA_SET, meta, replica_set.status, status)]


class ReplicaSetController(Controller):
    """Keys are (namespace, name)."""

    name = "replicaset-controller"
    workers = 8

    def setup(self, context: Context) -> None:
        """Watch replica sets and pods."""
        self._context = context
        self._sets = context.watch(kinds.REPLICA_SET, lambda r: [(r.metadata.namespace, r.metadata.name)])
        self._pods = context.watch(kinds.POD, self._keys_of_pod)

    def _keys_of_pod(self, pod: Pod) -> Iterable[tuple[str, str]]:
        owner = podlib.controller_of(pod.metadata)
        if owner is not None:
            if owner.kind == "ReplicaSet":
                yield pod.metadata.namespace, owner.name
            return
        for replica_set in self._sets.list(pod.metadata.namespace):
            if podlib.selects(replica_set.spec.selector, pod.metadata.labels):
                yield pod.metadata.namespace, replica_set.metadata.name

    async def sync(self, key: tuple[str, str]) -> float | None:
        """Make a replica set have the pods it asks for."""
        replica_set = self._sets.get(*key)
        if replica_set is None:
            return None
        now = self._context.clock.now()
        await carry_out_creating(
            self._context, replica_set, kinds.REPLICA_SET, decide_replica_set(replica_set, self._pods.list(key[0]), now)
        )
        seconds = replica_set.spec.min_ready_seconds or 0
        status = replica_set.status
        return float(seconds) if seconds and (status.available_replicas or 0) < (status.ready_replicas or 0) else None


async def carry_out_creating(context: Context, owner: Any, kind: kinds.Kind[Any], actions: Iterable[Action]) -> None:
    """Carry out a workload's actions; pods made or given up, and those refused, are told as events."""
    for action in actions:
        try:
            (written,) = await context.carry_out([action])
        except ApiError as error:
            if isinstance(action, Create) and action.kind is kinds.POD:
                context.recorder.event(owner, kind, "Warning", "FailedCreate", f"Error creating: {error.message}")
            raise
        if isinstance(action, Delete) and action.kind is kinds.POD:
            note = f"Deleted pod: {action.name}"
            context.recorder.event(owner, kind, "Normal", "SuccessfulDelete", note)
        elif isinstance(action, Create) and action.kind is kinds.POD:
            note = f"Created pod: {written.metadata.name}"
            context.recorder.event(owner, kind, "Normal", "SuccessfulCreate", note)
