"""Simulated drivers and device plugins say what a container gets, and one process serves a whole fleet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.cdi.folder import SpecFolder
from kubedra.client.clock import RealClock
from kubedra.drivers.simulated import SimulatedDriver, SimulatedDriverSettings
from kubedra.drivers.simulated.cards import cards_of
from kubedra.drivers.simulated.device_plugin import SimulatedDevicePlugin
from kubedra.drivers.simulated.driver import SimulatedNodeDriver
from kubedra.drivers.simulated.fleet import Pool, parse
from kubedra.sdk import AllocatedDevice, Allocation, PrepareError
from kubedra.testing.clock import FakeClock
from kubedra.wire.device_plugin import (
    DevicePluginClient,
    PreferredAllocation,
    RegisterRequest,
    registry_service,
)
from kubedra.wire.dra import Claim, DraClient
from kubedra.wire.paths import NodePaths
from kubedra.wire.transport import CallError, Channel, SocketServer
from tests.unit.sdk.conftest import allocate
from tests.unit.sdk.memory_api import MemoryApi

FLEET = """\
kind: Fleet
drivers: {nvidia: gpu.example.com}
pools:
- name: real
  devices:
  - {card: H100, count: 4, numaNodes: 2}
  - {card: MI300X, count: 2}
  - {card: L4, count: 4, servedBy: plugin, resource: example.com/gpu}
- name: hollow
  hollow: true
  count: 3
  devices: [{card: H100, count: 8}]
