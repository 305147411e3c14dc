"""Keeps the ResourceSlices of a driver as the driver wants them.

One publisher serves one driver name: on one node, or on all nodes of a fleet at once. It watches the slices, compares
(``slices.plan``) and writes differences, pool by pool; a slice that somebody deletes (an agent wipes its node's slices
when it starts) is back at once. Nothing is deleted when it stops. Upstream counterpart: the controller of
k8s.io/dynamic-resource-allocation/resourceslice, which waits 30 s after a change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from kubedra.api import codec, kinds, meta_v1, resource_v1
from kubedra.api.errors import ApiError
from kubedra.base.clock import Clock
from kubedra.client.protocol import Client
from kubedra.client.watch_cache import WatchCache
from kubedra.sdk import slices
from kubedra.sdk.lean import decoded_as
from kubedra.sdk.nodes import NodeOwners
from kubedra.sdk.resources import Pool, clean, pool_problems, split

_log = logging.getLogger(__name__)

Report = Callable[[str], None]

FIRST_RETRY_SECONDS = 0.2
LAST_RETRY_SECONDS = 30.0
# A server that was away is asked again soon: slices that are missing keep pods waiting.
LAST_RECONNECT_SECONDS = 2.0
# How long a write of ours is believed over a watch that does not show it (a lost watch may never show it).
OWN_WRITE_SECONDS = 30.0


class PublisherSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``node`` limits a publisher to one node's slices; ``parallel`` is how many pools are written at once."""

    driver: str
    node: str = ""
    parallel: int = 16


class _Wanted(msgspec.Struct, frozen=True):
    """What is wanted of a pool; made anew each time it is compared, so that thousands of pools need not be kept."""

    node: str
    make: Callable[[], Pool]


class _OwnWrite(msgspec.Struct, frozen=True):
    """What we last wrote under a name: the slice, or None for a deletion."""

    pool: str
    uid: str
    written: slices.StoredSlice | None
    until: float


class _LeanMetadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    owner_references: tuple[meta_v1.OwnerReference, ...] = ()


class _LeanSlice(msgspec.Struct, frozen=True):
    """A slice as the watch keeps it; its content is reduced to a fingerprint while it is decoded."""

    metadata: _LeanMetadata = _LeanMetadata()
    spec: Any = None
    stored: slices.StoredSlice | None = None

    def __post_init__(self) -> None:
        spec = msgspec.convert(codec.without_nulls(self.spec or {}), resource_v1.ResourceSliceSpec)
        meta = self.metadata
        stored = slices.StoredSlice(
            meta.name,
            meta.uid,
            meta.resource_version,
            tuple(reference.uid for reference in meta.owner_references),
            spec.node_name or "",
            spec.pool,
            slices.digest(spec),
        )
        msgspec.structs.force_setattr(self, "spec", None)
        msgspec.structs.force_setattr(self, "metadata", msgspec.structs.replace(meta, owner_references=()))
        msgspec.structs.force_setattr(self, "stored", stored)


