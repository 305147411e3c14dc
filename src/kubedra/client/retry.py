"""Optimistic concurrency: read, decide, write, and again when somebody else wrote in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kubedra.api.errors import ApiError

T = TypeVar("T")


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]], attempts: int = 5) -> T:
    """Call ``attempt`` (which reads afresh) until it meets no 409 Conflict; the last one is raised."""
    for _ in range(attempts - 1):
        try:
            return await attempt()
        except ApiError as error:
            if error.reason != "Conflict":
                raise
    return await attempt()
