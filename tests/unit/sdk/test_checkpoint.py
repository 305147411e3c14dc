"""Checkpoints load what an older or newer release wrote, and refuse what is broken with a sentence."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from kubedra.sdk.checkpoint import Checkpoint, CheckpointError, ClaimRecord, HeldDevice
from kubedra.sdk.driver import AllocatedDevice

HELD = HeldDevice(allocated=AllocatedDevice(request="r", pool="p", device="d"))
CLAIM = ClaimRecord(namespace="ns", name="c", uid="u", state="prepared", devices=(HELD,))


def file(data: object, version: int = 1, **more: object) -> str:
    text = json.dumps(data)
    return json.dumps({"version": version, "checksum": zlib.crc32(text.encode()), "data": text, **more})


async def test_claims_survive(tmp_path: Path) -> None:
    first = Checkpoint(tmp_path / "checkpoint.json", "d")
    first.load()
    await first.put(CLAIM)
    second = Checkpoint(tmp_path / "checkpoint.json", "d")
    second.load()
    assert dict(second.claims) == {"u": CLAIM} and list(second.holders("p", "d")) == [(CLAIM, HELD)]
    await second.drop("u")
    await second.drop("u")
    third = Checkpoint(tmp_path / "checkpoint.json", "d")
    third.load()
    assert not third.claims and not third.damage


async def test_unknown_fields_are_skipped_and_missing_ones_have_defaults(tmp_path: Path) -> None:
    claim = {"namespace": "ns", "name": "c", "uid": "u", "state": "prepared", "fromTheFuture": {"a": 1}}
    (tmp_path / "checkpoint.json").write_text(file({"driver": "d", "claims": [claim], "new": 1}, hint="x"))
    checkpoint = Checkpoint(tmp_path / "checkpoint.json", "d")
    checkpoint.load()
    assert checkpoint.claims["u"].devices == () and not checkpoint.damage


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "truncated"),
        ("{", "truncated"),
        (file({"driver": "d"}).replace("driver", "drivel"), "its checksum does not match"),
        (file({"driver": "d"}, version=99), "it has version 99 and this release knows 1"),
        (file({"driver": "other"}), 'it belongs to driver "other"'),
        (file([]), "Expected"),
    ],
)
async def test_a_broken_file_stops_what_is_new(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "checkpoint.json").write_text(content)
    checkpoint = Checkpoint(tmp_path / "checkpoint.json", "d")
    checkpoint.load()
    assert reason in checkpoint.damage
    with pytest.raises(CheckpointError, match="remove the file"):
        await checkpoint.put(CLAIM)
    await checkpoint.drop("u")
    assert (tmp_path / "checkpoint.json").read_text() == content
