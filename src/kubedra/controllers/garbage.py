"""The garbage collector: objects whose owners are gone, and owners that wait for what they own.

Counterpart: ``pkg/controller/garbagecollector``. It watches every kind that our users and parts create (metadata is all
it reads), keeps a graph of owners and dependents, and deletes with preconditions. An owner that the graph does not know
is asked for before anything is deleted: a watch that lags never costs an object.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kubedra.api import kinds, meta_v1
from kubedra.api.errors import ApiError
from kubedra.client.watch_cache import WatchCache
from kubedra.controllers.actions import Action, Delete, Patch
from kubedra.controllers.shell import Context, Controller, RetryLater

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"

COLLECTED: tuple[kinds.Kind[Any], ...] = (
    kinds.POD,
    kinds.RESOURCE_CLAIM,
    kinds.RESOURCE_CLAIM_TEMPLATE,
    kinds.RESOURCE_SLICE,
    kinds.DEVICE_CLASS,
    kinds.CONFIG_MAP,
    kinds.SECRET,
    kinds.SERVICE_ACCOUNT,
    kinds.NODE,
    kinds.DEPLOYMENT,
    kinds.REPLICA_SET,
    kinds.STATEFUL_SET,
    kinds.DAEMON_SET,
    kinds.CONTROLLER_REVISION,
    kinds.JOB,
)


@dataclass(frozen=True)
class OwnerState:
    """What is known of an owner: there or not, and whether it is being deleted in the foreground."""

    reference: meta_v1.OwnerReference
    exists: bool
    foreground: bool = False


def decide_dependent(
    kind: kinds.Kind[Any], meta: meta_v1.ObjectMeta, owners: Iterable[OwnerState], *, has_dependents: bool = False
) -> list[Action]:
    """What becomes of an object with owners: kept while one solid owner is there, else deleted.

    An owner in foreground deletion counts as waiting: with no solid owner the object is deleted in the foreground too
    when it has dependents or the finalizer itself, in the background otherwise. With a solid owner the dead references
    are dropped.
    """
    states = list(owners)
    if not states or meta.deletion_timestamp:
        return []
    solid = [s for s in states if s.exists and not s.foreground]
    dead = [s for s in states if not s.exists or s.foreground]
    if solid:
        if not dead:
            return []
        rest = [
            r
            for r in (_reference(s.reference) for s in states if s in solid)
            if r["uid"] not in {d.reference.uid for d in dead}
        ]
        patch = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "ownerReferences": rest}}
        return [Patch(kind, meta.name, meta.namespace, patch)]
    waiting = any(s.exists for s in states)
    policy = "Foreground" if waiting and (has_dependents or FOREGROUND in meta.finalizers) else "Background"
    if ORPHAN in meta.finalizers:
        policy = "Orphan"
    return [
        Delete(
            kind,
            meta.name,
            meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            propagation_policy=policy,
        )
    ]


def decide_owner(
    kind: kinds.Kind[Any],
    meta: meta_v1.ObjectMeta,
    dependents: Iterable[tuple[kinds.Kind[Any], meta_v1.ObjectMeta]],
) -> list[Action]:
    """What an owner that is being deleted waits for: its dependents (foreground), or their release (orphan)."""
    if not meta.deletion_timestamp:
        return []
    found = list(dependents)
    if ORPHAN in meta.finalizers:
        actions: list[Action] = []
        for dependent_kind, dependent in found:
            rest = [_reference(r) for r in dependent.owner_references if r.uid != meta.uid]
            patch = {"metadata": {"uid": dependent.uid, "ownerReferences": rest or None}}
            actions.append(Patch(dependent_kind, dependent.name, dependent.namespace, patch))
        return [*actions, _without(kind, meta, ORPHAN)]
    if FOREGROUND in meta.finalizers:
        blocking = [
            d for _, d in found if any(r.uid == meta.uid and r.block_owner_deletion for r in d.owner_references)
        ]
        if not blocking:
            return [_without(kind, meta, FOREGROUND)]
    return []


def _same_relations(old: meta_v1.ObjectMeta, new: meta_v1.ObjectMeta) -> bool:
    """Whether a change leaves alone all that collection looks at; most do: somebody wrote a status."""
    return (
        old.uid == new.uid
        and old.owner_references == new.owner_references
        and old.deletion_timestamp == new.deletion_timestamp
        and all((finalizer in old.finalizers) == (finalizer in new.finalizers) for finalizer in (FOREGROUND, ORPHAN))
    )


def _without(kind: kinds.Kind[Any], meta: meta_v1.ObjectMeta, finalizer: str) -> Patch:
    rest = [f for f in meta.finalizers if f != finalizer]
    patch = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": rest or None}}
    return Patch(kind, meta.name, meta.namespace, patch)


def _reference(r: meta_v1.OwnerReference) -> dict[str, Any]:
    out: dict[str, Any] = {"apiVersion": r.api_version, "kind": r.kind, "name": r.name, "uid": r.uid}
    if r.controller is not None:
        out["controller"] = r.controller
    if r.block_owner_deletion is not None:
        out["blockOwnerDeletion"] = r.block_owner_deletion
    return out


class GarbageCollector(Controller):
    """Keys are (api version, kind, namespace, name)."""

    name = "garbage-collector-controller"
    workers = 16

    def setup(self, context: Context) -> None:
        """Watch every kind that is collected; index by owner uid."""
        self._context = context
        self._caches: dict[tuple[str, str], WatchCache[Any]] = {}
        for kind in COLLECTED:
            cache = context.caches.of(kind)
            cache.add_index("owner uid", lambda o: [r.uid for r in o.metadata.owner_references])
            cache.add_index("uid", lambda o: [o.metadata.uid])
            cache.add_handler(self._handler(kind))
            self._caches[kind.api_version, kind.kind] = cache

    def _handler(self, kind: kinds.Kind[Any]) -> Any:
        def changed(old: Any, new: Any) -> None:
            obj = new if new is not None else old
            meta = obj.metadata
            owned = bool(meta.owner_references)
            if old is not None and new is not None and _same_relations(old.metadata, meta):
                return
            if new is not None and (
                owned or (meta.deletion_timestamp and (FOREGROUND in meta.finalizers or ORPHAN in meta.finalizers))
            ):
                self._add(kind, meta)
            if new is None or meta.deletion_timestamp:
                for dependent_kind, dependent in self._dependents(meta.uid):
                    self._add(dependent_kind, dependent)
            if new is None:
                for reference in meta.owner_references:
                    owner = self._known(reference)
                    if owner is not None and owner.deletion_timestamp:
                        self._context.queue.add(
                            (reference.api_version, reference.kind, owner.namespace, reference.name)
                        )

        return changed

    def _add(self, kind: kinds.Kind[Any], meta: meta_v1.ObjectMeta) -> None:
        self._context.queue.add((kind.api_version, kind.kind, meta.namespace, meta.name))

    def _dependents(self, uid: str) -> Iterable[tuple[kinds.Kind[Any], meta_v1.ObjectMeta]]:
        for cache in self._caches.values():
            for obj in cache.by_index("owner uid", uid):
                yield cache.kind, obj.metadata

    def _known(self, reference: meta_v1.OwnerReference) -> meta_v1.ObjectMeta | None:
        cache = self._caches.get((reference.api_version, reference.kind))
        for obj in cache.by_index("uid", reference.uid) if cache is not None else ():
            meta: meta_v1.ObjectMeta = obj.metadata
            return meta
        return None

    async def sync(self, key: tuple[str, str, str, str]) -> float | None:
        """Bring one object into order: as an owner that is going, and as a dependent."""
        api_version, kind_name, namespace, name = key
        cache = self._caches[api_version, kind_name]
        obj = cache.get(namespace, name)
        if obj is None:
            return None
        meta: meta_v1.ObjectMeta = obj.metadata
        actions = decide_owner(cache.kind, meta, self._dependents(meta.uid))
        if not actions:
            states = [await self._state(reference, meta) for reference in meta.owner_references]
            # Who depends on it only matters where an owner waits for its dependents.
            waits = any(state.foreground for state in states)
            has_dependents = waits and any(True for _ in self._dependents(meta.uid))
            actions = decide_dependent(cache.kind, meta, states, has_dependents=has_dependents)
        await self._context.carry_out(actions)
        return None

    async def _state(self, reference: meta_v1.OwnerReference, dependent: meta_v1.ObjectMeta) -> OwnerState:
        known = self._known(reference)
        if known is None or known.namespace not in ("", dependent.namespace):
            known = await self._ask(reference, dependent.namespace)
        if known is None:
            return OwnerState(reference, exists=False)
        foreground = bool(known.deletion_timestamp) and FOREGROUND in known.finalizers
        return OwnerState(reference, exists=True, foreground=foreground)

    async def _ask(self, reference: meta_v1.OwnerReference, namespace: str) -> meta_v1.ObjectMeta | None:
        """Ask the server for an owner that the graph does not know; kinds that nobody serves count as there."""
        kind = kinds.by_api_version(reference.api_version, reference.kind)
        if kind is None:
            return meta_v1.ObjectMeta(uid=reference.uid, name=reference.name)
        try:
            found = await self._context.client.get(kind, reference.name, namespace if kind.namespaced else "")
        except ApiError as error:
            if error.reason == "NotFound":
                return None
            raise RetryLater(error.message) from error
        meta = found.get("metadata", {}) if isinstance(found, dict) else found.metadata
        if isinstance(meta, dict):
            meta = meta_v1.ObjectMeta(
                uid=meta.get("uid", ""),
                name=meta.get("name", ""),
                deletion_timestamp=meta.get("deletionTimestamp", ""),
                finalizers=tuple(meta.get("finalizers", ())),
            )
        if meta.uid != reference.uid:
            return None
        return meta if isinstance(meta, meta_v1.ObjectMeta) else None
