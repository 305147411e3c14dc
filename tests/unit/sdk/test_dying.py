"""A driver that dies at any one of its syncs: the next process finds a state from which everything goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubedra.api import kinds
from tests.unit.sdk.conftest import allocate, result
from tests.unit.sdk.memory_api import MemoryApi
from tests.unit.sdk.test_preparing import Setup


class Death(Exception):
    """Stands for SIGKILL at a sync."""


class DyingDisk:
    """Counts syncs and dies at one of them, and at all after it."""

    def __init__(self) -> None:
        self.count = 0
        self.dies_at = 0

    def fsync(self, descriptor: int) -> None:
        self.count += 1
        if self.dies_at and self.count >= self.dies_at:
            raise Death


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[DyingDisk]:
    disk = DyingDisk()
    monkeypatch.setattr(os, "fsync", disk.fsync)
    yield disk


async def count_syncs(api: MemoryApi, folder: Path, disk: DyingDisk, unprepare: bool) -> int:
    folder.mkdir()
    setup = Setup(api, folder)
    uid = await allocate(api, "count", result("gpu-0"))
    await setup.prepare("count", uid)
    if unprepare:
        disk.count = 0
        await setup.unprepare("count", uid)
    counted, disk.count = disk.count, 0
    await api.delete(kinds.RESOURCE_CLAIM, "count", "default")
    return counted


async def check_life_goes_on(setup: Setup, uid: str, rival: str) -> None:
    """Whatever state was found: the claim can be prepared, nobody else gets its device, and it can be let go."""
    answer = await setup.prepare("c", uid)
    assert answer.error == ""
    assert setup.cdi.resolve(answer.devices[0].cdi_device_ids).env == ("GPU=gpu-0",)
    assert "still held" in (await setup.prepare("rival", rival)).error
    assert await setup.unprepare("c", uid) == ""
    assert setup.cdi.names() == set() and not setup.checkpoint.claims
    assert (await setup.prepare("rival", rival)).error == ""


async def test_death_at_any_sync_of_prepare(api: MemoryApi, tmp_path: Path, disk: DyingDisk) -> None:
    syncs = await count_syncs(api, tmp_path / "count", disk, unprepare=False)
    assert syncs >= 5
    uid, rival = await allocate(api, "c", result("gpu-0")), await allocate(api, "rival", result("gpu-0"))
    for step in range(1, syncs + 1):
        folder = tmp_path / str(step)
        folder.mkdir()
        disk.count, disk.dies_at = 0, step
        assert "Death" in (await Setup(api, folder).prepare("c", uid)).error
        disk.dies_at = 0
        after = Setup(api, folder)
        assert not after.checkpoint.damage
        await check_life_goes_on(after, uid, rival)


async def test_death_at_any_sync_of_unprepare(api: MemoryApi, tmp_path: Path, disk: DyingDisk) -> None:
    syncs = await count_syncs(api, tmp_path / "count", disk, unprepare=True)
    assert syncs >= 3
    uid, rival = await allocate(api, "c", result("gpu-0")), await allocate(api, "rival", result("gpu-0"))
    for step in range(1, syncs + 1):
        folder = tmp_path / str(step)
        folder.mkdir()
        setup = Setup(api, folder)
        await setup.prepare("c", uid)
        disk.count, disk.dies_at = 0, step
        assert "Death" in await setup.unprepare("c", uid)
        disk.dies_at = 0
        after = Setup(api, folder)
        # The agent asks again until it succeeds, and whatever was left is gone then.
        assert await after.unprepare("c", uid) == ""
        assert after.cdi.names() == set() and not after.checkpoint.claims
        await check_life_goes_on(after, uid, rival)


async def test_a_full_disk_is_survived_without_a_restart(api: MemoryApi, tmp_path: Path, disk: DyingDisk) -> None:
    setup = Setup(api, tmp_path)
    uid, rival = await allocate(api, "c", result("gpu-0")), await allocate(api, "rival", result("gpu-0"))
    for step in (1, 3, 5):
        disk.count, disk.dies_at = 0, step
        assert (await setup.prepare("c", uid)).error
        disk.dies_at = 0
        assert (await setup.prepare("c", uid)).error == ""
        for last in (1, 2):
            disk.count, disk.dies_at = 0, last
            assert "Death" in await setup.unprepare("c", uid)
            assert uid in setup.checkpoint.claims
        disk.dies_at = 0
        assert await setup.unprepare("c", uid) == ""
        assert not Setup(api, tmp_path).checkpoint.claims
    await check_life_goes_on(setup, uid, rival)
