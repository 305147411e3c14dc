"""Events live for an hour after their last write; then the server removes them.

Upstream counterpart: the `--event-ttl` of kube-apiserver (a lease in etcd).
"""

from __future__ import annotations

import asyncio

from kubedra.server.state import ServerState
from kubedra.server.store import Event, Key, StoreError
from kubedra.server.verbs.storing import encoder

EVENTS = "events"
SWEEP_SECONDS = 60.0


class EventExpiry:
    """Remembers when each event was written and deletes those whose time is over."""

    def __init__(self, state: ServerState, seconds: float) -> None:
        self._state = state
        self._seconds = seconds
        self._written: dict[Key, float] = {}
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        now = self._loop.time()
        # What was there before this start gets a full life again: nothing says when it was written.
        for record in state.store.listing(EVENTS):
            self._written[record.key] = now
        state.store.on_commit(self._committed)

    def _committed(self, event: Event) -> None:
        key = event.record.key
        if key.resource != EVENTS:
            return
        # Taken out first: the dictionary stays in the order of the last writes.
        self._written.pop(key, None)
        if event.type != "DELETED":
            self._written[key] = self._loop.time()
            if self._timer is None:
                self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        oldest = self._loop.time() - self._seconds
        self.expire(oldest)
        if self._written:
            self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def expire(self, before: float) -> None:
        """Deletes the events that were written before a time of the loop's clock."""
        served = self._state.catalogue.stored[EVENTS]
        over: list[Key] = []
        for key, written in self._written.items():
            if written > before:
                break
            over.append(key)
        for key in over:
            record = self._state.store.latest(key)
            if record is None:
                self._written.pop(key, None)
                continue
            try:
                future = self._state.store.submit_delete(key, encoder(served, record.tree()), expect=record.revision)
            except StoreError:
                return
            # Nobody waits: what could not be deleted is tried again with the next sweep.
            future.add_done_callback(lambda done: None if done.cancelled() else done.exception())

    def stop(self) -> None:
        """Ends the sweeps."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
