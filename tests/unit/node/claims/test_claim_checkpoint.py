"""The checkpoint file: upstream's format, checked when read, durable when written."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from kubedra.node.claims.cache import ClaimState
from kubedra.node.claims.checkpoint import CheckpointError, ClaimCheckpoint, encode
from kubedra.wire.dra import Device

STATE = ClaimState(
    "U", "N", "NS", frozenset({"PU"}), {"D": (Device(("r",), "pool", "dev", ("x/y=z",), "share"),), "E": ()}
)


def test_the_file_has_upstreams_format() -> None:
    file = json.loads(encode((STATE,)))
    assert file["Checksum"] == zlib.crc32(file["Data"].encode())
    device = {
        "PoolName": "pool",
        "DeviceName": "dev",
        "ShareID": "share",
        "RequestNames": ["r"],
        "CDIDeviceIDs": ["x/y=z"],
    }
    assert json.loads(file["Data"]) == {
        "kind": "DRACheckpoint",
        "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1",
        "ClaimInfoStateList": [
            {
                "ClaimUID": "U",
                "ClaimName": "N",
                "Namespace": "NS",
                "PodUIDs": {"PU": {}},
                "DriverState": {"D": {"Devices": [device]}, "E": {"Devices": None}},
            }
        ],
    }


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    checkpoint = ClaimCheckpoint(tmp_path)
    assert checkpoint.load() == ()
    checkpoint.save((STATE,))
    assert checkpoint.load() == (STATE,)
    assert (tmp_path / "dra_manager_state").stat().st_mode & 0o777 == 0o600


def test_a_file_the_kubelet_wrote_is_read(tmp_path: Path) -> None:
    data = '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":null}'
    content = json.dumps({"Data": data, "Checksum": zlib.crc32(data.encode())})
    (tmp_path / "dra_manager_state").write_text(content)
    assert ClaimCheckpoint(tmp_path).load() == ()


@pytest.mark.parametrize("content", ["", "garbage", '{"Data":"{}","Checksum":1}'])
def test_a_damaged_file_stops_the_agent_with_the_cure(tmp_path: Path, content: str) -> None:
    (tmp_path / "dra_manager_state").write_text(content)
    with pytest.raises(CheckpointError, match=r"please drain node and remove DRA state file .*dra_manager_state"):
        ClaimCheckpoint(tmp_path).load()
