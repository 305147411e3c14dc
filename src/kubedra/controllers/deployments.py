"""Deployments: a replica set per template, and rolling from one to the next.

Counterpart: ``pkg/controller/deployment``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kubedra.api import apps_v1, codec, kinds
from kubedra.base.clock import format_time
from kubedra.controllers import pods as podlib
from kubedra.controllers.actions import Action, Create, Delete, Patch
from kubedra.controllers.shell import Context, Controller

REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
HASH_LABEL = "pod-template-hash"

Deployment = apps_v1.Deployment
ReplicaSet = apps_v1.ReplicaSet


def replicas(obj: Deployment | ReplicaSet) -> int:
    """How many are asked for (1 when nothing is said)."""
    return 1 if obj.spec.replicas is None else obj.spec.replicas


def decide_deployment(deployment: Deployment, owned: Sequence[ReplicaSet], now: str) -> list[Action]:
    """What to scale, make and clean up now, and the status. ``owned`` are the replica sets it controls."""
    meta = deployment.metadata
    if meta.deletion_timestamp:
        return []
    wanted_hash = podlib.template_hash(deployment.spec.template, deployment.status.collision_count or 0)
    new = next((r for r in owned if r.metadata.labels.get(HASH_LABEL) == wanted_hash), None)
    old = sorted((r for r in owned if r is not new), key=lambda r: r.metadata.creation_timestamp)
    actions: list[Action] = []
    if not deployment.spec.paused:
        if new is None:
            actions.append(_create(deployment, wanted_hash, old))
        else:
            actions += _roll(deployment, new, old)
            actions += _revision(deployment, new, old)
            actions += _clean_up(deployment, new, old)
    elif owned:
        actions += _proportional(deployment, owned)
    return [
        *actions,
        *podlib.status_patch(kinds.DEPLOYMENT, meta, deployment.status, _status(deployment, new, old, now)),
    ]


def _limits(deployment: Deployment) -> tuple[int, int]:
    """How many more than asked for there may be, and how many fewer available."""
    total = replicas(deployment)
    strategy = deployment.spec.strategy
    rolling = strategy.rolling_update if strategy is not None else None
    if strategy is not None and strategy.type == "Recreate":
        return 0, total
    surge = podlib.scaled(rolling.max_surge if rolling else None, total, round_up=True, default="25%")
    unavailable = podlib.scaled(rolling.max_unavailable if rolling else None, total, round_up=False, default="25%")
    return surge, (1 if surge == 0 and unavailable == 0 else min(unavailable, total))


def _create(deployment: Deployment, wanted_hash: str, old: Sequence[ReplicaSet]) -> Create:
    meta = deployment.metadata
    total = replicas(deployment)
    surge, _ = _limits(deployment)
    recreate = deployment.spec.strategy is not None and deployment.spec.strategy.type == "Recreate"
    running = sum(replicas(r) for r in old)
    if recreate:
        first = 0 if any((r.status.replicas or 0) > 0 or replicas(r) > 0 for r in old) else total
    else:
        first = min(total, max(total + surge - running, 0)) if old else total
    template = codec.to_tree(deployment.spec.template)
    template.setdefault("metadata", {}).setdefault("labels", {})[HASH_LABEL] = wanted_hash
    selector = codec.to_tree(deployment.spec.selector) if deployment.spec.selector is not None else {}
    selector.setdefault("matchLabels", {})[HASH_LABEL] = wanted_hash
    tree = {
        "metadata": {
            "name": f"{meta.name}-{wanted_hash}",
            "namespace": meta.namespace,
            "labels": template["metadata"]["labels"],
            "annotations": {REVISION: str(_next_revision(old)), DESIRED: str(total)},
            "ownerReferences": [podlib.owner_reference(kinds.DEPLOYMENT, meta)],
        },
        "spec": {
            "replicas": first,
            "minReadySeconds": deployment.spec.min_ready_seconds or 0,
            "selector": selector,
            "template": template,
        },
    }
    return Create(kinds.REPLICA_SET, tree, meta.namespace)


def _revision_of(replica_set: ReplicaSet) -> int:
    text = replica_set.metadata.annotations.get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def _next_revision(old: Iterable[ReplicaSet]) -> int:
    return max((_revision_of(r) for r in old), default=0) + 1


def _scale(replica_set: ReplicaSet, count: int) -> list[Action]:
    if replicas(replica_set) == count:
        return []
    meta = replica_set.metadata
    patch = {"metadata": {"uid": meta.uid}, "spec": {"replicas": count}}
    return [Patch(kinds.REPLICA_SET, meta.name, meta.namespace, patch)]


def _roll(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Action]:
    """One step from the old replica sets to the new one, within surge and unavailability."""
    total = replicas(deployment)
    surge, unavailable = _limits(deployment)
    recreate = deployment.spec.strategy is not None and deployment.spec.strategy.type == "Recreate"
    old_asked = sum(replicas(r) for r in old)
    if recreate:
        down = [a for r in old for a in _scale(r, 0)]
        gone = all((r.status.replicas or 0) == 0 and replicas(r) == 0 for r in old)
        return [*down, *(_scale(new, total) if gone else [])]
    if replicas(new) > total:
        return _scale(new, total)
    room = total + surge - old_asked - replicas(new)
    target = min(total, replicas(new) + max(room, 0))
    actions = _scale(new, target)
    if actions:
        return actions
    all_sets = [*old, new]
    available = sum(r.status.available_replicas or 0 for r in all_sets)
    new_missing = replicas(new) - (new.status.available_replicas or 0)
    may_go = sum(replicas(r) for r in all_sets) - (total - unavailable) - new_missing
    if may_go <= 0:
        return []
    # First what is not healthy anyway, then healthy pods as far as availability allows.
    counts = {r.metadata.uid: replicas(r) for r in old}
    for r in old:
        unhealthy = counts[r.metadata.uid] - (r.status.available_replicas or 0)
        drop = min(max(unhealthy, 0), may_go)
        counts[r.metadata.uid] -= drop
        may_go -= drop
    spare = available - (total - unavailable)
    for r in old:
        drop = max(min(counts[r.metadata.uid], spare, may_go), 0)
        counts[r.metadata.uid] -= drop
        spare -= drop
        may_go -= drop
    return [a for r in old for a in _scale(r, counts[r.metadata.uid])]


def _proportional(deployment: Deployment, owned: Sequence[ReplicaSet]) -> list[Action]:
    """A paused deployment that is scaled: its only live replica set follows."""
    live = [r for r in owned if replicas(r) > 0]
    return _scale(live[0], replicas(deployment)) if len(live) == 1 else []


def _revision(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Action]:
    """The revision stands on the replica set and on the deployment; going back gives an old template a new number."""
    revision = max(_revision_of(new), _next_revision(old) if old else _revision_of(new), 1)
    actions: list[Action] = []
    if _revision_of(new) != revision:
        meta = new.metadata
        patch = {"metadata": {"uid": meta.uid, "annotations": {REVISION: str(revision)}}}
        actions.append(Patch(kinds.REPLICA_SET, meta.name, meta.namespace, patch))
    if deployment.metadata.annotations.get(REVISION) != str(revision):
        meta = deployment.metadata
        patch = {"metadata": {"uid": meta.uid, "annotations": {REVISION: str(revision)}}}
        actions.append(Patch(kinds.DEPLOYMENT, meta.name, meta.namespace, patch))
    return actions


def _clean_up(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Action]:
    limit = deployment.spec.revision_history_limit
    keep = 10 if limit is None else limit
    if not _complete(deployment, new, old):
        return []
    idle = [r for r in old if replicas(r) == 0 and not (r.status.replicas or 0) and not r.metadata.deletion_timestamp]
    surplus = sorted(idle, key=_revision_of)[: max(len(idle) - keep, 0)]
    return [Delete(kinds.REPLICA_SET, r.metadata.name, r.metadata.namespace, uid=r.metadata.uid) for r in surplus]


def _complete(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> bool:
    total = replicas(deployment)
    return (
        new is not None
        and (new.status.replicas or 0) == total
        and (new.status.available_replicas or 0) == total
        and all((r.status.replicas or 0) == 0 for r in old)
    )


def _status(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: str) -> dict[str, Any]:
    all_sets = [*old, *([new] if new is not None else [])]
    count = sum(r.status.replicas or 0 for r in all_sets)
    available = sum(r.status.available_replicas or 0 for r in all_sets)
    total = replicas(deployment)
    _, unavailable = _limits(deployment)
    name = new.metadata.name if new is not None else ""
    conditions: list[Any] = list(deployment.status.conditions)
    if available >= total - unavailable:
        text = "Deployment has minimum availability."
        conditions = podlib.set_condition(
            conditions, "Available", "True", "MinimumReplicasAvailable", text, now, updates=True
        )
    else:
        text = "Deployment does not have minimum availability."
        conditions = podlib.set_condition(
            conditions, "Available", "False", "MinimumReplicasUnavailable", text, now, updates=True
        )
    if new is not None and _complete(deployment, new, old):
        text = f'ReplicaSet "{name}" has successfully progressed.'
        conditions = podlib.set_condition(
            conditions, "Progressing", "True", "NewReplicaSetAvailable", text, now, updates=True
        )
    elif new is not None:
        text = f'ReplicaSet "{name}" is progressing.'
        conditions = podlib.set_condition(
            conditions, "Progressing", "True", "ReplicaSetUpdated", text, now, updates=True
        )
    return {
        "observedGeneration": deployment.metadata.generation,
        "replicas": count,
        "updatedReplicas": (new.status.replicas or 0) if new is not None else 0,
        "readyReplicas": sum(r.status.ready_replicas or 0 for r in all_sets),
        "availableReplicas": available,
        "unavailableReplicas": max(total - available, 0) or None,
        "conditions": conditions,
    }


class DeploymentController(Controller):
    """Keys are (namespace, name)."""

    name = "deployment-controller"

    def setup(self, context: Context) -> None:
        """Watch deployments and replica sets."""
        self._context = context
        self._deployments = context.watch(kinds.DEPLOYMENT, lambda d: [(d.metadata.namespace, d.metadata.name)])
        self._sets = context.watch(kinds.REPLICA_SET, self._keys_of_set)

    def _keys_of_set(self, replica_set: ReplicaSet) -> Iterable[tuple[str, str]]:
        owner = podlib.controller_of(replica_set.metadata)
        if owner is not None and owner.kind == "Deployment":
            yield replica_set.metadata.namespace, owner.name

    async def sync(self, key: tuple[str, str]) -> float | None:
        """Take a deployment one step on."""
        deployment = self._deployments.get(*key)
        if deployment is None:
            return None
        uid = deployment.metadata.uid
        owned = [
            r
            for r in self._sets.list(key[0])
            if (owner := podlib.controller_of(r.metadata)) is not None and owner.uid == uid
        ]
        now = format_time(self._context.clock.now())
        actions = decide_deployment(deployment, owned, now)
        for action in actions:
            if isinstance(action, Patch) and action.kind is kinds.REPLICA_SET and "spec" in action.patch:
                old = self._sets.get(action.namespace, action.name)
                was = replicas(old) if old is not None else 0
                count = action.patch["spec"]["replicas"]
                self._tell_scaled(deployment, action.name, was, count)
        written = await self._context.carry_out(actions)
        for action, made in zip(actions, written, strict=True):
            if isinstance(action, Create) and action.tree["spec"].get("replicas"):
                self._tell_scaled(deployment, made.metadata.name, 0, action.tree["spec"]["replicas"])
        return None

    def _tell_scaled(self, deployment: Deployment, name: str, was: int, count: int) -> None:
        note = f"Scaled {'up' if count > was else 'down'} replica set {name} from {was} to {count}"
        self._context.recorder.event(deployment, kinds.DEPLOYMENT, "Normal", "ScalingReplicaSet", note)
