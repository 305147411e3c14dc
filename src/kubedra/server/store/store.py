"""The store: compare-and-set writes that are durable before anyone sees them, reads and watches from memory.

All methods run on the loop thread that called `start`. A write gets its revision when it is submitted, so an object
is encoded once, with its resourceVersion inside; it becomes visible to readers and watchers, in revision order,
when the writer thread has committed it. Whoever changes an object starts from `latest`, which includes what is in
flight: if a commit fails, everything in flight fails with it, so nothing ever builds on a lost write.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path

from kubedra.server.store.buckets import Bucket
from kubedra.server.store.database import Compaction, Writer, damaged, load, load_floors, open_database
from kubedra.server.store.errors import Compacted, FutureRevision, RevisionConflict, StoreUnavailable
from kubedra.server.store.folder import DataFolder
from kubedra.server.store.records import Event, EventType, Key, Record
from kubedra.server.store.watching import Watch

WATCH_LIMIT = 10_000


class _InFlight:
    __slots__ = ("event", "future")

    def __init__(self, event: Event, future: asyncio.Future[Record]) -> None:
        self.event = event
        self.future = future


class Store:
    """Objects by key. `keep_events` and `keep_bytes` bound the history of each resource."""

    def __init__(self, data_dir: Path, *, keep_events: int = 4096, keep_bytes: int = 32 << 20) -> None:
        self._folder = DataFolder(Path(data_dir))
        self._keep_events = keep_events
        self._keep_bytes = keep_bytes
        self._buckets: dict[str, Bucket] = {}
        self._watches: dict[str, list[Watch]] = {}
        self._in_flight: deque[_InFlight] = deque()
        self._pending: dict[Key, Event] = {}
        self._submitted = 0
        self._epoch = 0
        self._writer: Writer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_commit: list[Callable[[Event], None]] = []
        self.revision = 0

    # ---------------------------------------------------------------- life

    def start(self) -> None:
        """Claims the folder, loads the current state and recent history, starts the writer; needs a running loop."""
        self._loop = asyncio.get_running_loop()
        self._folder.claim()
        connection = None
        try:
            connection = open_database(self._folder.database)
            floors = load_floors(connection)
            for revision, text, value, gone in load(connection):
                record = Record(Key.parse(text), revision, value)
                bucket = self._bucket(record.key.resource)
                previous = bucket.records.get((record.key.namespace, record.key.name))
                kind: EventType = "DELETED" if gone else "MODIFIED" if previous else "ADDED"
                bucket.apply(Event(kind, record, previous))
                self.revision = revision
            for resource, floor in floors.items():
                self._bucket(resource).evict_through(floor)
                self.revision = max(self.revision, floor)
        except BaseException as error:
            if connection is not None:
                connection.close()
            self._folder.release()
            if isinstance(error, sqlite3.DatabaseError | ValueError):
                raise damaged(self._folder.database, error) from error
            raise
        self._folder.in_use()
        # Revision 0 means "any" on the wire and 1 is never an object's, as in etcd.
        self.revision = max(self.revision, 1)
        self._submitted = self.revision
        loop = self._loop
        self._writer = Writer(
            connection,
            self._folder.database,
            lambda count: _call_threadsafe(loop, self._commit_done, count),
            lambda error: _call_threadsafe(loop, self._commit_failed, error),
        )
        self._writer.start()

    def close_watches(self) -> None:
        """Ends all watches: their streams send what they have and finish."""
        for watches in list(self._watches.values()):
            for watch in list(watches):
                watch.close()

    async def stop(self) -> None:
        """Ends all watches, finishes what is in flight, closes the file and gives the folder back."""
        self.close_watches()
        while self._in_flight:
            await asyncio.wait([flight.future for flight in self._in_flight])
        if self._writer is not None:
            writer, self._writer = self._writer, None
            self._folder.in_order()
            writer.stop()
        self._folder.release()

    # ---------------------------------------------------------------- reading

    def get(self, key: Key) -> Record | None:
        """The committed record."""
        bucket = self._buckets.get(key.resource)
        return None if bucket is None else bucket.records.get((key.namespace, key.name))

    def latest(self, key: Key) -> Record | None:
        """The record that a write has to start from: committed or in flight."""
        event = self._pending.get(key)
        if event is None:
            return self.get(key)
        return None if event.type == "DELETED" else event.record

    def listing(self, resource: str, namespace: str = "") -> list[Record]:
        """Committed records in key order."""
        bucket = self._buckets.get(resource)
        return [] if bucket is None else bucket.listing(namespace)

    def listing_at(self, resource: str, revision: int, namespace: str = "") -> list[Record]:
        """Records as of a revision. Raises `Compacted` or `FutureRevision`."""
        self._check_revision(revision)
        bucket = self._buckets.get(resource)
        return [] if bucket is None else bucket.listing_at(revision, namespace)

    def resources(self) -> list[str]:
        """Names of all storage resources that ever held something."""
        return list(self._buckets)

    def count(self, resource: str) -> int:
        """How many objects of a resource there are."""
        bucket = self._buckets.get(resource)
        return 0 if bucket is None else len(bucket.records)

    def _check_revision(self, revision: int) -> None:
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)

    # ---------------------------------------------------------------- writing

    async def put(self, key: Key, encode: Callable[[int], bytes], *, expect: int = 0) -> Record:
        """Stores `encode(revision)` if the key is at revision `expect` (0: absent); returns when it is durable.

        Raises `RevisionConflict`, or `StoreUnavailable` when it could not be made durable.
        """
        return await self.submit_put(key, encode, expect=expect)

    def submit_put(self, key: Key, encode: Callable[[int], bytes], *, expect: int = 0) -> asyncio.Future[Record]:
        """The part of `put` that happens at once: checks, numbers, encodes and queues the write."""
        current = self._check(key, expect)
        revision = self._submitted + 1
        record = Record(key, revision, encode(revision))
        return self._submit(Event("ADDED" if current is None else "MODIFIED", record, current))

    async def delete(self, key: Key, encode: Callable[[int], bytes], *, expect: int) -> Record:
        """Removes the key if it is at `expect`; `encode` gives the last state that watchers are shown."""
        return await self.submit_delete(key, encode, expect=expect)

    def submit_delete(self, key: Key, encode: Callable[[int], bytes], *, expect: int) -> asyncio.Future[Record]:
        """The part of `delete` that happens at once."""
        current = self._check(key, expect)
        if current is None:
            raise RevisionConflict(expect, 0)
        revision = self._submitted + 1
        return self._submit(Event("DELETED", Record(key, revision, encode(revision)), current))

    def _check(self, key: Key, expect: int) -> Record | None:
        current = self.latest(key)
        actual = 0 if current is None else current.revision
        if actual != expect:
            raise RevisionConflict(expect, actual)
        return current

    def _submit(self, event: Event) -> asyncio.Future[Record]:
        if self._writer is None or self._loop is None:
            raise StoreUnavailable("the store is not running")
        record = event.record
        self._submitted = record.revision
        self._pending[record.key] = event
        future: asyncio.Future[Record] = self._loop.create_future()
        self._in_flight.append(_InFlight(event, future))
        row = (record.revision, record.key.text(), record.value, int(event.type == "DELETED"))
        self._writer.put(self._epoch, row)
        return future

    def _commit_done(self, count: int) -> None:
        touched: set[str] = set()
        for _ in range(min(count, len(self._in_flight))):
            flight = self._in_flight.popleft()
            event = flight.event
            key = event.record.key
            if self._pending.get(key) is event:
                del self._pending[key]
            self._bucket(key.resource).apply(event)
            self.revision = event.revision
            touched.add(key.resource)
            for watch in self._watches.get(key.resource, ()):
                watch.push(event)
            for callback in self._on_commit:
                callback(event)
            if event.previous is not None:
                event.previous.forget_tree()
            if not flight.future.done():
                flight.future.set_result(event.record)
        self._trim(touched)

    def _commit_failed(self, error: Exception) -> None:
        self._epoch += 1
        flights = list(self._in_flight)
        self._in_flight.clear()
        self._pending.clear()
        for flight in flights:
            if not flight.future.done():
                flight.future.set_exception(error)

    def on_commit(self, callback: Callable[[Event], None]) -> None:
        """Calls back for every committed event, in order, on the loop thread: for indexes that must not lag."""
        self._on_commit.append(callback)

    # ---------------------------------------------------------------- history

    def watch(
        self,
        resource: str,
        namespace: str = "",
        *,
        since: int,
        wants: Callable[[Event], bool] | None = None,
        limit: int = WATCH_LIMIT,
    ) -> Watch:
        """Events after revision `since`. Raises `Compacted` or `FutureRevision`."""
        self._check_revision(since)
        watch = Watch(resource, namespace, self._bucket(resource).since(since), limit, self._unwatch, wants)
        self._watches.setdefault(resource, []).append(watch)
        return watch

    def _unwatch(self, watch: Watch) -> None:
        # A new list, as a push loop may be running over the old one.
        self._watches[watch.resource] = [other for other in self._watches[watch.resource] if other is not watch]

    def watches(self) -> int:
        """How many watches are open."""
        return sum(map(len, self._watches.values()))

    def compact(self, revision: int) -> None:
        """Forgets the history up to `revision`; older lists and watches then answer `Compacted`."""
        self._check_revision(revision)
        gone: list[int] = []
        for bucket in self._buckets.values():
            gone += bucket.evict_through(revision)
        self._send_compaction({name: bucket.floor for name, bucket in self._buckets.items()}, gone)

    def _trim(self, resources: set[str]) -> None:
        floors: dict[str, int] = {}
        gone: list[int] = []
        for resource in resources:
            bucket = self._buckets[resource]
            # An eighth of slack, so that rows are deleted in batches.
            if len(bucket.events) > self._keep_events * 9 // 8 or bucket.events_bytes > self._keep_bytes * 9 // 8:
                gone += bucket.evict(self._keep_events, self._keep_bytes)
                floors[resource] = bucket.floor
        if floors:
            self._send_compaction(floors, gone)

    def _send_compaction(self, floors: dict[str, int], gone: list[int]) -> None:
        if self._writer is not None:
            self._writer.compact(Compaction(floors, gone))

    def _bucket(self, resource: str) -> Bucket:
        bucket = self._buckets.get(resource)
        if bucket is None:
            bucket = self._buckets[resource] = Bucket(resource)
        return bucket


def _call_threadsafe(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], argument: object) -> None:
    # A loop that was closed under us (a test that ends early) has nobody left who waits.
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback, argument)


__all__ = ["Compacted", "FutureRevision", "Store"]