class SlicePublisher:
    """Publishes pools; ``report`` gets one sentence for each thing that went wrong."""

    def __init__(
        self,
        client: Client,
        settings: PublisherSettings,
        owners: NodeOwners,
        clock: Clock,
        *,
        report: Report | None = None,
        manages: Callable[[slices.StoredSlice], bool] = lambda _: True,
    ) -> None:
        self._client = client
        self._settings = settings
        self._owners = owners
        self._clock = clock
        self._report: Report = report or _log.warning
        self._manages = manages
        selector = f"spec.driver={settings.driver}" + (f",spec.nodeName={settings.node}" if settings.node else "")
        kind = decoded_as(kinds.RESOURCE_SLICE, _LeanSlice)
        self._cache: WatchCache[_LeanSlice] = WatchCache(client, kind, field_selector=selector, clock=clock)
        self._cache.add_index("pool", lambda entry: (_stored(entry).pool.name,))
        self._wanted: dict[str, _Wanted] = {}
        self._pools_of_node: dict[str, set[str]] = {}
        self._own: dict[str, _OwnWrite] = {}
        # Slices that the watch saw go while a write is under way: its answer may come later and must not revive them.
        self._gone: set[str] = set()
        self._accepted: dict[str, dict[int, slices.Accepted]] = {}
        self._dirty: dict[str, None] = {}
        self._busy: set[str] = set()
        self._failures: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    # ---- what is wanted ----

    def publish(self, pools: Mapping[str, Pool]) -> None:
        """Want exactly these pools; slices of pools that are not named are deleted."""
        for name in self._wanted.keys() - pools.keys():
            self.publish_pool(name, None)
        for name, pool in pools.items():
            self.publish_pool(name, pool)

    def publish_pool(self, name: str, pool: Pool | None) -> None:
        """Want this pool as it is given, or (None) not at all; other pools stay. A broken pool is reported."""
        if pool is None:
            self._wanted.pop(name, None)
            self._mark(name)
            return
        problems = pool_problems(name, pool)
        if problems:
            # What was published before stays: half a pool would be worse than an old one.
            for problem in problems:
                self._report(problem)
            return
        cleaned, dropped = clean(pool)
        for sentence in dropped:
            self._report(f'pool "{name}": {sentence}')
        self.publish_made(name, pool.node_name, lambda: cleaned)

    def publish_made(self, name: str, node: str, make: Callable[[], Pool]) -> None:
        """Want the pool that ``make`` returns whenever it is compared, always the same and free of mistakes."""
        self._wanted[name] = _Wanted(node, make)
        if node:
            self._pools_of_node.setdefault(node, set()).add(name)
        self._mark(name)

    def pool(self, name: str) -> Pool | None:
        """Return a pool as it is wanted."""
        wanted = self._wanted.get(name)
        return wanted.make() if wanted else None

    def resync(self, name: str) -> None:
        """Compare a pool again, now."""
        self._mark(name)

    # ---- life ----

    async def start(self) -> None:
        """Follow slices, write differences in the background."""
        await self._cache.start()
        self._cache.add_handler(self._seen)
        self._owners.on_change(self._node_changed)
        for name in self._wanted:
            self._mark(name)
        for _ in range(self._settings.parallel):
            self._spawn(self._work())
        self._spawn(self._sweep())

    async def stop(self) -> None:
        """Stop writing; the slices stay."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._cache.stop()

    async def wait_published(self) -> None:
        """Return when every pool whose node exists is published and nothing waits to be written."""
        await self._idle.wait()

    # ---- the loop ----

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _mark(self, name: str) -> None:
        self._dirty[name] = None
        self._idle.clear()
        self._wake.set()

    def _node_changed(self, node: str) -> None:
        for name in tuple(self._wanted) if node == self._settings.node else self._pools_of_node.get(node, ()):
            self._mark(name)

    def _seen(self, old: _LeanSlice | None, new: _LeanSlice | None) -> None:
        lean = new or old
        if lean is None:
            return
        entry = _stored(lean)
        if new is None and self._busy:
            self._gone.add(entry.uid)
        own = self._own.get(entry.name)
        if own is not None and own.uid == entry.uid:
            if new is None:
                del self._own[entry.name]
                if own.written is None:
                    return
            elif own.written is None or entry.version < own.written.version:
                return  # An event from before our write.
            else:
                del self._own[entry.name]
                if entry.version == own.written.version:
                    return
        self._mark(entry.pool.name)

    async def _work(self) -> None:
        while True:
            name = next((name for name in self._dirty if name not in self._busy), None)
            if name is None:
                if not self._dirty and not self._busy and not self._failures:
                    self._idle.set()
                self._wake.clear()
                await self._wake.wait()
                continue
            del self._dirty[name]
            self._busy.add(name)
            try:
                await self._sync(name)
                self._failures.pop(name, None)
            except (ApiError, ConnectionError) as error:
                self._failed(name, error)
            finally:
                self._busy.discard(name)
                if not self._busy:
                    self._gone.clear()
                self._wake.set()

    def _failed(self, name: str, error: Exception) -> None:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        if isinstance(error, ApiError) and error.reason in ("Conflict", "NotFound", "AlreadyExists") and failures <= 3:
            # Somebody else wrote in between; the watch will show it, and the next look decides anew.
            delay = 0.05
        else:
            self._report(f'publishing pool "{name}" of {self._settings.driver} failed: {error}')
            last = LAST_RECONNECT_SECONDS if isinstance(error, ConnectionError) else LAST_RETRY_SECONDS
            delay = min(FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 16), last)
        self._spawn(self._later(name, delay))

    async def _later(self, name: str, delay: float) -> None:
        await self._clock.sleep(delay)
        self._mark(name)

    async def _sweep(self) -> None:
        """Look again at pools with a write that no watch event ever confirmed."""
        while True:
            await self._clock.sleep(OWN_WRITE_SECONDS)
            now = self._clock.monotonic()
            for own in tuple(self._own.values()):
                if own.until < now:
                    self._mark(own.pool)

    async def _sync(self, name: str) -> None:
        stored = self._stored_of(name)
        wanted = self._wanted.get(name)
        if wanted is None:
            await self._delete(stored)
            return
        owner: meta_v1.OwnerReference | None = None
        node = wanted.node or self._settings.node
        if node:
            owner = self._owners.owner(node)
            if owner is None:
                return  # on_change brings us back when the node exists.
        pool = wanted.make()
        plan = slices.plan(
            self._settings.driver,
            name,
            pool,
            split(pool),
            stored,
            owner=owner,
            accepted=self._accepted.get(name, {}),
        )
        await self._delete(plan.deletes)
        for update in plan.updates:
            self._check(name, update.index, update.spec, await self._update(update))
        for create in plan.creates:
            self._check(name, create.index, create.spec, await self._create(create, owner))

    def _stored_of(self, name: str) -> list[slices.StoredSlice]:
        """The slices of a pool: those of the watch, corrected by our own writes that it has not shown yet."""
        now = self._clock.monotonic()
        found = {entry.metadata.name: _stored(entry) for entry in self._cache.by_index("pool", name)}
        for slice_name, own in tuple(self._own.items()):
            if own.pool != name:
                continue
            if own.until < now:
                del self._own[slice_name]
            elif own.written is None:
                seen = found.get(slice_name)
                if seen is not None and seen.uid == own.uid:
                    del found[slice_name]
            else:
                found[slice_name] = own.written
        return [entry for entry in found.values() if self._manages(entry)]

    # ---- writes ----

    async def _delete(self, obsolete: Sequence[slices.StoredSlice]) -> None:
        for entry in obsolete:
            try:
                await self._client.delete(
                    kinds.RESOURCE_SLICE,
                    entry.name,
                    uid=entry.uid,
                    resource_version=entry.resource_version,
                )
            except ApiError as error:
                if error.reason != "NotFound":
                    raise
            self._remember(entry, None)

    async def _update(self, update: slices.Update) -> resource_v1.ResourceSlice:
        old = update.stored
        spec: dict[str, Any] = codec.to_tree(update.spec)
        # A merge patch replaces lists whole and removes what is null; node fields are immutable and stay out.
        change: dict[str, Any] = {"pool": spec["pool"]}
        for field in ("devices", "sharedCounters"):
            change[field] = spec.get(field)
        patch = {
            "metadata": {"uid": old.uid, "resourceVersion": old.resource_version},
            "spec": change,
        }
        new = await self._client.patch(kinds.RESOURCE_SLICE, old.name, patch)
        self._remember(old, slices.stored_slice(new))
        return new

    async def _create(self, create: slices.Create, owner: meta_v1.OwnerReference | None) -> resource_v1.ResourceSlice:
        metadata: dict[str, Any] = {"generateName": create.generate_name}
        if owner is not None:
            metadata["ownerReferences"] = [codec.to_tree(owner)]
        new = await self._client.create(
            kinds.RESOURCE_SLICE, {"metadata": metadata, "spec": codec.to_tree(create.spec)}
        )
        stored = slices.stored_slice(new)
        self._remember(stored, stored)
        return new

    def _remember(self, entry: slices.StoredSlice, written: slices.StoredSlice | None) -> None:
        if entry.uid in self._gone:
            return
        seen = self._cache.get("", entry.name)
        if written is not None and seen is not None and seen.metadata.uid == entry.uid:
            if _stored(seen).version >= written.version:
                return  # The watch was faster than the answer.
        elif written is None and seen is None:
            return
        until = self._clock.monotonic() + OWN_WRITE_SECONDS
        self._own[entry.name] = _OwnWrite(entry.pool.name, entry.uid, written, until)

    def _check(
        self, name: str, index: int, wanted: resource_v1.ResourceSliceSpec, new: resource_v1.ResourceSlice
    ) -> None:
        have, want = slices.digest(new.spec), slices.digest(wanted)
        if have == want:
            if name in self._accepted:
                self._accepted[name].pop(index, None)
            return
        self._accepted.setdefault(name, {})[index] = slices.Accepted(want, have)
        fields = slices.dropped_fields(wanted, new.spec)
        if fields:
            self._report(
                f'pool "{name}", slice #{index}: some fields were dropped by the apiserver, '
                f"probably because these features are disabled: {', '.join(fields)}"
            )


def _stored(lean: _LeanSlice) -> slices.StoredSlice:
    """The record that decoding has made."""
    return cast(slices.StoredSlice, lean.stored)
