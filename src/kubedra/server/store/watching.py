"""Watches: a bounded queue of committed events per watcher, filled on the loop thread.

Upstream counterpart: cacheWatcher in apiserver/pkg/storage/cacher. A watcher that does not keep up is cut off
(`WatchOverflow`); its client lists again, which costs less than unbounded memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubedra.server.store.errors import StoreError
from kubedra.server.store.records import Event

# Few large objects fill the memory as well as many small ones; one commit of the largest ones fits in any case.
QUEUE_BYTES = 256 << 20


class WatchOverflow(StoreError):
    """The watcher fell too far behind."""


class Watch:
    """Events of one resource (and namespace) after a revision; `next_batch` gives all that have arrived."""

    __slots__ = (
        "_bytes",
        "_closed",
        "_limit",
        "_on_close",
        "_overflow",
        "_queue",
        "_waiter",
        "namespace",
        "resource",
        "wants",
    )

    def __init__(
        self,
        resource: str,
        namespace: str,
        backlog: list[Event],
        limit: int,
        on_close: Callable[[Watch], None],
        wants: Callable[[Event], bool] | None = None,
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        self.wants = wants
        self._queue = [event for event in backlog if self._accepts(event)]
        self._limit = limit + len(self._queue)
        # Of what came since the queue was emptied last; the backlog is in the history anyway.
        self._bytes = 0
        self._on_close = on_close
        self._waiter: asyncio.Future[None] | None = None
        self._overflow = False
        self._closed = False

    def _accepts(self, event: Event) -> bool:
        if self.namespace and event.record.key.namespace != self.namespace:
            return False
        return self.wants is None or self.wants(event)

    def push(self, event: Event) -> None:
        """Called by the store for every committed event of the resource."""
        if self._overflow or not self._accepts(event):
            return
        self._bytes += len(event.record.value)
        if len(self._queue) >= self._limit or self._bytes > QUEUE_BYTES:
            self._overflow = True
            self._queue.clear()
        else:
            self._queue.append(event)
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def next_batch(self, timeout: float | None = None) -> list[Event]:
        """All events that have arrived, waiting for the first; empty when the time is over or the watch closed.

        Raises `WatchOverflow` when events had to be thrown away.
        """
        if not self._queue and not self._closed and not self._overflow and timeout != 0:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = None if timeout is None else loop.call_later(timeout, self._wake)
            try:
                await self._waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        if self._overflow:
            raise WatchOverflow("the watcher fell behind; list again")
        batch, self._queue = self._queue, []
        self._bytes = 0
        return batch

    @property
    def closed(self) -> bool:
        """True once `close` was called; what is still queued can be read."""
        return self._closed

    def close(self) -> None:
        """Ends the watch; may be called more than once."""
        if not self._closed:
            self._closed = True
            self._on_close(self)
            self._wake()
