"""The simulated driver as a real process against the real server: it dies in the middle and nothing is lost.

The test plays the agent: it registers the plugin, prepares and unprepares, and kills the driver with SIGKILL.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.cdi.folder import SpecFolder
from kubedra.client.https import HttpsClient
from kubedra.client.kubeconfig import load
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings
from kubedra.wire.dra import Claim, DraClient
from kubedra.wire.paths import NodePaths
from kubedra.wire.registration import RegistrationClient
from kubedra.wire.transport import CallError, Channel

pytestmark = pytest.mark.system

DRIVER = "gpu.example.com"
NODE = "dra-0"
ROOT = Path(__file__).resolve().parents[2]
FLEET = """\
kind: Fleet
drivers: {nvidia: gpu.example.com}
pools:
- name: dra
  devices: [{card: H100, count: 4, numaNodes: 2}]
- name: hollow
  count: 20
  hollow: true
  devices: [{card: A100-80G, count: 8}]
"""


class Cluster:
    """A server, a folder, and a driver process that can be killed."""

    def __init__(self, folder: Path, client: HttpsClient) -> None:
        self.folder = folder
        self.client = client
        self.paths = NodePaths(folder / "data", folder / "run", NODE)
        self.process: asyncio.subprocess.Process | None = None

    async def start_driver(self) -> None:
        (self.folder / "fleet.yaml").write_text(FLEET)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "kubedra.drivers.simulated",
            *("--fleet", str(self.folder / "fleet.yaml")),
            *("--data", str(self.folder / "data")),
            *("--run-dir", str(self.folder / "run")),
            *("--kubeconfig", str(self.folder / "server" / "kubeconfig")),
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        )

    async def kill_driver(self) -> None:
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def slices(self) -> dict[str, Any]:
        found = (await self.client.list(kinds.RESOURCE_SLICE)).items
        return {entry.spec.pool.name: entry for entry in found}

    async def wait_slices(self, count: int = 21) -> dict[str, Any]:
        while len(found := await self.slices()) != count:
            await asyncio.sleep(0.05)
        return found

    async def allocate(self, name: str, device: str, parameters: dict[str, Any] | None = None) -> Claim:
        """Create a claim and write the allocation that a scheduler would."""
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
        claim = await self.client.create(kinds.RESOURCE_CLAIM, {"metadata": {"name": name}, "spec": spec}, "default")
        result = {"driver": DRIVER, "pool": NODE, "device": device, "request": "gpu"}
        config = [{"source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": parameters}}] if parameters else []
        status = {"allocation": {"devices": {"results": [result], "config": config}}}
        await self.client.patch(kinds.RESOURCE_CLAIM, name, {"status": status}, "default", subresource="status")
        return Claim("default", claim.metadata.uid, name)

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[DraClient]:
        """Register the plugin as an agent does and speak to its service."""
        socket = self.paths.registration_socket(DRIVER)
        channel = Channel(socket)
        try:
            assert await channel.wait_connected(30)
            registration = RegistrationClient(channel)
            info = await registration.get_info(timeout=5)
            await registration.notify(True, "", timeout=5)
        finally:
            await channel.close()
        service = Channel(Path(info.endpoint))
        try:
            yield DraClient(service, "v1")
        finally:
            await service.close()

    def claims_in_checkpoint(self) -> dict[str, str]:
        content = json.loads((self.paths.driver_data_dir / DRIVER / "checkpoint.json").read_bytes())
        return {claim["name"]: claim["state"] for claim in json.loads(content["data"])["claims"]}


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="kd-") as name:
        folder = Path(name)
        server = Server(ServerSettings(data_dir=folder / "server", port=0))
        await server.start()
        client = HttpsClient(load([folder / "server" / "kubeconfig"]))
        cluster = Cluster(folder, client)
        try:
            for node in (NODE, *(f"hollow-{index}" for index in range(20))):
                await client.create(kinds.NODE, {"metadata": {"name": node}})
            await cluster.start_driver()
            yield cluster
        finally:
            if cluster.process is not None and cluster.process.returncode is None:
                cluster.process.terminate()
                assert await cluster.process.wait() == 0
            await client.close()
            await server.stop()


async def test_a_fleet_is_published_and_comes_back_after_a_wipe(cluster: Cluster) -> None:
    slices = await cluster.wait_slices()
    assert len(slices[NODE].spec.devices) == 4 and len(slices["hollow-7"].spec.devices) == 8
    assert slices[NODE].spec.devices[0].capacity["memory"].value == "81559Mi"
    assert slices[NODE].metadata.owner_references[0].name == NODE
    before = {entry.metadata.uid for entry in slices.values()}
    await cluster.client.delete_collection(kinds.RESOURCE_SLICE, field_selector=f"spec.nodeName={NODE}")
    while not (now := await cluster.slices()).get(NODE) or now[NODE].metadata.uid in before:
        await asyncio.sleep(0.02)
    assert len(before & {entry.metadata.uid for entry in now.values()}) == 20
    await cluster.kill_driver()
    await cluster.start_driver()
    async with cluster.agent():
        assert {entry.metadata.resource_version for entry in (await cluster.slices()).values()} == {
            entry.metadata.resource_version for entry in now.values()
        }


async def test_a_driver_killed_while_it_prepares_loses_nothing_and_gives_nothing_twice(cluster: Cluster) -> None:
    await cluster.wait_slices()
    slow = await cluster.allocate("slow", "gpu-0", {"prepareSeconds": 1})
    rival = await cluster.allocate("rival", "gpu-0")
    async with cluster.agent() as agent:
        call = asyncio.create_task(agent.prepare([slow], timeout=45))
        checkpoint = cluster.paths.driver_data_dir / DRIVER / "checkpoint.json"
        while not checkpoint.exists():
            await asyncio.sleep(0.01)
        await cluster.kill_driver()
        with pytest.raises(CallError):
            await call
    assert cluster.claims_in_checkpoint() == {"slow": "preparing"}

    await cluster.start_driver()
    async with cluster.agent() as agent:
        refused = await agent.prepare([rival], timeout=45)
        assert "is still held by claim default/slow" in refused[rival.uid].error
        answers = await agent.prepare([slow], timeout=45)
        assert answers[slow.uid].error == ""
        assert await agent.prepare([slow], timeout=45) == answers
        cdi = SpecFolder(cluster.paths.cdi_dir)
        env = cdi.resolve(answers[slow.uid].devices[0].cdi_device_ids).env
        assert f"KUBEDRA_DEVICE_GPU_0={DRIVER}/{NODE}/gpu-0" in env
        while not (await cluster.client.get(kinds.RESOURCE_CLAIM, "slow", "default")).status.devices:
            await asyncio.sleep(0.02)
        await cluster.kill_driver()

    await cluster.start_driver()
    async with cluster.agent() as agent:
        assert await agent.prepare([slow], timeout=45) == answers
        assert await agent.unprepare([slow], timeout=45) == {slow.uid: ""}
        assert (await agent.prepare([rival], timeout=45))[rival.uid].error == ""
        assert await agent.unprepare([rival], timeout=45) == {rival.uid: ""}
        assert cluster.claims_in_checkpoint() == {} and cdi.names() == set()
