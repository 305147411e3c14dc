"""Prepares and unprepares claims so that a driver may die at any moment and no device is ever held twice.

Every step is on disk before the next begins:

1. the claim is read from the API (allocated? the same uid? for this driver?);
2. another claim that still holds one of its devices makes it wait (after a force delete the scheduler may give a device
   away before the old pod has stopped; the agent tries again once that one is unprepared);
3. the checkpoint says ``preparing``; 4. the driver prepares; 5. CDI and metadata files; 6. the checkpoint says
   ``prepared``.

A call for a prepared claim answers from the checkpoint; one for a claim that died on the way starts again at 4. A call
that the agent gives up on (its deadline is 45 s) goes on here, and the agent's next one joins it. Upstream counterpart:
NodePrepareResources of the kubelet plugin helper together with what its documentation asks of every driver.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.cdi.folder import SpecFolder
from kubedra.cdi.spec import ContainerEdits, Device, Spec
from kubedra.client.protocol import Client
from kubedra.sdk.checkpoint import Checkpoint, CheckpointError, ClaimRecord, HeldDevice
from kubedra.sdk.driver import Allocation, Driver, PreparedClaim, PreparedDevice, PrepareError, allocation_of, call
from kubedra.sdk.metadata import MetadataFiles
from kubedra.wire import dra

_log = logging.getLogger(__name__)

T = TypeVar("T")
PreparedCall = Callable[[ClaimRecord, Sequence[PreparedDevice]], None]


class ClaimPreparer:
    """The DRA service of one driver on one node."""

    def __init__(
        self,
        driver: Driver,
        client: Client,
        checkpoint: Checkpoint,
        cdi: SpecFolder,
        *,
        metadata: MetadataFiles | None = None,
        serialize: bool = True,
        on_prepared: PreparedCall | None = None,
        node: str = "",
    ) -> None:
        self._driver = driver
        self._client = client
        self._checkpoint = checkpoint
        self._cdi = cdi
        self._metadata = metadata
        self._on_prepared = on_prepared
        self._node = node
        self._serial: asyncio.Lock | None = asyncio.Lock() if serialize else None
        self._claim_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._running: dict[tuple[str, str], asyncio.Task[Any]] = {}

    # ---- the service ----

    async def prepare(self, claims: Sequence[dra.Claim]) -> Mapping[str, dra.PrepareResult]:
        """Prepare each claim; what goes wrong with one is its entry's error."""
        results = await asyncio.gather(*(self._joined("prepare", claim, self._prepare) for claim in claims))
        return {claim.uid: result for claim, result in zip(claims, results, strict=True)}

    async def unprepare(self, claims: Sequence[dra.Claim]) -> Mapping[str, str]:
        """Unprepare each claim; one that is not known is done already."""
        errors = await asyncio.gather(*(self._joined("unprepare", claim, self._unprepare) for claim in claims))
        return {claim.uid: error for claim, error in zip(claims, errors, strict=True)}

    async def close(self) -> None:
        """Cancel what runs; the checkpoint knows how far it got."""
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _joined(self, verb: str, claim: dra.Claim, work: Callable[[dra.Claim], Coroutine[Any, Any, T]]) -> T:
        """Run ``work`` as a task of its own, or wait for the one that runs already for this claim."""
        key = (verb, claim.uid)
        task: asyncio.Task[T] | None = self._running.get(key)
        if task is None:
            task = asyncio.create_task(work(claim))
            self._running[key] = task
            task.add_done_callback(lambda _: self._running.pop(key, None))
        return await asyncio.shield(task)

    def _claim_lock(self, uid: str) -> asyncio.Lock:
        """One call at a time per claim: prepare and unprepare of the same claim never overlap."""
        lock = self._claim_locks.get(uid)
        if lock is None:
            lock = self._claim_locks[uid] = asyncio.Lock()
        return lock

    # ---- prepare ----

    async def _prepare(self, claim: dra.Claim) -> dra.PrepareResult:
        try:
            async with self._claim_lock(claim.uid):
                devices = await self._prepare_locked(claim)
        except (PrepareError, CheckpointError) as error:
            _log.warning("node %s: claim %s/%s is not prepared: %s", self._node, claim.namespace, claim.name, error)
            return dra.PrepareResult(error=str(error))
        except Exception as error:
            _log.exception("node %s: preparing claim %s/%s failed", self._node, claim.namespace, claim.name)
            return dra.PrepareResult(error=f"{type(error).__name__}: {error}")
        shown = ", ".join(f"{device.pool_name}/{device.device_name}" for device in devices) or "no device"
        _log.info("node %s: prepared claim %s/%s: %s", self._node, claim.namespace, claim.name, shown)
        return dra.PrepareResult(devices)

    async def _prepare_locked(self, claim: dra.Claim) -> tuple[dra.Device, ...]:
        allocation = await self._fetch(claim)
        record = self._checkpoint.claims.get(claim.uid)
        if record is not None and tuple(held.allocated for held in record.devices) != allocation.devices:
            # The claim was given other devices meanwhile; what it held is let go first.
            await self._let_go(record)
            record = None
        if record is not None and record.state == "prepared":
            await asyncio.to_thread(self._write_files, record)
            return _answer(record)
        self._refuse_held(allocation)
        record = ClaimRecord(
            namespace=allocation.namespace,
            name=allocation.name,
            uid=allocation.uid,
            state="preparing",
            devices=tuple(HeldDevice(allocated=device) for device in allocation.devices),
            pod_claim_name=allocation.pod_claim_name,
        )
        # The record is visible to other calls before the first await in put, so no two of them pass the check above.
        await self._checkpoint.put(record)
        prepared = await self._call_prepare(allocation)
        record = self._with_results(record, prepared)
        record = await asyncio.to_thread(self._write_files, record)
        await self._checkpoint.put(msgspec.structs.replace(record, state="prepared"))
        if self._on_prepared is not None:
            self._on_prepared(record, prepared)
        return _answer(record)

    async def _fetch(self, claim: dra.Claim) -> Allocation:
        where = f"{claim.namespace}/{claim.name}"
        try:
            found = await self._client.get(kinds.RESOURCE_CLAIM, claim.name, claim.namespace)
        except (ApiError, ConnectionError) as error:
            raise PrepareError(f"retrieve claim {where}: {error}") from error
        if found.metadata.uid != claim.uid:
            raise PrepareError(f"claim {where} got replaced")
        if found.status.allocation is None:
            raise PrepareError(f"claim {where} not allocated")
        return allocation_of(self._driver.name, found)

    def _refuse_held(self, allocation: Allocation) -> None:
        for device in allocation.devices:
            if device.admin_access:
                continue
            for holder, held in self._checkpoint.holders(device.pool, device.device):
                if holder.uid == allocation.uid or held.allocated.admin_access:
                    continue
                if device.share_id is not None and held.allocated.share_id not in (None, device.share_id):
                    continue
                raise PrepareError(
                    f"device {device.pool}/{device.device} is still held by claim {holder.namespace}/{holder.name} "
                    f"({holder.uid}), which has not been unprepared yet"
                )

    async def _call_prepare(self, allocation: Allocation) -> Sequence[PreparedDevice]:
        if not allocation.devices:
            return ()
        if self._serial is None:
            prepared = await call(self._driver.prepare, allocation)
        else:
            async with self._serial:
                prepared = await call(self._driver.prepare, allocation)
        if len(prepared) != len(allocation.devices):
            raise PrepareError(
                f"driver {self._driver.name} prepared {len(prepared)} devices of {len(allocation.devices)} "
                f"in claim {allocation.namespace}/{allocation.name}"
            )
        return prepared

    def _with_results(self, record: ClaimRecord, prepared: Sequence[PreparedDevice]) -> ClaimRecord:
        devices = []
        for index, (held, result) in enumerate(zip(record.devices, prepared, strict=True)):
            ids = result.cdi_ids
            if result.edits != ContainerEdits():
                ids = (f"{self._driver.name}/claim={record.uid}-{index}", *ids)
            devices.append(msgspec.structs.replace(held, cdi_ids=ids, edits=result.edits, attributes=result.attributes))
        return msgspec.structs.replace(record, devices=tuple(devices))

    # ---- files ----

    def _cdi_name(self, uid: str) -> str:
        return f"{self._driver.name}-claim_{uid}"

    def _write_files(self, record: ClaimRecord) -> ClaimRecord:
        """Write CDI and metadata files; the record that comes back has the metadata's CDI ids too."""
        devices = tuple(
            Device(f"{record.uid}-{index}", held.edits)
            for index, held in enumerate(record.devices)
            if held.edits != ContainerEdits()
        )
        specs, by_request = self._metadata.write(record) if self._metadata is not None else ({}, {})
        if devices:
            specs[self._cdi_name(record.uid)] = Spec(f"{self._driver.name}/claim", devices=devices)
        self._cdi.path.mkdir(parents=True, exist_ok=True)
        if record.state == "prepared":
            present = self._cdi.names()
            specs = {name: spec for name, spec in specs.items() if name not in present}
        self._cdi.write_all(specs)
        if not by_request:
            return record
        return msgspec.structs.replace(
            record,
            devices=tuple(
                msgspec.structs.replace(
                    held, cdi_ids=tuple(dict.fromkeys((*held.cdi_ids, by_request[held.allocated.main_request])))
                )
                for held in record.devices
            ),
        )

    def _remove_files(self, record: ClaimRecord) -> None:
        names = [self._cdi_name(record.uid)]
        if self._metadata is not None:
            names += self._metadata.remove(record)
        self._cdi.remove_all(names)

    # ---- unprepare ----

    async def _unprepare(self, claim: dra.Claim) -> str:
        try:
            async with self._claim_lock(claim.uid):
                record = self._checkpoint.claims.get(claim.uid)
                if record is not None:
                    await self._let_go(record)
                elif self._checkpoint.damage:
                    # Nothing is known of it; the driver and the files are told all the same.
                    await self._let_go(
                        ClaimRecord(namespace=claim.namespace, name=claim.name, uid=claim.uid, state="prepared")
                    )
        except PrepareError as error:
            _log.warning("node %s: claim %s/%s is not unprepared: %s", self._node, claim.namespace, claim.name, error)
            return str(error)
        except Exception as error:
            _log.exception("node %s: unpreparing claim %s/%s failed", self._node, claim.namespace, claim.name)
            return f"{type(error).__name__}: {error}"
        _log.info("node %s: unprepared claim %s/%s", self._node, claim.namespace, claim.name)
        return ""

    async def _let_go(self, record: ClaimRecord) -> None:
        claim = PreparedClaim(
            namespace=record.namespace,
            name=record.name,
            uid=record.uid,
            devices=tuple(held.allocated for held in record.devices),
        )
        if record.state == "prepared" and not self._checkpoint.damage:
            # From here on the devices may be undone: a prepare that comes after a death must not trust the record.
            await self._checkpoint.put(msgspec.structs.replace(record, state="preparing"))
        if self._serial is None:
            await call(self._driver.unprepare, claim)
        else:
            async with self._serial:
                await call(self._driver.unprepare, claim)
        await asyncio.to_thread(self._remove_files, record)
        await self._checkpoint.drop(record.uid)


def _answer(record: ClaimRecord) -> tuple[dra.Device, ...]:
    """The devices as the agent wants them: it compares main requests and knows nothing of subrequests."""
    return tuple(
        dra.Device(
            (held.allocated.main_request,),
            held.allocated.pool,
            held.allocated.device,
            held.cdi_ids,
            held.allocated.share_id,
        )
        for held in record.devices
    )
