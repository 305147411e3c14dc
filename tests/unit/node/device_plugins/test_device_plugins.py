"""Device plugins over real sockets, in an agent."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.node.device_plugins import manager
from kubedra.wire.device_plugin import (
    ContainerAllocation,
    Options,
    PluginDevice,
    PreferredAllocation,
    RegisterRequest,
    RegistryClient,
    device_plugin_service,
)
from kubedra.wire.paths import NodePaths
from kubedra.wire.transport import CallError, Channel, SocketServer
from tests.unit.node.agents import Node
from tests.unit.node.scripted_driver import until
from tests.unit.node.test_agent import logs

GPU = "example.com/gpu"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.close()


class ScriptedPlugin:
    """A device plugin that gives every container the ids of its devices."""

    def __init__(self, paths: NodePaths) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.devices = [PluginDevice(i) for i in ("a", "b", "c")]
        self.changed = asyncio.Event()
        self._paths = paths
        self._server = SocketServer(paths.device_plugins_dir / "gpu.sock", (device_plugin_service(self),))

    async def start(self) -> None:
        await self._server.start()
        await self.announce()

    async def announce(self, version: str = "v1beta1", name: str = GPU) -> None:
        channel = Channel(self._paths.kubelet_socket)
        try:
            await RegistryClient(channel).register(RegisterRequest(version, "gpu.sock", name), timeout=5)
        finally:
            await channel.close()

    async def stop(self) -> None:
        await self._server.stop()

    async def options(self) -> Options:
        return Options(pre_start_required=True, get_preferred_allocation_available=True)

    async def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        while True:
            yield tuple(self.devices)
            await self.changed.wait()
            self.changed.clear()

    async def preferred_allocation(self, containers: Sequence[PreferredAllocation]) -> list[tuple[str, ...]]:
        self.calls.append(("preferred", containers[0].available, containers[0].size))
        return [("c",)]

    async def allocate(self, containers: Sequence[tuple[str, ...]]) -> list[ContainerAllocation]:
        self.calls.append(("allocate", *containers))
        return [ContainerAllocation({"GPUS": ",".join(ids)}) for ids in containers]

    async def pre_start_container(self, devices: tuple[str, ...]) -> None:
        self.calls.append(("pre-start", devices))


def amounts(node: Node) -> tuple[str, str]:
    status = node.api.tree(kinds.NODE, "n1")["status"]
    return status["capacity"].get(GPU, ""), status["allocatable"].get(GPU, "")


def limits(count: int) -> dict[str, Any]:
    return {"resources": {"limits": {GPU: str(count)}, "requests": {GPU: str(count)}}}


async def test_devices_are_counted_given_and_taken_back(node: Node) -> None:
    async with node.agent() as agent:
        plugin = ScriptedPlugin(node.paths)
        await plugin.start()
        await until(lambda: amounts(node) == ("3", "3"))
        node.pod("p", "echo $GPUS; exit 0", restartPolicy="Never", container=limits(1))
        await until(lambda: node.phase("p") == "Succeeded")
        assert logs(node, "p") == ["c"]
        assert plugin.calls == [("preferred", ("a", "b", "c"), 1), ("allocate", ("c",)), ("pre-start", ("c",))]
        node.pod("two", container=limits(2))
        await until(lambda: node.phase("two") == "Running")
        status = node.status("two")["containerStatuses"][0]["allocatedResourcesStatus"]
        ids = [{"resourceID": i, "health": "Healthy"} for i in ("c", "a")]
        assert status == [{"name": GPU, "resources": ids}]
        node.pod("more", container=limits(2))
        await until(lambda: node.phase("more") == "Failed")
        refused = node.status("more")
        assert refused["reason"] == "UnexpectedAdmissionError"
        assert refused["message"] == (
            f"Pod was rejected: Allocate failed due to requested number of devices unavailable for {GPU}. "
            "Requested: 2, Available: 1, which is unexpected"
        )
        plugin.devices[0] = PluginDevice("a", "Unhealthy")
        plugin.changed.set()
        await until(lambda: amounts(node) == ("3", "2"))
        await plugin.stop()
        await until(lambda: amounts(node) == ("3", "0"))
    async with node.agent() as agent:
        # Zero until the plugin registers again; the running pod keeps what it has.
        await until(lambda: amounts(node) == ("0", "0"))
        assert [a.devices for a in agent.devices.pool.assignments] == [("c", "a")]
        again = ScriptedPlugin(node.paths)
        await again.start()
        await until(lambda: amounts(node) == ("3", "3"))
        await node.delete("two")
        await until(lambda: not agent.devices.pool.assignments)
        await again.stop()


async def test_wrong_registrations_are_refused_in_upstreams_words(node: Node) -> None:
    async with node.agent():
        plugin = ScriptedPlugin(node.paths)
        await plugin.start()
        with pytest.raises(CallError) as caught:
            await plugin.announce(version="v1alpha")
        text = 'requested API version "v1alpha" is not supported by kubelet. Supported version is ["v1beta1"]'
        assert str(caught.value) == f"rpc error: code = Unknown desc = {text}"
        with pytest.raises(CallError, match='the ResourceName "noslash" is invalid'):
            await plugin.announce(name="noslash")
        await plugin.stop()


async def test_a_socket_that_was_removed_comes_back(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "LOOK_SECONDS", 0.01)
    async with node.agent():
        plugin = ScriptedPlugin(node.paths)
        shutil.rmtree(node.paths.device_plugins_dir)
        await until(node.paths.kubelet_socket.exists)
        await plugin.start()
        await until(lambda: amounts(node) == ("3", "3"))
        await plugin.stop()


async def test_a_plugin_that_comes_back_with_the_same_devices_is_told_of_at_once(node: Node) -> None:
    async with node.agent() as agent:
        first = ScriptedPlugin(node.paths)
        await first.start()
        await until(lambda: amounts(node) == ("3", "3"))
        await first.stop()
        await until(lambda: amounts(node) == ("3", "0"))
        told: list[int] = []
        agent.devices.on_change = lambda: told.append(1)
        again = ScriptedPlugin(node.paths)
        await again.start()
        await until(lambda: bool(told))
        await again.stop()
