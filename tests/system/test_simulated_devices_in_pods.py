"""Server, agent and simulated drivers together: a pod's process sees the devices of its claim, and they come back."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import codec, kinds
from kubedra.client.clock import RealClock
from kubedra.client.https import HttpsClient
from kubedra.client.kubeconfig import load
from kubedra.drivers.simulated import SimulatedDriver, SimulatedDriverSettings
from kubedra.drivers.simulated.fleet import parse
from kubedra.node.agent import Agent
from kubedra.node.settings import AgentSettings
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings

pytestmark = pytest.mark.system

NODE = "gpu-0"
FLEET = """\
kind: Fleet
drivers: {nvidia: gpu.example.com}
pools:
- name: gpu
  devices:
  - {card: H100, count: 4, numaNodes: 2}
  - {card: L4, count: 2, servedBy: plugin, resource: example.com/gpu}
"""


class Node:
    """One node with its agent and drivers, and the API."""

    def __init__(self, client: HttpsClient) -> None:
        self.client = client

    async def run_pod(self, name: str, spec: dict[str, Any]) -> None:
        pod = {"metadata": {"name": name}, "spec": {"nodeName": NODE, "restartPolicy": "Never", **spec}}
        await self.client.create(kinds.POD, pod, "default")

    async def phase(self, name: str, *phases: str) -> Any:
        while (pod := await self.client.get(kinds.POD, name, "default")).status.phase not in phases:
            await asyncio.sleep(0.05)
        return pod

    async def log(self, folder: Path) -> str:
        return "".join(path.read_text() for path in sorted(folder.rglob("*.log")))


@pytest.fixture
async def node() -> AsyncIterator[tuple[Node, Path]]:
    with tempfile.TemporaryDirectory(prefix="kd-") as name:
        folder = Path(name)
        server = Server(ServerSettings(data_dir=folder / "server", port=0))
        await server.start()
        client = HttpsClient(load([folder / "server" / "kubeconfig"]))
        data, run = folder / "data", folder / "run"
        agent = Agent(client, AgentSettings(node=NODE, data_dir=data, run_dir=run), RealClock())
        settings = SimulatedDriverSettings(fleet=parse(FLEET), data_dir=data, run_dir=run)
        drivers = SimulatedDriver(client, settings, RealClock())
        tasks = [asyncio.create_task(agent.run()), asyncio.create_task(drivers.run())]
        try:
            await asyncio.wait_for(agent.ready.wait(), 20)
            yield Node(client), folder
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await client.close()
            await server.stop()


async def test_a_process_sees_the_devices_of_its_claim(node: tuple[Node, Path]) -> None:
    cluster, folder = node
    client = cluster.client
    while not (await client.list(kinds.RESOURCE_SLICE)).items:
        await asyncio.sleep(0.02)
    spec = {"devices": {"requests": [{"name": "pair", "exactly": {"deviceClassName": "gpu", "count": 2}}]}}
    claim = await client.create(kinds.RESOURCE_CLAIM, {"metadata": {"name": "c"}, "spec": spec}, "default")
    results = [
        {"driver": "gpu.example.com", "pool": NODE, "device": device, "request": "pair"}
        for device in ("gpu-0", "gpu-1")
    ]
    pod = {
        "resourceClaims": [{"name": "gpus", "resourceClaimName": "c"}],
        "containers": [
            {
                "name": "main",
                "image": "none",
                "command": ["sh", "-c", "env | grep -e KUBEDRA_DEVICE -e NVIDIA | sort"],
                "resources": {"claims": [{"name": "gpus"}]},
            }
        ],
    }
    # The pod is bound by hand here, so its reservation is written by hand too: first the pod, for its uid.
    created = {"metadata": {"name": "p"}, "spec": {"schedulerName": "none", "restartPolicy": "Never", **pod}}
    uid = (await client.create(kinds.POD, created, "default")).metadata.uid
    status = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": uid}],
    }
    await client.patch(kinds.RESOURCE_CLAIM, "c", {"status": status}, "default", subresource="status")
    target = {"kind": "Node", "name": NODE}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target}
    path = kinds.POD.path("default", "p", "binding")
    answer = await client.request(
        "POST", path, body=codec.encode(binding), headers={"content-type": "application/json"}
    )
    assert answer.status == 201
    await cluster.phase("p", "Succeeded", "Failed")
    log = await cluster.log(folder / "data")
    assert "KUBEDRA_DEVICE_PAIR_0=gpu.example.com/gpu-0/gpu-0" in log
    assert "KUBEDRA_DEVICE_PAIR_1=gpu.example.com/gpu-0/gpu-1" in log
    assert log.count("GPU-") == 2
    found = await client.get(kinds.RESOURCE_CLAIM, "c", "default")
    assert {entry.device for entry in found.status.devices} == {"gpu-0", "gpu-1"}
    assert found.metadata.uid == claim.metadata.uid
    assert not list((folder / "data").rglob("cdi/*.json"))


async def test_cards_behind_a_device_plugin_are_counted_and_handed_out(node: tuple[Node, Path]) -> None:
    cluster, folder = node
    while (await cluster.client.get(kinds.NODE, NODE)).status.allocatable.get("example.com/gpu") != "2":
        await asyncio.sleep(0.05)
    container = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", "env | grep -e KUBEDRA_DEVICE -e NVIDIA"],
        "resources": {"limits": {"example.com/gpu": "1"}},
    }
    await cluster.run_pod("old", {"containers": [container]})
    await cluster.phase("old", "Succeeded")
    assert "KUBEDRA_DEVICE_GPU_0=example.com/gpu/gpu-0/gpu-0" in await cluster.log(folder / "data")
