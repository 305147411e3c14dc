"""The claim checkpoint: the file that lets an agent that was killed know what it asked of which driver.

Same format as the kubelet's ``dra_manager_state``, so tools that read one read the other: JSON with the payload as
a string and its CRC-32. Written, synced and renamed before any driver is called. A damaged file stops the agent:
guessing would either leak devices or hand them out twice.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec

from kubedra.node.claims.cache import ClaimState
from kubedra.wire.dra import Device
from kubedra.wire.durable import write_durably

FILE_NAME = "dra_manager_state"
API_VERSION = "checkpoint.dra.kubelet.k8s.io/v1"


class CheckpointError(Exception):
    """The checkpoint can't be trusted; the text says what a person must do."""


class _Device(msgspec.Struct, rename="pascal"):
    pool_name: str = ""
    device_name: str = ""
    share_id: str | None = msgspec.field(name="ShareID", default=None)
    request_names: list[str] | None = None
    cdi_device_ids: list[str] | None = msgspec.field(name="CDIDeviceIDs", default=None)


class _Driver(msgspec.Struct, rename="pascal"):
    devices: list[_Device] | None = None


class _Claim(msgspec.Struct, rename="pascal"):
    claim_uid: str = msgspec.field(name="ClaimUID", default="")
    claim_name: str = ""
    namespace: str = ""
    pod_uids: dict[str, dict[str, str]] | None = msgspec.field(name="PodUIDs", default=None)
    driver_state: dict[str, _Driver] | None = None
    # Ours: upstream keeps it nowhere, and asks a driver that wanted to be left out once its gate is off.
    skip_unprepare: list[str] | msgspec.UnsetType = msgspec.UNSET


class _Data(msgspec.Struct):
    kind: str = "DRACheckpoint"
    api_version: str = msgspec.field(name="apiVersion", default=API_VERSION)
    claims: list[_Claim] | None = msgspec.field(name="ClaimInfoStateList", default=None)


class _File(msgspec.Struct, rename="pascal"):
    data: str
    checksum: int


def encode(states: tuple[ClaimState, ...]) -> bytes:
    """The file's content."""
    claims = [
        _Claim(
            state.uid,
            state.name,
            state.namespace,
            {pod: {} for pod in sorted(state.pods)},
            {driver: _Driver([_device(d) for d in devices] or None) for driver, devices in state.drivers.items()},
            sorted(state.skip_unprepare) or msgspec.UNSET,
        )
        for state in states
    ]
    data = msgspec.json.encode(_Data(claims=claims))
    return msgspec.json.encode(_File(data.decode(), zlib.crc32(data)))


def _device(device: Device) -> _Device:
    # Go writes a list that was never filled as null.
    names, ids = list(device.request_names) or None, list(device.cdi_device_ids) or None
    return _Device(device.pool_name, device.device_name, device.share_id, names, ids)


def decode(content: bytes) -> tuple[ClaimState, ...]:
    """The claims of a file; raises ValueError when it is damaged."""
    try:
        file = msgspec.json.decode(content, type=_File)
        if zlib.crc32(file.data.encode()) != file.checksum:
            raise ValueError("checkpoint is corrupted")
        data = msgspec.json.decode(file.data, type=_Data)
    except msgspec.DecodeError as error:
        raise ValueError(f"checkpoint is corrupted: {error}") from error
    return tuple(
        ClaimState(
            claim.claim_uid,
            claim.claim_name,
            claim.namespace,
            frozenset(claim.pod_uids or ()),
            {
                name: tuple(
                    Device(
                        tuple(device.request_names or ()),
                        device.pool_name,
                        device.device_name,
                        tuple(device.cdi_device_ids or ()),
                        device.share_id,
                    )
                    for device in driver.devices or ()
                )
                for name, driver in (claim.driver_state or {}).items()
            },
            frozenset(claim.skip_unprepare or ()),
        )
        for claim in data.claims or ()
    )


class ClaimCheckpoint:
    """The checkpoint file in its folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME

    def load(self) -> tuple[ClaimState, ...]:
        """What was remembered; nothing where there is no file yet. Raises CheckpointError."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return ()
        try:
            return decode(content)
        except ValueError as error:
            raise CheckpointError(
                f"could not initialize checkpoint manager, please drain node and remove DRA state file {self._path}, "
                f"err: {error}"
            ) from error

    def save(self, states: tuple[ClaimState, ...]) -> None:
        """Replaces the file durably. Blocks on the disk."""
        write_durably(self._path, encode(states))
