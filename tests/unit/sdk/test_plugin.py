"""A driver on a node: it registers, answers both versions, tells health, and gets its sockets back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.sdk import (
    Allocation,
    ContainerEdits,
    DeviceHealth,
    NodePlugin,
    PluginPaths,
    PluginSettings,
    PreparedClaim,
    PreparedDevice,
    device,
)
from kubedra.wire.dra import Claim, DraClient
from kubedra.wire.health import HealthClient
from kubedra.wire.paths import NodePaths
from kubedra.wire.registration import RegistrationClient
from kubedra.wire.transport import Channel
from tests.unit.sdk.conftest import DRIVER, allocate, result
from tests.unit.sdk.memory_api import MemoryApi


class PlainDriver:
    """As an author would write it, without ``async``."""

    name = DRIVER

    def __init__(self) -> None:
        self.devices = [device("gpu-0", {"model": "X"}, memory="1Gi")]

    def discover(self) -> list[Any]:
        return list(self.devices)

    def prepare(self, allocation: Allocation) -> Sequence[PreparedDevice]:
        return [PreparedDevice(edits=ContainerEdits(env=(f"GPU={d.device}",))) for d in allocation.devices]

    def unprepare(self, claim: PreparedClaim) -> None:
        return None


class HealthyDriver(PlainDriver):
    def __init__(self) -> None:
        super().__init__()
        self.lists: asyncio.Queue[tuple[DeviceHealth, ...]] = asyncio.Queue()

    async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        while True:
            yield await self.lists.get()


@asynccontextmanager
async def plugged(
    api: MemoryApi, folder: Path, driver: PlainDriver, **changes: Any
) -> AsyncIterator[tuple[NodePlugin, NodePaths]]:
    paths = NodePaths(folder / "data", folder / "run", "n1")
    settings = PluginSettings(node="n1", paths=PluginPaths.of_node(paths, DRIVER), check_sockets_seconds=0.02)
    plugin = NodePlugin(driver, api, replace(settings, **changes))  # type: ignore[arg-type]
    await plugin.start()
    try:
        yield plugin, paths
    finally:
        await plugin.stop()


@asynccontextmanager
async def dialled(socket: Path) -> AsyncIterator[Channel]:
    channel = Channel(socket)
    try:
        assert await channel.wait_connected(5)
        yield channel
    finally:
        await channel.close()


async def test_it_registers_and_prepares_in_both_versions(api: MemoryApi, tmp_path: Path) -> None:
    uid = await allocate(api, "c", result("gpu-0"))
    async with plugged(api, tmp_path, PlainDriver()) as (plugin, paths):
        await plugin.wait_published()
        async with dialled(paths.registration_socket(DRIVER)) as channel:
            agent = RegistrationClient(channel)
            info = await agent.get_info(timeout=5)
            assert info.supported_versions == ("v1.DRAPlugin", "v1beta1.DRAPlugin") and info.name == DRIVER
            await agent.notify(True, "", timeout=5)
            assert plugin.registered.is_set()
            await agent.notify(False, "endpoint is taken", timeout=5)
            assert not plugin.registered.is_set() and plugin.registration_error == "endpoint is taken"
        async with dialled(Path(info.endpoint)) as channel:
            claim = Claim("default", uid, "c")
            answers = await DraClient(channel, "v1").prepare([claim], timeout=5)
            assert answers[uid].devices[0].device_name == "gpu-0"
            assert await DraClient(channel, "v1beta1").prepare([claim], timeout=5) == answers
            assert await DraClient(channel, "v1beta1").unprepare([claim], timeout=5) == {uid: ""}
    assert not paths.registration_socket(DRIVER).exists() and not paths.service_socket(DRIVER).exists()
    assert len(api.all(kinds.RESOURCE_SLICE)) == 1


async def test_new_devices_are_published(api: MemoryApi, tmp_path: Path) -> None:
    driver = PlainDriver()
    async with plugged(api, tmp_path, driver) as (plugin, _):
        await plugin.wait_published()
        driver.devices.append(device("gpu-1", {}))
        await plugin.rediscover()
        await plugin.wait_published()
        assert [entry.name for entry in api.all(kinds.RESOURCE_SLICE)[0].spec.devices] == ["gpu-0", "gpu-1"]
        assert plugin.published("n1", "gpu-1") is not None


async def test_a_discovery_that_fails_later_keeps_what_is_published(api: MemoryApi, tmp_path: Path) -> None:
    class Flaky(PlainDriver):
        asked = 0

        def discover(self) -> list[Any]:
            self.asked += 1
            if self.asked == 2:
                raise OSError("bus error")
            return list(self.devices)

    driver = Flaky()
    async with plugged(api, tmp_path, driver, rediscover_seconds=0.01) as (plugin, _):
        while driver.asked < 3:
            await asyncio.sleep(0.005)
        await plugin.wait_published()
        assert len(api.all(kinds.RESOURCE_SLICE)) == 1


async def test_sockets_that_were_removed_come_back(api: MemoryApi, tmp_path: Path) -> None:
    async with plugged(api, tmp_path, PlainDriver()) as (_, paths):
        for socket in (paths.registration_socket(DRIVER), paths.service_socket(DRIVER)):
            socket.unlink()
            while not socket.exists():
                await asyncio.sleep(0.005)
            async with dialled(socket):
                pass


async def test_a_second_process_waits_until_the_first_is_gone(api: MemoryApi, tmp_path: Path) -> None:
    uid = await allocate(api, "c", result("gpu-0"))
    async with plugged(api, tmp_path, PlainDriver()) as (plugin, paths):
        settings = PluginSettings(node="n1", paths=PluginPaths.of_node(paths, DRIVER))
        second = NodePlugin(PlainDriver(), api, settings)  # type: ignore[arg-type]
        starting = asyncio.create_task(second.start())
        async with dialled(paths.service_socket(DRIVER)) as channel:
            await DraClient(channel, "v1").prepare([Claim("default", uid, "c")], timeout=5)
        assert not starting.done() and uid in plugin.checkpoint.claims
    await starting
    assert uid in second.checkpoint.claims
    await second.stop()


async def test_health_is_told_to_every_listener(api: MemoryApi, tmp_path: Path) -> None:
    driver = HealthyDriver()
    async with plugged(api, tmp_path, driver) as (plugin, paths):
        assert "v1alpha1.DRAResourceHealth" in (await plugin.get_info()).supported_versions
        async with dialled(paths.service_socket(DRIVER)) as channel:
            one, two = HealthClient(channel, "v1").watch(), HealthClient(channel, "v1alpha1").watch()
            healthy = (DeviceHealth("n1", "gpu-0", "Healthy"),)
            driver.lists.put_nowait(healthy)
            assert await anext(one) == healthy and await anext(two) == healthy
            sick = (DeviceHealth("n1", "gpu-0", "Unhealthy", message="hot"),)
            driver.lists.put_nowait(sick)
            assert await anext(one) == sick and await anext(two) == sick
            await one.aclose()  # type: ignore[attr-defined]
            await two.aclose()  # type: ignore[attr-defined]


def test_the_layout_of_a_kubelet() -> None:
    paths = PluginPaths.of_kubelet("gpu.example.com")
    assert str(paths.registration_socket) == "/var/lib/kubelet/plugins_registry/gpu.example.com-reg.sock"
    assert str(paths.service_socket) == "/var/lib/kubelet/plugins/gpu.example.com/dra.sock"


@pytest.mark.parametrize("kubedra", [True, False])
def test_settings_come_from_the_environment(kubedra: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from kubedra.sdk.process import settings_from_environment

    monkeypatch.delenv("NODE_NAME", raising=False)
    with pytest.raises(SystemExit, match="NODE_NAME is not set"):
        settings_from_environment("d.example.com")
    monkeypatch.setenv("NODE_NAME", "n7")
    monkeypatch.setenv("KUBEDRA_DATA", str(tmp_path) if kubedra else "")
    monkeypatch.setenv("KUBEDRA_RUN", "/run/x" if kubedra else "")
    settings = settings_from_environment("d.example.com")
    assert settings.node == "n7"
    root = Path("/run/x/n7/dra") if kubedra else Path("/var/lib/kubelet/plugins")
    assert settings.paths.service_socket == root / "d.example.com" / "dra.sock"
