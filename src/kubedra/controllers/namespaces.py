"""Namespaces that are being deleted: their contents go first, then the finalizer.

Counterpart: ``pkg/controller/namespace``. Pods go before everything else, since claims are only released when their
pods are gone. Upstream waits about 5 s before it begins; here it begins at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubedra.api import core_v1, kinds, meta_v1
from kubedra.api.errors import ApiError
from kubedra.base.clock import format_time
from kubedra.controllers.actions import Action, Patch
from kubedra.controllers.shell import Context, Controller

LOOK_AGAIN_SECONDS = 0.5
# What is still there after everything was deleted: it waits for finalizers, or for its grace period.
Left = dict[kinds.Kind[Any], list[meta_v1.ObjectMeta]]


def contents(served: Sequence[kinds.Kind[Any]]) -> list[list[kinds.Kind[Any]]]:
    """The kinds to empty, in stages: pods, then all others in the version that is stored first."""
    seen: set[tuple[str, str]] = {("", "pods")}
    others = []
    for kind in served:
        if not kind.namespaced or "deletecollection" not in kind.verbs or (kind.group, kind.plural) in seen:
            continue
        if kind.plural == "events" and kind.group:
            continue
        seen.add((kind.group, kind.plural))
        others.append(kind)
    return [[kinds.POD], others]


def tell_what_is_left(namespace: core_v1.Namespace, left: Left, now: str) -> list[Action]:
    """Conditions that say why a namespace is still there; nothing to do when they say so already."""
    counts: dict[str, int] = {}
    for remaining in left.values():
        for finalizer in (finalizer for metadata in remaining for finalizer in metadata.finalizers):
            counts[finalizer] = counts.get(finalizer, 0) + 1
    resources = sorted(
        f"{kind.plural}.{kind.group} has {len(objects)} resource instances" for kind, objects in left.items()
    )
    finalizers = [f"{name} in {count} resource instances" for name, count in sorted(counts.items())]
    wanted = [
        ("NamespaceDeletionDiscoveryFailure", False, "ResourcesDiscovered", "All resources successfully discovered"),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            False,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            False,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            True,
            "SomeResourcesRemain",
            f"Some resources are remaining: {', '.join(resources)}",
        ),
        (
            "NamespaceFinalizersRemaining",
            bool(finalizers),
            "SomeFinalizersRemain" if finalizers else "ContentHasNoFinalizers",
            f"Some content in the namespace has finalizers remaining: {', '.join(finalizers)}"
            if finalizers
            else "All content-preserving finalizers finished",
        ),
    ]
    before = {c.type: c for c in namespace.status.conditions}
    conditions = []
    for kind, on, reason, message in wanted:
        status, old = str(on), before.get(kind)
        if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
            continue
        moved = now if old is None or old.status != status else old.last_transition_time
        conditions.append(
            {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": moved}
        )
    if not conditions:
        return []
    patch = {"metadata": {"uid": namespace.metadata.uid}, "status": {"conditions": conditions}}
    name = namespace.metadata.name
    return [Patch(kinds.NAMESPACE, name, "", patch, patch_type="strategic", subresource="status")]


class NamespaceController(Controller):
    """Keys are names of namespaces."""

    name = "namespace-controller"

    def setup(self, context: Context) -> None:
        """Watch namespaces."""
        self._context = context
        self._stages = contents(kinds.ALL)
        self._namespaces = context.watch(
            kinds.NAMESPACE, lambda n: [n.metadata.name] if n.metadata.deletion_timestamp else []
        )

    async def sync(self, key: str) -> float | None:
        """Empty a namespace that is being deleted, stage by stage; then let it go."""
        namespace = self._namespaces.get("", key)
        if namespace is None or not namespace.metadata.deletion_timestamp:
            return None
        if "kubernetes" not in namespace.spec.finalizers:
            return None
        for stage in self._stages:
            left: Left = {}
            for kind in stage:
                remaining = await self._empty(kind, key)
                if remaining:
                    left[kind] = remaining
            if left:
                await self._context.carry_out(
                    tell_what_is_left(namespace, left, format_time(self._context.clock.now()))
                )
                return LOOK_AGAIN_SECONDS
        await self._finalize(namespace)
        return None

    async def _empty(self, kind: kinds.Kind[Any], namespace: str) -> list[meta_v1.ObjectMeta]:
        """Delete all objects of a kind in a namespace; returns those that are still there."""
        try:
            found = await self._context.client.list(kind, namespace)
            if not found.items:
                return []
            await self._context.client.delete_collection(kind, namespace)
            return [item.metadata for item in (await self._context.client.list(kind, namespace)).items]
        except ApiError as error:
            if error.code in (404, 405):
                return []
            raise

    async def _finalize(self, namespace: core_v1.Namespace) -> None:
        rest = [f for f in namespace.spec.finalizers if f != "kubernetes"]
        meta = namespace.metadata
        tree = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": meta.name, "uid": meta.uid, "resourceVersion": meta.resource_version},
            "spec": {"finalizers": rest},
        }
        await self._context.client.update(kinds.NAMESPACE, tree, subresource="finalize")
