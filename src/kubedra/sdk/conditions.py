"""Tells in claim.status.devices that a driver has made a device ready.

Written with server-side apply under the driver's name, so other writers of the status are never in the way; a claim
that is gone or given away meanwhile is left alone. It is information for people and controllers: preparing never waits
for it. Upstream counterpart: what KEP-4817 asks of drivers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from kubedra.api import codec, kinds
from kubedra.api.errors import ApiError
from kubedra.base.clock import Clock, format_time
from kubedra.client.protocol import Client
from kubedra.sdk.checkpoint import ClaimRecord
from kubedra.sdk.driver import PreparedDevice

_log = logging.getLogger(__name__)

ATTEMPTS = 5


class ReadyConditions:
    """Writes the condition ``Ready`` for prepared devices, in the background."""

    def __init__(self, client: Client, driver: str, clock: Clock) -> None:
        self._client = client
        self._driver = driver
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    def prepared(self, record: ClaimRecord, devices: Sequence[PreparedDevice]) -> None:
        """Write the conditions of a claim soon."""
        if record.devices:
            task = asyncio.create_task(self._write(record, self.status(record, devices)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def status(self, record: ClaimRecord, devices: Sequence[PreparedDevice]) -> dict[str, Any]:
        """Return what is applied to the claim's status subresource."""
        condition = {
            "type": "Ready",
            "status": "True",
            "reason": "Prepared",
            "message": f"prepared by {self._driver}",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        entries = []
        for held, device in zip(record.devices, devices, strict=True):
            allocated = held.allocated
            entry: dict[str, Any] = {
                "driver": self._driver,
                "pool": allocated.pool,
                "device": allocated.device,
                "conditions": [condition],
            }
            if allocated.share_id is not None:
                entry["shareID"] = allocated.share_id
            if device.data is not None:
                entry["data"] = device.data
            if device.network_data is not None:
                entry["networkData"] = codec.to_tree(device.network_data)
            entries.append(entry)
        metadata = {"name": record.name, "namespace": record.namespace, "uid": record.uid}
        return {"metadata": metadata, "status": {"devices": entries}}

    async def close(self) -> None:
        """Give up on what is not written yet."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self, record: ClaimRecord, patch: dict[str, Any]) -> None:
        for attempt in range(ATTEMPTS):
            try:
                await self._client.patch(
                    kinds.RESOURCE_CLAIM,
                    record.name,
                    patch,
                    record.namespace,
                    patch_type="apply",
                    subresource="status",
                    field_manager=self._driver,
                    force=True,
                )
                return
            except ApiError as error:
                if error.code < 500 and error.code != 429:
                    # Gone, replaced, deallocated, or not ours to write: trying again changes nothing.
                    _log.info("no Ready condition for claim %s/%s: %s", record.namespace, record.name, error)
                    return
            except ConnectionError as error:
                _log.info("no Ready condition for claim %s/%s yet: %s", record.namespace, record.name, error)
            await self._clock.sleep(0.2 * 2**attempt)
