"""The real clock, and sleeping that a fake clock can replace."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime


class RealClock:
    """Wall and steady time of this machine."""

    def now(self) -> datetime:
        """The wall clock in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds of the steady clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        await asyncio.sleep(seconds)
