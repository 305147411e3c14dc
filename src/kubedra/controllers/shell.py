"""The one shell around all controllers: caches, queues, workers, retries.

A controller says which kinds it watches, which keys an object concerns, and how to bring one key into order. What it
decides is a pure function beside it; this shell does the waiting and the writing. Counterpart: kube-controller-manager.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kubedra.api.errors import ApiError
from kubedra.api.kinds import Kind
from kubedra.base.clock import Clock
from kubedra.client.events import EventRecorder
from kubedra.client.protocol import Client
from kubedra.client.watch_cache import WatchCache
from kubedra.controllers.actions import Action, Create, Delete, Tell, perform
from kubedra.controllers.queue import KeyQueue

T = TypeVar("T")
Keys = Callable[[Any], Iterable[Hashable]]

log = logging.getLogger(__name__)

CATCH_UP_SECONDS = 2.0
CATCH_UP_POLL_SECONDS = 0.002
UNANSWERED_ROUNDS = 10


class Caches:
    """One watch cache per kind, shared by all controllers of a process."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._caches: dict[tuple[str, str, str], WatchCache[Any]] = {}

    def of(self, kind: Kind[T]) -> WatchCache[T]:
        """The cache of a kind; it runs once ``start`` was called."""
        key = (kind.group, kind.version, kind.kind)
        if key not in self._caches:
            self._caches[key] = WatchCache(self._client, kind, clock=self._clock)
        return self._caches[key]

    async def start(self) -> None:
        """Fill all caches; raises ApiError when one is forbidden."""
        await asyncio.gather(*(cache.start() for cache in tuple(self._caches.values())))

    async def stop(self) -> None:
        """End all watches."""
        for cache in self._caches.values():
            await cache.stop()

    async def caught_up(self, action: Action, written: Any) -> None:
        """Wait (briefly) until the cache shows what was just written, so that the next decision sees it.

        Counterpart of upstream's expectations and mutation caches: without it a controller would create twice.
        """
        if isinstance(action, Tell):
            return
        cache = self._caches.get((action.kind.group, action.kind.version, action.kind.kind))
        if cache is None or not cache.synced.is_set():
            return
        if isinstance(action, Delete):
            waited = 0.0
            while waited < CATCH_UP_SECONDS and not _shows_deletion(cache, action):
                await self._clock.sleep(CATCH_UP_POLL_SECONDS)
                waited += CATCH_UP_POLL_SECONDS
            return
        version = written.metadata.resource_version
        if version.isdigit():
            await cache.reached(int(version), CATCH_UP_SECONDS)


def _shows_deletion(cache: WatchCache[Any], action: Delete) -> bool:
    seen = cache.get(action.namespace, action.name)
    if seen is None:
        return True
    return bool(action.uid and seen.metadata.uid != action.uid) or bool(seen.metadata.deletion_timestamp)


