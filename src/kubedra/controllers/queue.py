"""A queue of keys: each key is worked on by one worker at a time, repeats are folded, failures wait longer each time.

Counterpart: client-go ``util/workqueue``.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from kubedra.base.clock import Clock

K = TypeVar("K", bound=Hashable)

FIRST_DELAY_SECONDS = 0.005
LAST_DELAY_SECONDS = 60.0


class KeyQueue(Generic[K]):
    """``add`` a key as often as you like; ``get`` gives it once, and again only after ``done``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: deque[K] = deque()
        self._dirty: set[K] = set()
        self._working: set[K] = set()
        self._failures: dict[K, int] = {}
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._count = itertools.count()
        self._ready = asyncio.Event()
        self._timer_changed = asyncio.Event()

    def add(self, key: K) -> None:
        """Have the key worked on soon."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._working:
            self._waiting.append(key)
            self._ready.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Have the key worked on in that time; an earlier date that is set already stays."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        heapq.heappush(self._later, (due, next(self._count), key))
        self._timer_changed.set()

    def failed(self, key: K) -> float:
        """Have the key worked on again after a delay that doubles with each failure; returns the delay in seconds."""
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        delay = min(FIRST_DELAY_SECONDS * (1 << min(count, 30)), LAST_DELAY_SECONDS)
        self.add_after(key, delay)
        return delay

    def succeeded(self, key: K) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key; the caller must call ``done`` with it."""
        while not self._waiting:
            self._ready.clear()
            await self._ready.wait()
        key = self._waiting.popleft()
        self._dirty.discard(key)
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        """Say that the work on a key has ended; it is queued again if it was added meanwhile."""
        self._working.discard(key)
        if key in self._dirty:
            self._waiting.append(key)
            self._ready.set()

    async def run_timers(self) -> None:
        """Move keys that are due into the queue, until cancelled."""
        while True:
            now = self._clock.monotonic()
            while self._later and self._later[0][0] <= now:
                due, _, key = heapq.heappop(self._later)
                if self._due.get(key) == due:
                    del self._due[key]
                    self.add(key)
            self._timer_changed.clear()
            waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._timer_changed.wait())]
            if self._later:
                waits.append(asyncio.ensure_future(self._clock.sleep(self._later[0][0] - now)))
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()

    def __len__(self) -> int:
        return len(self._waiting)
