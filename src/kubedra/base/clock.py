"""The Clock protocol: every shell tells and waits for time through it, so tests and rehearsals run in simulated time.

The real one is ``kubedra.client.clock.RealClock``, the fake one ``kubedra.testing.clock.FakeClock``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time, a steady counter, and sleeping."""

    def now(self) -> datetime:
        """The wall clock, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        ...


def format_time(moment: datetime) -> str:
    """``metav1.Time``: whole seconds with ``Z``. A naive time is refused (ValueError)."""
    return _utc(moment).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime) -> str:
    """``metav1.MicroTime``: six digits with ``Z``. A naive time is refused (ValueError)."""
    return _utc(moment).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """An RFC 3339 time as the API writes it. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment.astimezone(UTC)


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time without a zone can't be written to the API")
    return moment.astimezone(UTC)
