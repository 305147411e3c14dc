"""Writes one pod's status: the latest wins, nothing is written twice, the uid is a precondition.

Upstream counterpart: pkg/kubelet/status/status_manager.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from kubedra.api import kinds
from kubedra.api.core_v1 import Pod
from kubedra.api.errors import ApiError
from kubedra.base.clock import Clock
from kubedra.client.protocol import Client

log = logging.getLogger(__name__)

Tree = dict[str, Any]
# A pod that starts at once is told of once: "creating" is worth a write only if it lasts.
SETTLE_SECONDS = 0.05


class StatusWriter:
    """Brings a pod's status to the API in the background."""

    def __init__(self, client: Client, clock: Clock, pod: Pod) -> None:
        self._client = client
        self._clock = clock
        self._namespace, self._name, self._uid = pod.metadata.namespace, pod.metadata.name, pod.metadata.uid
        self._wanted: Tree | None = None
        self._written: Tree | None = None
        self._urgent = asyncio.Event()
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None
        self.on_written: Callable[[Pod], None] = lambda pod: None

    def set(self, status: Tree, *, urgent: bool) -> None:
        """This is how things are now; an urgent status is written without waiting for more."""
        if status == (self._wanted or self._written):
            return
        self._wanted = status
        self._idle.clear()
        self._changed.set()
        if urgent:
            self._urgent.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"status of {self._namespace}/{self._name}")

    async def flush(self) -> None:
        """Waits until the latest status is written, or can't be any more."""
        self._urgent.set()
        await self._idle.wait()

    async def stop(self) -> None:
        """Ends without writing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        delay = 0.1
        while True:
            await self._changed.wait()
            if not self._urgent.is_set():
                await self._settle()
            self._changed.clear()
            self._urgent.clear()
            status, self._wanted = self._wanted, None
            if status is None or status == self._written:
                self._idle.set()
                continue
            try:
                await self._write(status)
                delay = 0.1
            except (ApiError, ConnectionError) as error:
                if isinstance(error, ApiError) and error.code in (404, 409, 422):
                    # The pod is gone, is another one, or will never take this status.
                    log.info("status of %s/%s was not taken: %s", self._namespace, self._name, error)
                else:
                    self._wanted = self._wanted or status
                    self._changed.set()
                    await self._clock.sleep(delay)
                    delay = min(delay * 2, 5.0)
                    continue
            if self._wanted is None:
                self._idle.set()

    async def _settle(self) -> None:
        waiter = asyncio.ensure_future(self._urgent.wait())
        sleeper = asyncio.ensure_future(self._clock.sleep(SETTLE_SECONDS))
        try:
            await asyncio.wait((waiter, sleeper), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for future in (waiter, sleeper):
                future.cancel()

    async def _write(self, status: Tree) -> None:
        patch = {"metadata": {"uid": self._uid}, "status": status}
        pod = await self._client.patch(
            kinds.POD, self._name, patch, self._namespace, patch_type="strategic", subresource="status"
        )
        self._written = status
        self.on_written(pod)
