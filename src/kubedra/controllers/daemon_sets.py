"""DaemonSets: one pod on every node that takes it. Counterpart: ``pkg/controller/daemon``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from kubedra.api import apps_v1, core_v1, kinds
from kubedra.base.node_selectors import matches_node_selector
from kubedra.controllers import pods as podlib
from kubedra.controllers.actions import Action, Delete
from kubedra.controllers.pods import Pod
from kubedra.controllers.replica_sets import carry_out_creating
from kubedra.controllers.revisions import HASH_LABEL, keep_revision, revision_name
from kubedra.controllers.shell import Context, Controller
from kubedra.controllers.stateful_sets import owner_keys

# Added to every pod of a DaemonSet: it stays where others would be driven away.
TOLERATIONS: tuple[dict[str, str], ...] = (
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
)


def should_run(daemon_set: apps_v1.DaemonSet, node: core_v1.Node) -> tuple[bool, bool]:
    """Whether a pod should be started on a node, and whether one that runs there may stay."""
    pod = daemon_set.spec.template.spec
    labels, name = node.metadata.labels, node.metadata.name
    if pod.node_name and pod.node_name != name:
        return False, False
    if any(labels.get(k) != v for k, v in pod.node_selector.items()):
        return False, False
    affinity = pod.affinity.node_affinity if pod.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is not None and not matches_node_selector(required, labels, name):
        return False, False
    start = stay = True
    for taint in node.spec.taints:
        if taint.effect not in ("NoSchedule", "NoExecute") or _tolerated(taint, pod.tolerations):
            continue
        start = False
        stay = stay and taint.effect != "NoExecute"
    return start, stay


def _tolerated(taint: core_v1.Taint, tolerations: Sequence[core_v1.Toleration]) -> bool:
    own = [(t["key"], t["effect"]) for t in TOLERATIONS]
    if (taint.key, taint.effect) in own:
        return True
    return any(
        (not t.effect or t.effect == taint.effect)
        and (not t.key or t.key == taint.key)
        and (t.operator == "Exists" or t.value == taint.value)
        for t in tolerations
    )


def decide_daemon_set(
    daemon_set: apps_v1.DaemonSet,
    nodes: Sequence[core_v1.Node],
    candidates: Iterable[Pod],
    revisions: Sequence[apps_v1.ControllerRevision],
    now: datetime,
) -> list[Action]:
    """Pods to make and to give up per node, rolling updates, and the status."""
    meta, spec = daemon_set.metadata, daemon_set.spec
    mine, patches = podlib.claim_pods(kinds.DAEMON_SET, meta, spec.selector, candidates)
    actions: list[Action] = list(patches)
    update = revision_name(meta, spec.template)
    by_node: dict[str, list[Pod]] = {}
    for pod in mine:
        by_node.setdefault(_node_of(pod), []).append(pod)
    wanted = misscheduled = 0
    kept: list[Pod] = []
    for node in nodes:
        start, stay = should_run(daemon_set, node)
        there = by_node.pop(node.metadata.name, [])
        alive = sorted((p for p in there if podlib.is_active(p)), key=lambda p: p.metadata.creation_timestamp)
        for pod in there:
            if pod.status.phase in ("Failed", "Succeeded") and not pod.metadata.deletion_timestamp:
                actions.append(_delete(pod))
        wanted += start
        if not start:
            misscheduled += bool(alive)
            actions += [_delete(p) for p in alive if not stay]
            continue
        kept += alive[:1]
        actions += [_delete(p) for p in alive[1:]]
        # A pod that is going leaves first: two never share a node.
        if not alive and not any(p.metadata.deletion_timestamp for p in there) and not meta.deletion_timestamp:
            actions.append(podlib.create_pod(_pod(daemon_set, node.metadata.name, update)))
    for pods in by_node.values():
        actions += [_delete(p) for p in pods if podlib.is_active(p)]
    if not meta.deletion_timestamp:
        in_use = {p.metadata.labels.get(HASH_LABEL, "") for p in mine}
        limit = 10 if spec.revision_history_limit is None else spec.revision_history_limit
        actions += keep_revision(kinds.DAEMON_SET, meta, spec.template, revisions, in_use, limit)
        actions += _roll(daemon_set, kept, wanted, update, now)
    ready = [p for p in kept if podlib.is_ready(p)]
    available = sum(podlib.is_available(p, spec.min_ready_seconds or 0, now) for p in ready)
    status: dict[str, Any] = {
        "observedGeneration": meta.generation,
        "desiredNumberScheduled": wanted,
        "currentNumberScheduled": len(kept),
        "numberMisscheduled": misscheduled,
        "numberReady": len(ready),
        "numberAvailable": available,
        "numberUnavailable": wanted - available or None,
        "updatedNumberScheduled": sum(p.metadata.labels.get(HASH_LABEL) == update for p in kept),
    }
    return [*actions, *podlib.status_patch(kinds.DAEMON_SET, meta, daemon_set.status, status)]


def _roll(daemon_set: apps_v1.DaemonSet, kept: Sequence[Pod], wanted: int, update: str, now: datetime) -> list[Action]:
    strategy = daemon_set.spec.update_strategy
    if strategy is not None and strategy.type == "OnDelete":
        return []
    rolling = strategy.rolling_update if strategy is not None else None
    limit = max(podlib.scaled(rolling.max_unavailable if rolling else None, wanted, round_up=True, default=1), 1)
    seconds = daemon_set.spec.min_ready_seconds or 0
    old = [p for p in kept if p.metadata.labels.get(HASH_LABEL) != update]
    gone = wanted - sum(podlib.is_available(p, seconds, now) for p in kept)
    broken = [p for p in old if not podlib.is_available(p, seconds, now)]
    healthy = [p for p in old if podlib.is_available(p, seconds, now)]
    return [_delete(p) for p in [*broken, *healthy[: max(limit - gone, 0)]]]


def _delete(pod: Pod) -> Delete:
    return Delete(kinds.POD, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)


def _node_of(pod: Pod) -> str:
    """The node a pod is on, or is bound for by its affinity."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for requirement in term.match_fields:
            if requirement.key == "metadata.name" and requirement.operator == "In" and len(requirement.values) == 1:
                return requirement.values[0]
    return ""


