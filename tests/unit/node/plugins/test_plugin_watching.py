"""Registration over real sockets: announced, refused, gone, replaced."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubedra.api import codec, kinds
from kubedra.client.clock import RealClock
from kubedra.node.claims.checkpoint import ClaimCheckpoint
from kubedra.node.claims.preparing import ClaimPreparation
from kubedra.node.claims.resolving import PrepareError
from kubedra.node.plugins.drivers import ConnectedDrivers
from kubedra.node.plugins.watching import PluginHandler, PluginWatcher, find_sockets
from kubedra.node.settings import Waits
from kubedra.wire.paths import NodePaths
from kubedra.wire.registration import DRA_PLUGIN, PluginInfo
from tests.unit.node.claims.test_resolving_claims import claim, pod
from tests.unit.node.fake_api import FakeApi
from tests.unit.node.scripted_driver import ScriptedDriver, node_paths, until

WAITS = Waits(plugin_scan=0.01, plugin_retry_first=0.05, slice_wipe=0.2)


@pytest.fixture
def paths(tmp_path: Path) -> AsyncIterator[NodePaths]:  # type: ignore[misc]
    found = node_paths(tmp_path)
    found.create()
    yield found  # type: ignore[misc]
    shutil.rmtree(found.run_dir)


@contextlib.asynccontextmanager
async def watching(api: FakeApi, paths: NodePaths) -> AsyncIterator[ConnectedDrivers]:
    drivers = ConnectedDrivers(api, paths.node, WAITS, RealClock())

    async def register(info: PluginInfo, socket: Path) -> str:
        return drivers.register(info, socket)

    handlers = {DRA_PLUGIN: PluginHandler(register, drivers.deregister)}
    tasks = [
        asyncio.create_task(PluginWatcher(paths.plugins_registry_dir, handlers, WAITS, RealClock()).run()),
        asyncio.create_task(drivers.wipe_vanished()),
    ]
    try:
        yield drivers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await drivers.close()


async def test_a_driver_is_registered_used_and_let_go(paths: NodePaths) -> None:
    api = FakeApi()
    driver = ScriptedDriver(paths)
    await driver.start()
    async with watching(api, paths) as drivers:
        await until(lambda: driver.notices)
        assert driver.notices == [(True, "")]
        assert driver.calls == [("GetInfo",)]
        client = drivers.find(driver.name)
        assert client is not None
        assert client.version == "v1"
        await driver.stop()
        await until(lambda: drivers.find(driver.name) is None)
        await until(lambda: api.calls)
        assert api.calls == [("delete_collection", "resourceslices", f"spec.driver={driver.name},spec.nodeName=n1")]


async def test_a_refused_driver_is_told_each_time(paths: NodePaths) -> None:
    driver = ScriptedDriver(paths, versions=("v2.DRAPlugin",))
    await driver.start()
    async with watching(FakeApi(), paths) as drivers:
        await until(lambda: len(driver.notices) >= 2)
        registered, text = driver.notices[0]
        assert not registered
        assert text.startswith("RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC")
        assert drivers.find(driver.name) is None
    await driver.stop()


async def test_a_replaced_socket_is_registered_again(paths: NodePaths) -> None:
    first = ScriptedDriver(paths)
    await first.start()
    async with watching(FakeApi(), paths) as drivers:
        await until(lambda: first.notices)
        await first.stop()
        second = ScriptedDriver(paths)
        await second.start()
        await until(lambda: second.notices)
        assert second.notices == [(True, "")]
        assert drivers.find(second.name) is not None
        await second.stop()


def test_only_sockets_without_a_leading_dot_are_found(paths: NodePaths) -> None:
    (paths.plugins_registry_dir / "file").write_text("")
    assert find_sockets(paths.plugins_registry_dir) == set()


async def test_claims_are_prepared_and_unprepared_over_grpc(paths: NodePaths) -> None:
    api = FakeApi()
    for name in ("p-own", "c"):
        tree = codec.to_tree(claim(name))
        tree["status"]["allocation"]["devices"]["results"][0]["driver"] = "gpu.example.com"
        api.put(kinds.RESOURCE_CLAIM, tree, "ns")
    driver = ScriptedDriver(paths)
    await driver.start()
    async with watching(api, paths) as drivers:
        checkpoint = ClaimCheckpoint(paths.checkpoint_dir)
        claims = ClaimPreparation(api, drivers, checkpoint)
        with pytest.raises(PrepareError, match="is not registered"):
            await claims.prepare(pod())
        await until(lambda: driver.notices)
        driver.gate.clear()
        task = asyncio.create_task(claims.prepare(pod()))
        await until(lambda: ("prepare", "p-own", "c") in driver.calls)
        # Killed here, the next agent would know that the driver was asked.
        assert [(state.name, state.drivers) for state in checkpoint.load()] == [
            ("p-own", {"gpu.example.com": ()}),
            ("c", {"gpu.example.com": ()}),
        ]
        driver.gate.set()
        await task
        assert [d.device_name for _, d in claims.devices(pod(), pod().spec.containers[0])] == ["dev-p-own", "dev-c"]
        await claims.prepare(pod())
        assert driver.calls.count(("prepare", "p-own", "c")) == 1
        driver.unprepare_error = "still in use"
        with pytest.raises(PrepareError, match="NodeUnprepareResources failed for ResourceClaim p-own: still in use"):
            await claims.unprepare("pod-uid")
        assert claims.holds("pod-uid")
        driver.unprepare_error = ""
        await claims.unprepare("pod-uid")
        assert checkpoint.load() == ()
        driver.prepare_error = "driver exploded"
        text = "NodePrepareResources: rpc error: code = Internal desc = driver exploded"
        with pytest.raises(PrepareError, match=f"^{text}$"):
            await claims.prepare(pod())
    await driver.stop()


async def test_a_stop_is_obeyed_when_a_call_fails_in_the_same_moment(
    paths: NodePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    registering = asyncio.Event()

    async def swallows_the_stop(self: PluginWatcher, path: Path) -> None:
        registering.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    monkeypatch.setattr(PluginWatcher, "_register", swallows_the_stop)
    paths.plugins_registry_dir.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(paths.plugins_registry_dir / "gpu.sock"))
        watcher = asyncio.create_task(PluginWatcher(paths.plugins_registry_dir, {}, WAITS, RealClock()).run())
        await registering.wait()
        watcher.cancel()
        await asyncio.wait_for(asyncio.wait({watcher}), 10)
    assert watcher.cancelled()
