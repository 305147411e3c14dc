"""Events for people: recorded in the background, repeats folded into a series.

Counterpart: client-go ``tools/events``. Losing an event never fails the work it tells of.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from dataclasses import dataclass
from typing import Any

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.base.clock import Clock, format_micro_time
from kubedra.client.clock import RealClock
from kubedra.client.protocol import Client

log = logging.getLogger(__name__)

SERIES_SECONDS = 360.0
NOTE_BYTES = 1024
QUEUE_SIZE = 10_000


@dataclass
class _Series:
    namespace: str
    name: str
    count: int
    last: float


class EventRecorder:
    """Records events of one component. ``start`` it once; ``event`` never blocks and never raises."""

    def __init__(self, client: Client, component: str, instance: str = "", clock: Clock | None = None) -> None:
        self._client = client
        self._component = component
        self._instance = instance or component
        self._clock: Clock = clock or RealClock()
        self._queue: asyncio.Queue[tuple[tuple[str, ...], dict[str, Any]]] = asyncio.Queue(QUEUE_SIZE)
        self._series: dict[tuple[str, ...], _Series] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write events in the background."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"events of {self._component}")

    async def stop(self) -> None:
        """Write what is waiting, for a second at most, then end."""
        if self._task is None:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._queue.join(), 1.0)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._task = None

    def event(
        self,
        regarding: Any,
        kind: kinds.Kind[Any],
        type_: str,
        reason: str,
        note: str,
        action: str = "",
        related: dict[str, Any] | None = None,
    ) -> None:
        """Tell of ``regarding`` (a struct of ``kind``): type_ is Normal or Warning, reason a word, note a sentence."""
        meta = regarding.metadata
        reference = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        }
        encoded = note.encode()
        if len(encoded) > NOTE_BYTES:
            note = encoded[: NOTE_BYTES - 3].decode("utf-8", "ignore") + "..."
        tree: dict[str, Any] = {
            "metadata": {"namespace": meta.namespace or "default"},
            "eventTime": format_micro_time(self._clock.now()),
            "reportingController": self._component,
            "reportingInstance": self._instance,
            "action": action or reason,
            "reason": reason,
            "regarding": {k: v for k, v in reference.items() if v},
            "note": note,
            "type": type_,
        }
        if related:
            tree["related"] = related
        key = (kind.kind, meta.namespace, meta.name, meta.uid, type_, reason, note, action)
        try:
            self._queue.put_nowait((key, tree))
        except asyncio.QueueFull:
            log.warning("an event was dropped: %s %s", reason, note)

    async def _run(self) -> None:
        while True:
            key, tree = await self._queue.get()
            try:
                await self._write(key, tree)
            except (ApiError, ConnectionError) as error:
                log.info("an event was not written: %s", error)
            finally:
                self._queue.task_done()

    async def _write(self, key: tuple[str, ...], tree: dict[str, Any]) -> None:
        now = self._clock.monotonic()
        series = self._series.get(key)
        if series is not None and now - series.last < SERIES_SECONDS:
            series.count += 1
            series.last = now
            patch = {"series": {"count": series.count, "lastObservedTime": tree["eventTime"]}}
            with contextlib.suppress(ApiError):
                await self._client.patch(kinds.EVENT, series.name, patch, series.namespace)
                return
        namespace = tree["metadata"]["namespace"]
        name = f"{tree['regarding']['name'][:200]}.{uuid.uuid4().hex[:16]}"
        tree["metadata"]["name"] = name
        await self._client.create(kinds.EVENT, tree, namespace)
        self._series[key] = _Series(namespace, name, 1, now)
        if len(self._series) > 4096:
            for old in [k for k, s in self._series.items() if now - s.last >= SERIES_SECONDS]:
                del self._series[old]
            while len(self._series) > 4096:
                self._series.pop(next(iter(self._series)))