def _pod(daemon_set: apps_v1.DaemonSet, node: str, revision: str) -> dict[str, Any]:
    tree = podlib.pod_tree(kinds.DAEMON_SET, daemon_set.metadata, daemon_set.spec.template)
    tree["metadata"]["labels"][HASH_LABEL] = revision
    spec = tree["spec"]
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": [{}]})
    pinned = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    for term in required["nodeSelectorTerms"]:
        term["matchFields"] = pinned
    present = spec.setdefault("tolerations", [])
    present += [t for t in TOLERATIONS if t not in present]
    return tree


class DaemonSetController(Controller):
    """Keys are (namespace, name)."""

    name = "daemonset-controller"

    def setup(self, context: Context) -> None:
        """Watch daemon sets, pods, revisions and nodes."""
        self._context = context
        self._sets = context.watch(kinds.DAEMON_SET, lambda d: [(d.metadata.namespace, d.metadata.name)])
        self._pods = context.watch(kinds.POD, lambda p: owner_keys(p, "DaemonSet"))
        self._revisions = context.watch(kinds.CONTROLLER_REVISION, lambda r: owner_keys(r, "DaemonSet"))
        self._nodes = context.caches.of(kinds.NODE)
        self._nodes.add_handler(self._node_changed)

    def _node_changed(self, old: core_v1.Node | None, new: core_v1.Node | None) -> None:
        same = (
            old is not None
            and new is not None
            and (old.metadata.labels, old.spec.taints) == (new.metadata.labels, new.spec.taints)
        )
        for daemon_set in () if same else self._sets.list():
            self._context.queue.add((daemon_set.metadata.namespace, daemon_set.metadata.name))

    async def sync(self, key: tuple[str, str]) -> float | None:
        """Give each node the pod it should have."""
        daemon_set = self._sets.get(*key)
        if daemon_set is None:
            return None
        actions = decide_daemon_set(
            daemon_set,
            self._nodes.list(),
            self._pods.list(key[0]),
            self._revisions.list(key[0]),
            self._context.clock.now(),
        )
        await carry_out_creating(self._context, daemon_set, kinds.DAEMON_SET, actions)
        seconds = daemon_set.spec.min_ready_seconds or 0
        return float(seconds) if seconds else None
