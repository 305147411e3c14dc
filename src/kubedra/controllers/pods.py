"""What all workload controllers know of pods: making them from templates, whose they are, how well they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, Protocol

from kubedra.api import codec, core_v1, kinds, meta_v1
from kubedra.base.clock import parse_time
from kubedra.controllers.actions import Create, Patch

Pod = core_v1.Pod


class Selecting(Protocol):
    """Anything with a label selector of the API's shape."""

    @property
    def match_labels(self) -> Mapping[str, str]: ...
    @property
    def match_expressions(self) -> tuple[meta_v1.LabelSelectorRequirement, ...]: ...


def selects(selector: Selecting | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector object matches labels; an absent one matches nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(k) != v for k, v in selector.match_labels.items()):
        return False
    for r in selector.match_expressions:
        value = labels.get(r.key)
        holds = {
            "In": value is not None and value in r.values,
            "NotIn": value is None or value not in r.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not holds.get(r.operator, False):
            return False
    return True


def controller_of(meta: meta_v1.ObjectMeta) -> meta_v1.OwnerReference | None:
    """The owner that controls an object, or None."""
    return next((r for r in meta.owner_references if r.controller), None)


def owner_reference(kind: kinds.Kind[Any], meta: meta_v1.ObjectMeta) -> dict[str, Any]:
    """The reference by which an object's controller owns what it makes."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_tree(
    kind: kinds.Kind[Any], owner: meta_v1.ObjectMeta, template: core_v1.PodTemplateSpec, *, name: str = ""
) -> dict[str, Any]:
    """The pod that a template makes for its owner; with a generated name unless one is given."""
    tree = codec.to_tree(template)
    meta: dict[str, Any] = {
        "namespace": owner.namespace,
        "labels": dict(template.metadata.labels),
        "annotations": dict(template.metadata.annotations),
        "ownerReferences": [owner_reference(kind, owner)],
    }
    if template.metadata.finalizers:
        meta["finalizers"] = list(template.metadata.finalizers)
    if name:
        meta["name"] = name
    else:
        meta["generateName"] = f"{owner.name}-"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": tree.get("spec", {})}


def create_pod(tree: dict[str, Any]) -> Create:
    """The action that creates a pod."""
    return Create(kinds.POD, tree, tree["metadata"]["namespace"])


def condition(pod: Pod, type_: str) -> core_v1.PodCondition | None:
    """A condition of a pod, or None."""
    return next((c for c in pod.status.conditions if c.type == type_), None)


def is_ready(pod: Pod) -> bool:
    """Whether the pod's Ready condition is true."""
    found = condition(pod, "Ready")
    return found is not None and found.status == "True"


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Whether a pod has been ready for long enough."""
    found = condition(pod, "Ready")
    if found is None or found.status != "True":
        return False
    if not min_ready_seconds or not found.last_transition_time:
        return not min_ready_seconds
    return (now - parse_time(found.last_transition_time)).total_seconds() >= min_ready_seconds


def is_active(pod: Pod) -> bool:
    """Whether a pod counts: not finished and not being deleted."""
    return pod.status.phase not in ("Succeeded", "Failed") and not pod.metadata.deletion_timestamp


def first_to_go(pods: Iterable[Pod]) -> list[Pod]:
    """Pods in the order in which they are given up: unbound, pending, not ready, cheap to delete, youngest first."""

    def rank(pod: Pod) -> tuple[Any, ...]:
        phase = {"Pending": 0, "Unknown": 1}.get(pod.status.phase or "Pending", 2)
        cost = pod.metadata.annotations.get("controller.kubernetes.io/pod-deletion-cost", "0")
        restarts = max((s.restart_count for s in pod.status.container_statuses), default=0)
        created = pod.metadata.creation_timestamp
        age = -parse_time(created).timestamp() if created else 0.0
        number = int(cost) if cost.lstrip("-").isdigit() else 0
        return (bool(pod.spec.node_name), phase, is_ready(pod), number, -restarts, age, pod.metadata.name)

    return sorted(pods, key=rank)


def claim_pods(
    kind: kinds.Kind[Any],
    owner: meta_v1.ObjectMeta,
    selector: Selecting | None,
    pods: Iterable[Pod],
) -> tuple[list[Pod], list[Patch]]:
    """The pods that belong to an owner, and the patches that adopt orphans and release pods that no longer match."""
    mine: list[Pod] = []
    patches: list[Patch] = []
    for pod in pods:
        control = controller_of(pod.metadata)
        matches = selects(selector, pod.metadata.labels)
        if control is not None and control.uid == owner.uid:
            if matches or owner.deletion_timestamp:
                mine.append(pod)
            else:
                patches.append(_own(pod, [r for r in _references(pod) if r["uid"] != owner.uid]))
        elif control is None and matches and is_active(pod) and not owner.deletion_timestamp:
            patches.append(_own(pod, [*_references(pod), owner_reference(kind, owner)]))
            mine.append(pod)
    return mine, patches


def _references(pod: Pod) -> list[dict[str, Any]]:
    references: list[dict[str, Any]] = codec.to_tree(pod.metadata).get("ownerReferences", [])
    return references


def _own(pod: Pod, references: list[dict[str, Any]]) -> Patch:
    patch = {"metadata": {"uid": pod.metadata.uid, "ownerReferences": references or None}}
    return Patch(kinds.POD, pod.metadata.name, pod.metadata.namespace, patch)


def status_patch(kind: kinds.Kind[Any], meta: meta_v1.ObjectMeta, current: Any, wanted: dict[str, Any]) -> list[Patch]:
    """The patch that makes a status what it should be; none when it is. Members set to None are removed."""
    have = codec.to_tree(current) if not isinstance(current, dict) else current
    change = {k: v for k, v in wanted.items() if have.get(k) != v and not (v in (None, 0) and not have.get(k))}
    if not change:
        return []
    patch = {"metadata": {"uid": meta.uid}, "status": change}
    return [Patch(kind, meta.name, meta.namespace, patch, subresource="status")]


def template_hash(template: core_v1.PodTemplateSpec, collisions: int = 0) -> str:
    """A short name for a pod template; labels that controllers add themselves don't count."""
    tree = codec.to_tree(template)
    labels = tree.get("metadata", {}).get("labels", {})
    labels.pop("pod-template-hash", None)
    digest = hashlib.sha256(codec.encode([_sorted(tree), collisions])).digest()
    alphabet = "bcdfghjklmnpqrstvwxz2456789"
    return "".join(alphabet[b % len(alphabet)] for b in digest[:10])


def _sorted(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: _sorted(tree[k]) for k in sorted(tree)}
    return [_sorted(v) for v in tree] if isinstance(tree, list) else tree


def scaled(value: int | str | None, total: int, *, round_up: bool, default: int | str = 0) -> int:
    """An int-or-percent of a total. Text that is neither counts as the default."""
    text = value if value is not None else default
    if isinstance(text, int):
        return text
    if text.endswith("%") and text[:-1].isdigit():
        product = int(text[:-1]) * total
        return -(-product // 100) if round_up else product // 100
    return int(text) if text.lstrip("-").isdigit() else scaled(default, total, round_up=round_up)


Truth = Literal["True", "False", "Unknown"]


def set_condition(
    current: Iterable[Any], type_: str, status: Truth, reason: str, message: str, now: str, *, updates: bool = False
) -> list[dict[str, Any]]:
    """The condition list with one set; its time moves only when the status changes.

    ``updates``: also keep ``lastUpdateTime`` as Deployments do.
    """
    out = [codec.to_tree(c) if not isinstance(c, dict) else c for c in current]
    old = next((c for c in out if c.get("type") == type_), None)
    if old is not None and (old.get("status"), old.get("reason"), old.get("message", "")) == (status, reason, message):
        return out
    new = {"type": type_, "status": status, "reason": reason, "message": message}
    if updates:
        new["lastUpdateTime"] = now
    unchanged = old is not None and old.get("status") == status
    new["lastTransitionTime"] = (old or {}).get("lastTransitionTime", now) if unchanged else now
    return [new if c is old else c for c in out] if old is not None else [*out, new]
