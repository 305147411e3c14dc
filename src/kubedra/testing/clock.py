"""A clock that stands still until it is moved."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta


class FakeClock:
    """Time starts at 2026-01-01T00:00:00Z; ``advance`` moves it and wakes sleepers in order."""

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._start = datetime(2026, 1, 1, tzinfo=UTC)
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> datetime:
        """The simulated wall clock."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Simulated seconds since the start."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was moved that far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._elapsed + seconds, self._count, future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move the time; each sleeper wakes at its moment and what it does next is done before time goes on."""
        end = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            moment, _, future = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, moment)
            if not future.done():
                future.set_result(None)
            await self.settle()
        self._elapsed = end
        await self.settle()

    @staticmethod
    async def settle() -> None:
        """Let everything that can run, run."""
        for _ in range(20):
            await asyncio.sleep(0)
