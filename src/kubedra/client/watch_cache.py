"""Watch caches: the objects of a kind, kept current by list and watch.

Counterpart: client-go's shared informer. Handlers run synchronously on the loop, in the order of revisions; what they
take is an object that is never changed in place.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from kubedra.api.errors import ApiError
from kubedra.api.kinds import Kind
from kubedra.base.clock import Clock
from kubedra.client.clock import RealClock
from kubedra.client.protocol import Client

T = TypeVar("T")
Key = tuple[str, str]
Handler = Callable[[T | None, T | None], None]

log = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 0.1
LAST_RETRY_SECONDS = 5.0
NOT_SERVED_RETRY_SECONDS = 60.0


class WatchCache(Generic[T]):
    """All objects of a kind that match, by (namespace, name).

    ``start`` returns when the first list is in; after that every change calls the handlers with (old, new): old is
    None for a new object, new is None for a deleted one. A relist (after 410 or a lost connection) calls them with
    the differences only.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        clock: Clock | None = None,
    ) -> None:
        self.client = client
        self.kind = kind
        self.namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._clock: Clock = clock or RealClock()
        self._objects: dict[Key, T] = {}
        self._handlers: list[Handler[T]] = []
        self._indexes: dict[str, tuple[Callable[[T], Sequence[str]], dict[str, dict[Key, None]]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.synced = asyncio.Event()
        self.resource_version = ""

    # ---- reading ----

    def get(self, namespace: str, name: str) -> T | None:
        """The object as last seen, or None. Cluster-scoped objects have the namespace ``""``."""
        return self._objects.get((namespace, name))

    def list(self, namespace: str | None = None) -> Sequence[T]:
        """The objects of a namespace, or all."""
        if namespace is None:
            return list(self._objects.values())
        return [obj for (ns, _), obj in self._objects.items() if ns == namespace]

    def items(self) -> Iterator[tuple[Key, T]]:
        """All objects with their keys."""
        return iter(self._objects.items())

    def __len__(self) -> int:
        return len(self._objects)

    def add_index(self, name: str, function: Callable[[T], Sequence[str]]) -> None:
        """Keep an index by the strings that ``function`` gives for an object."""
        index: dict[str, dict[Key, None]] = {}
        self._indexes[name] = (function, index)
        for key, obj in self._objects.items():
            for value in function(obj):
                index.setdefault(value, {})[key] = None

    def by_index(self, name: str, value: str) -> Sequence[T]:
        """The objects whose index function gave ``value``, in order of arrival."""
        return [self._objects[key] for key in self._indexes[name][1].get(value, ())]

    def add_handler(self, handler: Handler[T]) -> None:
        """Call ``handler(old, new)`` at every change; at once for what is there already."""
        self._handlers.append(handler)
        for obj in tuple(self._objects.values()):
            handler(None, obj)

    async def reached(self, revision: int, seconds: float) -> None:
        """Wait until the cache shows what the server wrote at ``revision``, for so many (real) seconds at most."""
        if self._revision() >= revision:
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        waiting = (revision, future)
        self._waiting.append(waiting)
        timer = loop.call_later(seconds, _resolve, future)
        try:
            await future
        finally:
            timer.cancel()
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def _revision(self) -> int:
        return int(self.resource_version) if self.resource_version.isdigit() else 0

    def _wake(self) -> None:
        revision = self._revision()
        late = []
        for waiting in self._waiting:
            if waiting[0] <= revision:
                _resolve(waiting[1])
            else:
                late.append(waiting)
        self._waiting = late

    # ---- life ----

    async def start(self) -> None:
        """List, then watch in the background; returns when the first list is in."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"watch {self.kind.plural}")
        waiting = asyncio.ensure_future(self.synced.wait())
        await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not self.synced.is_set():
            waiting.cancel()
            await self._task

    async def stop(self) -> None:
        """End the watch; the objects stay readable."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        delay = FIRST_RETRY_SECONDS
        while True:
            try:
                if not self.resource_version:
                    await self._relist()
                delay = FIRST_RETRY_SECONDS
                await self._follow()
            except ApiError as error:
                if error.code == 410 or error.reason in ("Expired", "Gone"):
                    self.resource_version = ""
                    continue
                log.warning("watching %s failed: %s", self.kind.plural, error.message)
                if error.code in (401, 403) and not self.synced.is_set():
                    raise
                if error.code == 404:
                    # A server of another version that does not serve the kind: there is none of it, until it does.
                    self.synced.set()
                    delay = NOT_SERVED_RETRY_SECONDS
            except ConnectionError as error:
                log.info("watching %s: %s", self.kind.plural, error)
            await self._clock.sleep(delay)
            delay = min(delay * 2, max(LAST_RETRY_SECONDS, delay))

    async def _relist(self) -> None:
        found: dict[Key, T] = {}
        continue_ = ""
        while True:
            page = await self.client.list(
                self.kind,
                self.namespace,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
                continue_=continue_,
            )
            for obj in page.items:
                found[_key(obj)] = obj
            continue_ = page.continue_
            if not continue_:
                break
        for key in [k for k in self._objects if k not in found]:
            self._change(key, None)
        for key, obj in found.items():
            old = self._objects.get(key)
            if old is None or _version(old) != _version(obj):
                self._change(key, obj)
        self.resource_version = page.resource_version
        self.synced.set()
        self._wake()

    async def _follow(self) -> None:
        events = self.client.watch(
            self.kind,
            self.namespace,
            resource_version=self.resource_version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        async for event in events:
            self.resource_version = event.resource_version
            if event.type == "BOOKMARK":
                self._wake()
                continue
            key = _key(event.object)
            self._change(key, None if event.type == "DELETED" else event.object, event.object)
            if self._waiting:
                self._wake()

    def _change(self, key: Key, new: T | None, last: T | None = None) -> None:
        old = self._objects.get(key)
        if new is None:
            if old is None:
                return
            del self._objects[key]
            # Handlers of a deletion see the object as it was at its end, not as it was seen before.
            self._reindex(key, old, None)
            old = last or old
        else:
            self._objects[key] = new
            self._reindex(key, old, new)
        for handler in self._handlers:
            handler(old, new)

    def _reindex(self, key: Key, old: T | None, new: T | None) -> None:
        for function, index in self._indexes.values():
            before = function(old) if old is not None else ()
            after = function(new) if new is not None else ()
            for value in before:
                if value not in after:
                    keys = index.get(value)
                    if keys is not None:
                        keys.pop(key, None)
                        if not keys:
                            del index[value]
            for value in after:
                index.setdefault(value, {})[key] = None


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _key(obj: Any) -> Key:
    if isinstance(obj, dict):
        meta = obj.get("metadata") or {}
        return meta.get("namespace", ""), meta.get("name", "")
    return obj.metadata.namespace, obj.metadata.name


def _version(obj: Any) -> str:
    if isinstance(obj, dict):
        return str((obj.get("metadata") or {}).get("resourceVersion", ""))
    return str(obj.metadata.resource_version)
