"""Namespaces that are being deleted: their contents go first, then the finalizer.

Counterpart: ``pkg/controller/namespace``. Pods go before everything else, since claims are only released when their
pods are gone. Upstream waits about 5 s before it begins; here it begins at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubedra.api import core_v1, kinds
from kubedra.api.errors import ApiError
from kubedra.controllers.shell import Context, Controller

LOOK_AGAIN_SECONDS = 0.5


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
            left = 0
            for kind in stage:
                left += await self._empty(kind, key)
            if left:
                return LOOK_AGAIN_SECONDS
        await self._finalize(namespace)
        return None

    async def _empty(self, kind: kinds.Kind[Any], namespace: str) -> int:
        """Delete all objects of a kind in a namespace; returns how many are still there."""
        try:
            found = await self._context.client.list(kind, namespace)
            if not found.items:
                return 0
            await self._context.client.delete_collection(kind, namespace)
            return len((await self._context.client.list(kind, namespace, limit=1)).items)
        except ApiError as error:
            if error.code in (404, 405):
                return 0
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
