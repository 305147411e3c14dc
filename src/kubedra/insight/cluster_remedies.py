"""Remedies in the cluster: a device freed, a node that takes the pod after all, one more node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kubedra.allocation.waterfall import NODE_STEPS, Waterfall
from kubedra.api import core_v1
from kubedra.api.resource_v1 import ResourceSlice
from kubedra.insight.answers import Remedy, plural, shortened
from kubedra.insight.claim_remedies import toleration_text
from kubedra.insight.devices import NO_DEVICES, Summaries
from kubedra.insight.freeing import fewest_to_free
from kubedra.insight.holders import holder_text, is_used
from kubedra.insight.node_groups import CONDITIONS, taint_text
from kubedra.insight.trying import Trying
from kubedra.scheduler.filters.taint_toleration import tolerated
from kubedra.scheduler.pods import pod_info

KINDS_OF_NODES = 3
_SIZE, _ROOM = NODE_STEPS.index("size"), NODE_STEPS.index("room")

replace = msgspec.structs.replace


# ---- other pods ----


def freeing_remedies(trying: Trying) -> Iterator[Remedy]:
    """The fewest pods to end, or claims to delete, or a pod to move."""
    missing = _missing_by_node(trying)
    freed = fewest_to_free(trying.decision, trying.question, missing, trying.deadline) if missing else None
    if freed is None:
        return
    snapshot = trying.decision.snapshot
    names = [holder_text(snapshot, key) for key in freed.claims]
    devices = shortened(freed.trial.devices)
    it = "it" if len(names) == 1 else "them"
    code, node = "free-device", freed.trial.node
    few = "" if len(names) == 1 else f" ({len(names)} is the fewest found)"
    text = f"End {shortened(names)}{few}; then {devices} can be had"
    if not any(is_used(snapshot, key) for key in freed.claims):
        code, text = "free-unused-claim", f"Delete {shortened(names)}: no pod uses {it}; then {devices} can be had"
    elif freed.movable:
        code = "move-pod"
        moved = "the moved pod gets" if len(names) == 1 else "the moved pods get"
        text = f"Move {shortened(names)}: delete {it}, and create {it} again once this pod runs; this pod then gets"
        text += f" {devices}, and {moved} {freed.back}"
    yield Remedy(code, text, node, freed=freed.claims)


def _missing_by_node(trying: Trying) -> dict[str, int]:
    """How many devices would have to be freed at least, on each node that has enough once all are free."""
    by_request: dict[tuple[str, str], list[Waterfall]] = {}
    for fall in trying.falls:
        by_request.setdefault((fall.claim, fall.request.partition("/")[0]), []).append(fall)
    deficits: dict[str, int] = {}
    for node in trying.question.nodes:
        total = 0
        for falls in by_request.values():
            missing = None
            for fall in falls:
                counts, need = fall.nodes.get(node), max(fall.needed, 1)
                if counts is not None and counts[_SIZE] >= need:
                    lack = max(need - counts[_ROOM], 0)
                    missing = lack if missing is None else min(missing, lack)
            if missing is None:
                break
            total += missing
        else:
            deficits[node] = total
    return deficits


# ---- nodes that reject the pod ----


def node_remedies(trying: Trying) -> Iterator[Remedy]:
    """Nodes that reject the pod and would do if they did not."""
    view, pod = trying.decision.view, trying.question.pod
    taints: dict[str, tuple[core_v1.Taint, int]] = {}
    by_plugin: dict[str, list[str]] = {}
    for name, rejected in trying.question.rejected.items():
        by_plugin.setdefault(rejected.plugin, []).append(name)
        for taint in view.nodes[name].hard_taints if rejected.plugin == "TaintToleration" else ():
            if taint.key not in CONDITIONS and not tolerated(taint, pod.spec.tolerations):
                taints[taint_text(taint)] = taint, taints.get(taint_text(taint), (taint, 0))[1] + 1
    for text, (taint, count) in taints.items():
        toleration = core_v1.Toleration(
            key=taint.key, operator="Equal" if taint.value else "Exists", value=taint.value, effect=taint.effect
        )
        node = _place_changed(trying, replace(pod.spec, tolerations=(*pod.spec.tolerations, toleration)))
        if node:
            where = f"Tolerate the taint {text} of {plural(count, 'node')} in the pod's spec"
            yield Remedy("tolerate-node", where, node, toleration_text(toleration))
    if "NodeAffinity" in by_plugin:
        node = _place_changed(trying, replace(pod.spec, node_selector={}, affinity=None))
        if node:
            yield Remedy("drop-node-selector", "Drop the pod's node selector and affinity", node)
    if "NodeUnschedulable" in by_plugin:
        node = _place_uncordoned(trying, by_plugin["NodeUnschedulable"])
        if node:
            yield Remedy("uncordon-node", f"Let pods in again: kubectl uncordon {node}", node)


def _place_changed(trying: Trying, spec: core_v1.PodSpec) -> str:
    return trying.place(pod_info(replace(trying.question.pod.pod, spec=spec)))


def _place_uncordoned(trying: Trying, names: Sequence[str]) -> str:
    view = trying.decision.view
    before = {name: node for name in names if (node := view.nodes[name].node) is not None}
    try:
        for name, node in before.items():
            taints = tuple(t for t in node.spec.taints if t.key != "node.kubernetes.io/unschedulable")
            view.set_node(name, replace(node, spec=replace(node.spec, unschedulable=None, taints=taints)))
        return trying.place(trying.question.pod)
    finally:
        for name, node in before.items():
            view.set_node(name, node)


# ---- more nodes ----


def new_node_remedies(trying: Trying) -> Iterator[Remedy]:
    """One more node like one that is there, with all its devices free."""
    decision = trying.decision
    summaries = Summaries()
    kinds: dict[str, str] = {}
    for name in trying.question.nodes:
        has = summaries.of_view(decision.inventory.node_view(name))
        if has != NO_DEVICES:
            kinds.setdefault(has, name)
    told = 0
    for has, name in kinds.items():
        if trying.deadline.passed() or told >= KINDS_OF_NODES:
            return
        if _fits_on_another(trying, name):
            told += 1
            yield Remedy("add-node", f"Add a node like {name} ({has})", "")


def _fits_on_another(trying: Trying, name: str) -> bool:
    """Whether the scheduler would put the pod on a copy of a node; only for nodes whose devices are all their own."""
    decision = trying.decision
    inventory, view = decision.inventory, decision.view
    node = view.nodes[name].node
    slices = [s for pool in inventory.node_view(name).pools for s in inventory.pools[pool.key].values()]
    if node is None or any(slice_.raw.spec.node_name != name for slice_ in slices):
        return False
    copy = f"{name}-like"
    labels = {k: copy if v == name else v for k, v in node.metadata.labels.items()}
    try:
        decision.add_node(replace(node, metadata=replace(node.metadata, name=copy, uid=copy, labels=labels)))
        for slice_ in slices:
            inventory.update_slice(_renamed(slice_.raw, name, copy))
        return trying.place(trying.question.pod) == copy
    finally:
        for slice_ in slices:
            inventory.update_slice(None, f"{slice_.name}-like")
        view.set_node(copy, None)
        inventory.update_node(None, copy)


def _renamed(raw: ResourceSlice, name: str, copy: str) -> ResourceSlice:
    pool = replace(raw.spec.pool, name=f"{raw.spec.pool.name}-like")
    metadata = replace(raw.metadata, name=f"{raw.metadata.name}-like")
    return replace(raw, metadata=metadata, spec=replace(raw.spec, node_name=copy, pool=pool))
