"""StatefulSets: pods with names that stay, made and given up in order. Counterpart: ``pkg/controller/statefulset``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from kubedra.api import apps_v1, codec, core_v1, kinds
from kubedra.controllers import pods as podlib
from kubedra.controllers.actions import Action, Create, Delete
from kubedra.controllers.pods import Pod
from kubedra.controllers.replica_sets import carry_out_creating
from kubedra.controllers.revisions import HASH_LABEL, keep_revision, revision_name
from kubedra.controllers.shell import Context, Controller

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


def ordinal(owner: str, pod_name: str) -> int | None:
    """The number at the end of a pod's name, or None for a pod that is not of the set's form."""
    head, _, tail = pod_name.rpartition("-")
    return int(tail) if head == owner and tail.isdigit() else None


def decide_stateful_set(
    stateful_set: apps_v1.StatefulSet,
    candidates: Iterable[Pod],
    revisions: Sequence[apps_v1.ControllerRevision],
    volume_claims: set[str],
    now: datetime,
) -> list[Action]:
    """The next step in order, and the status. ``volume_claims``: names of the PersistentVolumeClaims that exist."""
    meta, spec = stateful_set.metadata, stateful_set.spec
    mine, patches = podlib.claim_pods(kinds.STATEFUL_SET, meta, spec.selector, candidates)
    actions: list[Action] = list(patches)
    by_ordinal = {n: p for p in mine if (n := ordinal(meta.name, p.metadata.name)) is not None}
    update = revision_name(meta, spec.template)
    current = stateful_set.status.current_revision or update
    in_use = {p.metadata.labels.get(HASH_LABEL, "") for p in mine} | {current}
    limit = 10 if spec.revision_history_limit is None else spec.revision_history_limit
    if not meta.deletion_timestamp:
        actions += keep_revision(kinds.STATEFUL_SET, meta, spec.template, revisions, in_use, limit)
        actions += _steps(stateful_set, by_ordinal, update, volume_claims, now)
    live = [p for p in by_ordinal.values() if podlib.is_active(p)]
    updated = [p for p in live if p.metadata.labels.get(HASH_LABEL) == update]
    wanted = 1 if spec.replicas is None else spec.replicas
    done = len(updated) == wanted and all(podlib.is_ready(p) for p in updated) and len(live) == wanted
    status: dict[str, Any] = {
        "observedGeneration": meta.generation,
        "replicas": len(live),
        "readyReplicas": sum(podlib.is_ready(p) for p in live),
        "availableReplicas": sum(podlib.is_available(p, spec.min_ready_seconds or 0, now) for p in live),
        "updatedReplicas": len(updated),
        "currentReplicas": len(updated) if done else sum(p.metadata.labels.get(HASH_LABEL) == current for p in live),
        "currentRevision": update if done else current,
        "updateRevision": update,
        "collisionCount": stateful_set.status.collision_count or 0,
    }
    return [*actions, *podlib.status_patch(kinds.STATEFUL_SET, meta, stateful_set.status, status)]


def _steps(
    stateful_set: apps_v1.StatefulSet,
    pods: dict[int, Pod],
    update: str,
    volume_claims: set[str],
    now: datetime,
) -> list[Action]:
    spec, meta = stateful_set.spec, stateful_set.metadata
    wanted = 1 if spec.replicas is None else spec.replicas
    start = (spec.ordinals.start or 0) if spec.ordinals is not None else 0
    parallel = spec.pod_management_policy == "Parallel"
    actions: list[Action] = []
    for n in range(start, start + wanted):
        pod = pods.get(n)
        if pod is None:
            actions += _volume_claims(stateful_set, n, volume_claims)
            actions.append(podlib.create_pod(_pod(stateful_set, n, update)))
        elif pod.status.phase in ("Succeeded", "Failed") and not pod.metadata.deletion_timestamp:
            actions.append(Delete(kinds.POD, pod.metadata.name, meta.namespace, uid=pod.metadata.uid))
        elif not podlib.is_available(pod, spec.min_ready_seconds or 0, now) or pod.metadata.deletion_timestamp:
            if not parallel:
                return actions
            continue
        else:
            continue
        if not parallel:
            return actions
    if actions and not parallel:
        return actions
    surplus = sorted((n for n in pods if n < start or n >= start + wanted), reverse=True)
    for n in surplus:
        pod = pods[n]
        if not pod.metadata.deletion_timestamp:
            actions.append(Delete(kinds.POD, pod.metadata.name, meta.namespace, uid=pod.metadata.uid))
        if not parallel:
            return actions
    strategy = spec.update_strategy
    if actions or (strategy is not None and strategy.type == "OnDelete"):
        return actions
    rolling = strategy.rolling_update if strategy is not None else None
    partition = (rolling.partition or 0) if rolling is not None else 0
    for n in range(start + wanted - 1, max(start, partition) - 1, -1):
        pod = pods[n]
        if pod.metadata.deletion_timestamp:
            return actions
        if pod.metadata.labels.get(HASH_LABEL) != update:
            return [*actions, Delete(kinds.POD, pod.metadata.name, meta.namespace, uid=pod.metadata.uid)]
        if not podlib.is_ready(pod):
            return actions
    return actions


def _pod(stateful_set: apps_v1.StatefulSet, n: int, revision: str) -> dict[str, Any]:
    meta = stateful_set.metadata
    name = f"{meta.name}-{n}"
    tree = podlib.pod_tree(kinds.STATEFUL_SET, meta, stateful_set.spec.template, name=name)
    tree["metadata"]["labels"] |= {POD_NAME_LABEL: name, INDEX_LABEL: str(n), HASH_LABEL: revision}
    tree["spec"]["hostname"] = name
    if stateful_set.spec.service_name:
        tree["spec"]["subdomain"] = stateful_set.spec.service_name
    volumes = tree["spec"].setdefault("volumes", []) if stateful_set.spec.volume_claim_templates else []
    for template in stateful_set.spec.volume_claim_templates:
        claim = f"{template.metadata.name}-{name}"
        volumes.append({"name": template.metadata.name, "persistentVolumeClaim": {"claimName": claim}})
    return tree


def _volume_claims(stateful_set: apps_v1.StatefulSet, n: int, existing: set[str]) -> list[Create]:
    out = []
    meta = stateful_set.metadata
    for template in stateful_set.spec.volume_claim_templates:
        name = f"{template.metadata.name}-{meta.name}-{n}"
        if name in existing:
            continue
        tree = codec.to_tree(template)
        labels = stateful_set.spec.selector.match_labels if stateful_set.spec.selector is not None else {}
        claim_meta = {"name": name, "namespace": meta.namespace, "labels": dict(labels)}
        claim = {"metadata": claim_meta, "spec": tree.get("spec", {})}
        out.append(Create(kinds.PERSISTENT_VOLUME_CLAIM, claim, meta.namespace))
    return out


class StatefulSetController(Controller):
    """Keys are (namespace, name)."""

    name = "statefulset-controller"

    def setup(self, context: Context) -> None:
        """Watch stateful sets, their pods and revisions, and volume claims."""
        self._context = context
        self._sets = context.watch(kinds.STATEFUL_SET, lambda s: [(s.metadata.namespace, s.metadata.name)])
        self._pods = context.watch(kinds.POD, lambda p: owner_keys(p, "StatefulSet"))
        self._revisions = context.watch(kinds.CONTROLLER_REVISION, lambda r: owner_keys(r, "StatefulSet"))
        self._volume_claims = context.caches.of(kinds.PERSISTENT_VOLUME_CLAIM)

    async def sync(self, key: tuple[str, str]) -> float | None:
        """Take a stateful set one step on."""
        stateful_set = self._sets.get(*key)
        if stateful_set is None:
            return None
        claims: set[str] = {c.metadata.name for c in self._volume_claims.list(key[0])}
        actions = decide_stateful_set(
            stateful_set, self._pods.list(key[0]), self._revisions.list(key[0]), claims, self._context.clock.now()
        )
        await carry_out_creating(self._context, stateful_set, kinds.STATEFUL_SET, actions)
        seconds = stateful_set.spec.min_ready_seconds or 0
        return float(seconds) if seconds else None


def owner_keys(obj: core_v1.Pod | apps_v1.ControllerRevision, kind: str) -> Iterable[tuple[str, str]]:
    """The key of the object of that kind which controls ``obj``, if any."""
    owner = podlib.controller_of(obj.metadata)
    return [(obj.metadata.namespace, owner.name)] if owner is not None and owner.kind == kind else []