"""


def pool() -> Pool:
    return parse(FLEET).pools[0]


def allocation(*devices: tuple[str, str], config: dict[str, Any] | None = None) -> Allocation:
    return Allocation(
        namespace="ns",
        name="c",
        uid="u",
        devices=tuple(
            AllocatedDevice(request=request, pool="real-0", device=name, configs=(config,) if config else ())
            for request, name in devices
        ),
    )


def driver(clock: Any = None) -> SimulatedNodeDriver:
    cards = [card for card in cards_of("real-0", pool()) if card.served.driver == "gpu.example.com"][:4]
    return SimulatedNodeDriver("gpu.example.com", "real-0", cards, clock or RealClock())


async def test_a_container_is_told_each_device_and_the_vendors_list() -> None:
    one, two, other = await driver().prepare(allocation(("my-gpu", "gpu-0"), ("my-gpu", "gpu-2"), ("b/sub", "gpu-1")))
    assert one.edits.env[0] == "KUBEDRA_DEVICE_MY_GPU_0=gpu.example.com/real-0/gpu-0"
    assert two.edits.env[0] == "KUBEDRA_DEVICE_MY_GPU_1=gpu.example.com/real-0/gpu-2"
    assert other.edits.env[0] == "KUBEDRA_DEVICE_B_0=gpu.example.com/real-0/gpu-1"
    assert one.edits.env[1] == two.edits.env[1] and one.edits.env[1].startswith("NVIDIA_VISIBLE_DEVICES=GPU-")
    assert one.edits.env[1].count(",GPU-") == 1 and "," not in other.edits.env[1]


async def test_a_device_of_another_node_is_refused() -> None:
    with pytest.raises(PrepareError, match="device real-0/gpu-9 is not on node real-0"):
        await driver().prepare(allocation(("r", "gpu-9")))


async def test_parameters_make_it_slow_or_fail() -> None:
    clock = FakeClock()
    slow = asyncio.create_task(driver(clock).prepare(allocation(("r", "gpu-0"), config={"prepareSeconds": 5})))
    await clock.settle()
    await clock.advance(4.9)
    assert not slow.done()
    await clock.advance(0.2)
    assert (await slow)[0].edits.env
    with pytest.raises(PrepareError, match="on fire"):
        await driver().prepare(allocation(("r", "gpu-0"), config={"prepareError": "on fire"}))


async def test_a_device_plugin_allocates_and_prefers_what_belongs_together() -> None:
    spread = parse(FLEET.replace("servedBy: plugin, ", "numaNodes: 2, servedBy: plugin, "))
    cards = list(cards_of("n", spread.pools[0]))
    plugin = SimulatedDevicePlugin("example.com/gpu", "n", [card for card in cards if card.card.name == "L4"])
    devices = await anext(plugin.list_and_watch())
    assert [(device.id, device.numa_nodes) for device in devices] == [
        ("gpu-0", (0,)),
        ("gpu-1", (0,)),
        ("gpu-2", (1,)),
        ("gpu-3", (1,)),
    ]
    prefer = await plugin.preferred_allocation(
        [
            PreferredAllocation(("gpu-1", "gpu-2", "gpu-3"), (), 2),
            PreferredAllocation(("gpu-1", "gpu-2"), (), 2),
            PreferredAllocation(("gpu-0", "gpu-1", "gpu-2"), ("gpu-2",), 2),
        ]
    )
    assert prefer == [("gpu-2", "gpu-3"), ("gpu-1", "gpu-2"), ("gpu-2", "gpu-0")]
    (answer,) = await plugin.allocate([("gpu-1", "gpu-0")])
    assert answer.envs["KUBEDRA_DEVICE_GPU_0"] == "example.com/gpu/n/gpu-0"
    assert answer.envs["KUBEDRA_DEVICE_GPU_1"] == "example.com/gpu/n/gpu-1"
    assert answer.envs["NVIDIA_VISIBLE_DEVICES"].count("GPU-") == 2
    with pytest.raises(CallError, match="no device gpu-7 on node n"):
        await plugin.allocate([("gpu-7",)])


@asynccontextmanager
async def fleet_running(api: MemoryApi, folder: Path) -> AsyncIterator[tuple[SimulatedDriver, NodePaths]]:
    fleet = parse(FLEET)
    settings = SimulatedDriverSettings(fleet=fleet, data_dir=folder / "data", run_dir=folder / "run")
    simulated = SimulatedDriver(api, settings, RealClock())  # type: ignore[arg-type]
    task = asyncio.create_task(simulated.run())
    await simulated.wait_published()
    try:
        yield simulated, NodePaths(folder / "data", folder / "run", "real-0")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def fleet_api() -> MemoryApi:
    api = MemoryApi()
    for name, _ in parse(FLEET).nodes():
        await api.create(kinds.NODE, {"metadata": {"name": name}})
    return api


async def test_one_process_serves_a_whole_fleet(fleet_api: MemoryApi, tmp_path: Path) -> None:
    async with fleet_running(fleet_api, tmp_path) as (_, paths):
        published = {
            (entry.spec.driver, entry.spec.pool.name): len(entry.spec.devices)
            for entry in fleet_api.all(kinds.RESOURCE_SLICE)
        }
        assert published == {
            ("gpu.example.com", "real-0"): 4,
            ("gpu.amd.com", "real-0"): 2,
            ("gpu.example.com", "hollow-0"): 8,
            ("gpu.example.com", "hollow-1"): 8,
            ("gpu.example.com", "hollow-2"): 8,
        }
        assert not (tmp_path / "run" / "hollow-0").exists()
        held = {"driver": "gpu.amd.com", "pool": "real-0", "device": "gpu-0-128", "request": "gpu"}
        uid = await allocate(fleet_api, "c", held)
        channel = Channel(paths.service_socket("gpu.amd.com"))
        answers = await DraClient(channel, "v1").prepare([Claim("default", uid, "c")], timeout=5)
        await channel.close()
        edits = SpecFolder(paths.cdi_dir).resolve(answers[uid].devices[0].cdi_device_ids)
        assert edits.env == ("KUBEDRA_DEVICE_GPU_0=gpu.amd.com/real-0/gpu-0-128", "AMD_VISIBLE_DEVICES=0")
        assert len(edits.mounts) == 1
    assert not paths.service_socket("gpu.amd.com").exists()


class Agent:
    """The registration side of an agent, as far as device plugins see it."""

    def __init__(self, paths: NodePaths) -> None:
        self.requests: list[RegisterRequest] = []
        self.server = SocketServer(paths.kubelet_socket, [registry_service(self)])

    async def register(self, request: RegisterRequest) -> None:
        self.requests.append(request)


async def test_device_plugins_register_again_with_every_new_agent(fleet_api: MemoryApi, tmp_path: Path) -> None:
    async with fleet_running(fleet_api, tmp_path) as (_, paths):
        for _ in range(2):
            for leftover in paths.device_plugins_dir.iterdir():
                leftover.unlink()
            agent = Agent(paths)
            await agent.server.start()
            while not agent.requests:
                await asyncio.sleep(0.01)
            request = agent.requests[0]
            assert request.resource_name == "example.com/gpu" and request.options.get_preferred_allocation_available
            channel = Channel(paths.device_plugins_dir / request.endpoint)
            devices = await anext(DevicePluginClient(channel).list_and_watch())
            assert len(devices) == 4
            await channel.close()
            await agent.server.stop()