@dataclass
class Context:
    """What the shell gives to a controller."""

    client: Client
    clock: Clock
    caches: Caches
    recorder: EventRecorder
    queue: KeyQueue[Any]
    watched: list[tuple[WatchCache[Any], Keys]] = field(default_factory=list)

    def watch(self, kind: Kind[T], keys: Callable[[T], Iterable[Hashable]]) -> WatchCache[T]:
        """Queue ``keys(obj)`` at every change of an object of the kind, for its old and its new form."""
        cache = self.caches.of(kind)

        def changed(old: T | None, new: T | None) -> None:
            for obj in (old, new):
                if obj is not None:
                    for key in keys(obj):
                        self.queue.add(key)

        cache.add_handler(changed)
        return cache

    async def carry_out(self, actions: Iterable[Action]) -> list[Any]:
        """Carry out actions in order and wait until the caches show them; returns what each wrote.

        A missing object is no failure to delete. Raises ApiError.
        """
        out = []
        for action in actions:
            written = None
            try:
                written = await self._perform(action)
            except ApiError as error:
                if not (isinstance(action, Delete) and error.reason == "NotFound"):
                    raise
            else:
                await self.caches.caught_up(action, written)
            out.append(written)
        return out

    async def _perform(self, action: Action) -> Any:
        try:
            return await perform(self.client, self.recorder, action)
        except ConnectionError:
            if not isinstance(action, Create) or not action.tree["metadata"].get("generateName"):
                raise  # saying it again does no harm
            made = await self._unanswered(action)
            if made is None:
                raise
            # The watch broke too and may take longer than usual to show it.
            for _ in range(UNANSWERED_ROUNDS):
                await self.caches.caught_up(action, made)
            return made

    async def _unanswered(self, action: Create) -> Any:
        """The object of a creation that had no answer, if it was made all the same.

        The server picks the name, so saying it again would make a second one. Only one creation of an owner is under
        way at a time: what has its owner and prefix and is not in the cache is that one.
        """
        meta = action.tree["metadata"]
        owners = {owner["uid"] for owner in meta.get("ownerReferences", ()) if owner.get("controller")}
        cache = self.caches.of(action.kind)
        delay = 0.1
        while True:
            try:
                found = await self.client.list(action.kind, action.namespace)
                break
            except ConnectionError:
                await self.clock.sleep(delay)
                delay = min(delay * 2, 2.0)
        for obj in found.items:
            has = {owner.uid for owner in obj.metadata.owner_references if owner.controller}
            if (
                owners & has
                and obj.metadata.generate_name == meta["generateName"]
                and cache.get(obj.metadata.namespace, obj.metadata.name) is None
            ):
                return obj
        return None


class Controller:
    """One controller. Subclasses set ``name``, and write ``setup`` and ``sync``."""

    name = ""
    component = ""
    workers = 4

    def setup(self, context: Context) -> None:
        """Name the watches; called once, before the caches start."""
        raise NotImplementedError

    async def sync(self, key: Any) -> float | None:
        """Bring one key into order; returns seconds after which to look again, or None. May raise: it is retried."""
        raise NotImplementedError


class ControllerShell:
    """Runs controllers on shared caches until cancelled."""

    def __init__(self, client: Client, clock: Clock, controllers: Iterable[Controller]) -> None:
        self._client = client
        self._clock = clock
        self._controllers = tuple(controllers)
        self.caches = Caches(client, clock)
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """Start caches and workers; ends when cancelled, cleaning up."""
        contexts: list[tuple[Controller, Context]] = []
        recorders: list[EventRecorder] = []
        for controller in self._controllers:
            recorder = EventRecorder(self._client, controller.component or controller.name, clock=self._clock)
            recorders.append(recorder)
            context = Context(self._client, self._clock, self.caches, recorder, KeyQueue(self._clock))
            controller.setup(context)
            contexts.append((controller, context))
        try:
            await self.caches.start()
            for recorder in recorders:
                recorder.start()
            self.synced.set()
            async with asyncio.TaskGroup() as tasks:
                for controller, context in contexts:
                    tasks.create_task(context.queue.run_timers(), name=f"{controller.name} timers")
                    for _ in range(controller.workers):
                        tasks.create_task(self._work(controller, context.queue), name=controller.name)
        finally:
            for recorder in recorders:
                await recorder.stop()
            with contextlib.suppress(ConnectionError):
                await self.caches.stop()

    async def _work(self, controller: Controller, queue: KeyQueue[Any]) -> None:
        while True:
            key = await queue.get()
            try:
                again = await controller.sync(key)
            except (ApiError, ConnectionError, RetryLater) as error:
                delay = queue.failed(key)
                expected = isinstance(error, RetryLater) or getattr(error, "reason", "") in ("Conflict", "NotFound")
                log.log(
                    logging.DEBUG if expected else logging.INFO,
                    "%s: %s: %s; again in %.3g s",
                    controller.name,
                    key,
                    error,
                    delay,
                )
            except Exception:
                # A fault of ours in one key must not stop the others.
                log.exception("%s: %s", controller.name, key)
                queue.failed(key)
            else:
                queue.succeeded(key)
                if again is not None:
                    queue.add_after(key, again)
            finally:
                queue.done(key)


class RetryLater(Exception):
    """A sync can't go on now; the key is tried again with backoff. The text says why."""
