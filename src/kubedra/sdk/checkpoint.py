"""What a driver has prepared on its node, on disk: it survives ``kill -9`` and power cuts.

The file is written before a driver touches a device and again after, so that whatever happens in between is known. It
has a version and a checksum; unknown fields are kept out of the way, so a file of a newer or older release loads. A
file that can't be read closes the door: nothing new is prepared until somebody has looked, but what the agent asks to
unprepare still is. Upstream counterpart: the checkpoint of the example drivers; their checksum covers the encoding of
structs and breaks when a field is added.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

from kubedra.api import resource_v1
from kubedra.cdi.spec import ContainerEdits
from kubedra.sdk.driver import AllocatedDevice
from kubedra.wire.durable import remove_leftovers, write_durably

VERSION = 1


class HeldDevice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A device that a claim holds; the edits are there to write its CDI file again."""

    allocated: AllocatedDevice
    cdi_ids: tuple[str, ...] = ()
    edits: ContainerEdits = ContainerEdits()
    attributes: dict[str, resource_v1.DeviceAttribute] | None = None


class ClaimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A claim and how far it got: ``preparing`` is written before the driver is called, to prepare or to unprepare."""

    namespace: str
    name: str
    uid: str
    state: Literal["preparing", "prepared"]
    devices: tuple[HeldDevice, ...] = ()
    pod_claim_name: str = ""


class _Data(msgspec.Struct, frozen=True):
    driver: str
    claims: tuple[ClaimRecord, ...] = ()


class _File(msgspec.Struct, frozen=True):
    version: int
    checksum: int
    data: str


class CheckpointError(Exception):
    """The checkpoint can't be used; the text says what to do."""


class Checkpoint:
    """The prepared claims of one driver on one node, by claim uid."""

    def __init__(self, path: Path, driver: str) -> None:
        self.path = path
        self._driver = driver
        self._claims: dict[str, ClaimRecord] = {}
        self._write = asyncio.Lock()
        self.damage = ""

    def load(self) -> None:
        """Read the file; a broken one sets ``damage`` instead of raising."""
        remove_leftovers(self.path.parent, 0, prefix=self.path.name)
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return
        try:
            self._claims = {claim.uid: claim for claim in _read(content, self._driver)}
        except CheckpointError as error:
            self.damage = (
                f"the checkpoint {self.path} can't be used ({error}): "
                f"drain the node and remove the file; until then nothing new is prepared"
            )

    @property
    def claims(self) -> Mapping[str, ClaimRecord]:
        """All claims, prepared ones and those on the way."""
        return MappingProxyType(self._claims)

    def holders(self, pool: str, device: str) -> Iterator[tuple[ClaimRecord, HeldDevice]]:
        """Yield who holds a device."""
        for claim in self._claims.values():
            for held in claim.devices:
                if held.allocated.device == device and held.allocated.pool == pool:
                    yield claim, held

    async def put(self, claim: ClaimRecord) -> None:
        """Record a claim; when this returns it is on disk, when it raises nothing has changed."""
        self._refuse_damaged()
        await self._change(claim.uid, claim)

    async def drop(self, uid: str) -> None:
        """Forget a claim; when this returns that is on disk, when it raises the claim is still there."""
        if uid in self._claims:
            await self._change(uid, None)

    async def _change(self, uid: str, new: ClaimRecord | None) -> None:
        old = self._claims.get(uid)
        self._set(uid, new)
        try:
            if not self.damage:
                await self._save()
        except BaseException:
            self._set(uid, old)
            raise

    def _set(self, uid: str, claim: ClaimRecord | None) -> None:
        others = {key: other for key, other in self._claims.items() if key != uid}
        self._claims = others if claim is None else {**others, uid: claim}

    def _refuse_damaged(self) -> None:
        if self.damage:
            raise CheckpointError(self.damage)

    async def _save(self) -> None:
        # Claims are prepared side by side: whoever writes last writes the state of all.
        async with self._write:
            content = _encode(self._driver, tuple(self._claims.values()))
            await asyncio.to_thread(write_durably, self.path, content)


def _encode(driver: str, claims: tuple[ClaimRecord, ...]) -> bytes:
    data = msgspec.json.encode(_Data(driver, claims)).decode()
    return msgspec.json.encode(_File(VERSION, zlib.crc32(data.encode()), data))


def _read(content: bytes, driver: str) -> tuple[ClaimRecord, ...]:
    try:
        file = msgspec.json.decode(content, type=_File)
        if zlib.crc32(file.data.encode()) != file.checksum:
            raise CheckpointError("its checksum does not match")
        data = msgspec.json.decode(file.data, type=_Data)
    except msgspec.MsgspecError as error:
        raise CheckpointError(str(error)) from error
    except UnicodeDecodeError as error:
        raise CheckpointError(str(error)) from error
    if file.version > VERSION:
        raise CheckpointError(f"it has version {file.version} and this release knows {VERSION}")
    if data.driver != driver:
        raise CheckpointError(f'it belongs to driver "{data.driver}"')
    return data.claims
