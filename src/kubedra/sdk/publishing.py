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
from typing import Any

import msgspec

from kubedra.api import codec, kinds, meta_v1, resource_v1
from kubedra.api.errors import ApiError
from kubedra.base.clock import Clock
from kubedra.client.protocol import Client
from kubedra.client.watch_cache import WatchCache
from kubedra.sdk import slices
from kubedra.sdk.nodes import NodeOwners
from kubedra.sdk.resources import Pool, SliceContent, clean, pool_problems, split

_log = logging.getLogger(__name__)

Report = Callable[[str], None]

FIRST_RETRY_SECONDS = 0.2
LAST_RETRY_SECONDS = 30.0
# How long a write of ours is believed over a watch that does not show it (a lost watch may never show it).
OWN_WRITE_SECONDS = 30.0


class PublisherSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``node`` limits a publisher to one node's slices; ``parallel`` is how many pools are written at once."""

    driver: str
    node: str = ""
    parallel: int = 16


class _Wanted(msgspec.Struct, frozen=True):
    pool: Pool
    contents: tuple[SliceContent, ...]


class _OwnWrite(msgspec.Struct, frozen=True):
    """What we last wrote under a name: the slice, or None for a deletion."""

    pool: str
    uid: str
    written: resource_v1.ResourceSlice | None
    until: float


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
        manages: Callable[[resource_v1.ResourceSlice], bool] = lambda _: True,
    ) -> None:
        self._client = client
        self._settings = settings
        self._owners = owners
        self._clock = clock
        self._report: Report = report or _log.warning
        self._manages = manages
        selector = f"spec.driver={settings.driver}" + (f",spec.nodeName={settings.node}" if settings.node else "")
        self._cache = WatchCache(client, kinds.RESOURCE_SLICE, field_selector=selector, clock=clock)
        self._cache.add_index("pool", lambda entry: (entry.spec.pool.name,))
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
        self._wanted[name] = _Wanted(cleaned, split(cleaned))
        if pool.node_name:
            self._pools_of_node.setdefault(pool.node_name, set()).add(name)
        self._mark(name)

    def pool(self, name: str) -> Pool | None:
        """Return a pool as it is wanted."""
        wanted = self._wanted.get(name)
        return wanted.pool if wanted else None

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

    def _seen(self, old: resource_v1.ResourceSlice | None, new: resource_v1.ResourceSlice | None) -> None:
        entry = new or old
        if entry is None:
            return
        if new is None and self._busy:
            self._gone.add(entry.metadata.uid)
        own = self._own.get(entry.metadata.name)
        if own is not None and own.uid == entry.metadata.uid:
            if new is None:
                del self._own[entry.metadata.name]
                if own.written is None:
                    return
            elif own.written is None or _version(new) < _version(own.written):
                return  # An event from before our write.
            else:
                del self._own[entry.metadata.name]
                if _version(new) == _version(own.written):
                    return
        self._mark(entry.spec.pool.name)

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
            delay = min(FIRST_RETRY_SECONDS * 2 ** (failures - 1), LAST_RETRY_SECONDS)
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
        stored = self._stored(name)
        wanted = self._wanted.get(name)
        if wanted is None:
            await self._delete(stored)
            return
        owner: meta_v1.OwnerReference | None = None
        node = wanted.pool.node_name or self._settings.node
        if node:
            owner = self._owners.owner(node)
            if owner is None:
                return  # on_change brings us back when the node exists.
        accepted = self._accepted.setdefault(name, {})
        plan = slices.plan(
            self._settings.driver,
            name,
            wanted.pool,
            wanted.contents,
            stored,
            owner=owner,
            accepted=accepted,
        )
        await self._delete(plan.deletes)
        for update in plan.updates:
            self._check(name, update.index, update.spec, await self._update(update))
        for create in plan.creates:
            self._check(name, create.index, create.spec, await self._create(create, owner))

    def _stored(self, name: str) -> list[resource_v1.ResourceSlice]:
        """The slices of a pool: those of the watch, corrected by our own writes that it has not shown yet."""
        now = self._clock.monotonic()
        found = {entry.metadata.name: entry for entry in self._cache.by_index("pool", name)}
        for slice_name, own in tuple(self._own.items()):
            if own.pool != name:
                continue
            if own.until < now:
                del self._own[slice_name]
            elif own.written is None:
                seen = found.get(slice_name)
                if seen is not None and seen.metadata.uid == own.uid:
                    del found[slice_name]
            else:
                found[slice_name] = own.written
        return [entry for entry in found.values() if self._manages(entry)]

    # ---- writes ----

    async def _delete(self, obsolete: Sequence[resource_v1.ResourceSlice]) -> None:
        for entry in obsolete:
            try:
                await self._client.delete(
                    kinds.RESOURCE_SLICE,
                    entry.metadata.name,
                    uid=entry.metadata.uid,
                    resource_version=entry.metadata.resource_version,
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
            "metadata": {"uid": old.metadata.uid, "resourceVersion": old.metadata.resource_version},
            "spec": change,
        }
        new = await self._client.patch(kinds.RESOURCE_SLICE, old.metadata.name, patch)
        self._remember(old, new)
        return new

    async def _create(self, create: slices.Create, owner: meta_v1.OwnerReference | None) -> resource_v1.ResourceSlice:
        metadata: dict[str, Any] = {"generateName": create.generate_name}
        if owner is not None:
            metadata["ownerReferences"] = [codec.to_tree(owner)]
        new = await self._client.create(
            kinds.RESOURCE_SLICE, {"metadata": metadata, "spec": codec.to_tree(create.spec)}
        )
        self._remember(new, new)
        return new

    def _remember(self, entry: resource_v1.ResourceSlice, written: resource_v1.ResourceSlice | None) -> None:
        if entry.metadata.uid in self._gone:
            return
        seen = self._cache.get("", entry.metadata.name)
        if written is not None and seen is not None and seen.metadata.uid == entry.metadata.uid:
            if _version(seen) >= _version(written):
                return  # The watch was faster than the answer.
        elif written is None and seen is None:
            return
        until = self._clock.monotonic() + OWN_WRITE_SECONDS
        self._own[entry.metadata.name] = _OwnWrite(entry.spec.pool.name, entry.metadata.uid, written, until)

    def _check(
        self, name: str, index: int, wanted: resource_v1.ResourceSliceSpec, new: resource_v1.ResourceSlice
    ) -> None:
        have, want = slices.content_of(new.spec), slices.content_of(wanted)
        accepted = self._accepted.setdefault(name, {})
        if have == want:
            accepted.pop(index, None)
            return
        accepted[index] = slices.Accepted(want, have)
        fields = slices.dropped_fields(wanted, new.spec)
        if fields:
            self._report(
                f'pool "{name}", slice #{index}: some fields were dropped by the apiserver, '
                f"probably because these features are disabled: {', '.join(fields)}"
            )


def _version(entry: resource_v1.ResourceSlice) -> int:
    version = entry.metadata.resource_version
    return int(version) if version.isdigit() else 0
