"""The agent is killed with SIGKILL, at bad moments too: containers go on, are found again, and nothing leaks."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.api.core_v1 import Pod
from kubedra.api.errors import ApiError
from kubedra.node.claims.checkpoint import ClaimCheckpoint
from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings
from kubedra.wire.paths import NodePaths
from tests.unit.node.agents import end_containers
from tests.unit.node.scripted_driver import ScriptedDriver

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


class Rig:
    """A server in this process, an agent in another one, a driver on the node's sockets."""

    def __init__(self, folder: Path) -> None:
        self.run_dir = Path(tempfile.mkdtemp(prefix="kr"))
        self.paths = NodePaths(folder, self.run_dir, "n1")
        self.server = Server(ServerSettings(folder, port=0))
        self.client = InProcessClient(self.server)
        self.agent: subprocess.Popen[bytes] | None = None
        self.log = folder / "agent.log"

    async def start(self) -> None:
        await self.server.start()
        self.paths.create()
        self.driver = ScriptedDriver(self.paths)
        await self.driver.start()

    async def start_agent(self) -> None:
        with self.log.open("ab") as out:
            self.agent = subprocess.Popen(
                [sys.executable, "-m", "tests.system.agent_process", str(self.paths.data_dir), str(self.run_dir), "n1"],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
                stdout=out,
                stderr=out,
            )
        await self.until(self.node_ready)

    async def node_ready(self) -> bool:
        assert self.agent is not None
        assert self.agent.poll() is None, self.log.read_text()
        try:
            await self.client.get(kinds.NODE, "n1")
            return True
        except ApiError:
            return False

    def kill_agent(self) -> None:
        assert self.agent is not None
        self.agent.send_signal(signal.SIGKILL)
        self.agent.wait()

    async def stop(self) -> None:
        if self.agent is not None and self.agent.poll() is None:
            self.kill_agent()
        end_containers(self.paths.pods_dir)
        await self.driver.stop()
        await self.server.stop()
        shutil.rmtree(self.run_dir, ignore_errors=True)

    async def until(self, condition: Any, seconds: float = 30.0) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not await condition():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            said = self.log.read_text()
            raise AssertionError(f"{condition.__name__} did not become true; the agent said:\n{said}") from None

    async def create(self, name: str, script: str, claim: str = "", **spec: Any) -> Pod:
        container: dict[str, Any] = {"name": "main", "image": "none", "command": ["/bin/sh", "-c", script]}
        container["env"] = [{"name": "RIG", "value": str(self.run_dir)}]
        if claim:
            container["resources"] = {"claims": [{"name": "gpu"}]}
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
        spec = {"nodeName": "n1", "terminationGracePeriodSeconds": 1, "containers": [container], **spec}
        return await self.client.create(kinds.POD, {"metadata": {"name": name}, "spec": spec}, "default")

    async def allocate(self, name: str, pod: Pod) -> None:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}}
        claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        await self.client.create(kinds.RESOURCE_CLAIM, claim, "default")
        result = {"request": "gpu", "driver": self.driver.name, "pool": "n1", "device": f"dev-{name}"}
        status = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}],
        }
        await self.client.patch(kinds.RESOURCE_CLAIM, name, {"status": status}, "default", subresource="status")

    async def pod(self, name: str) -> Pod | None:
        try:
            return await self.client.get(kinds.POD, name, "default")
        except ApiError:
            return None

    async def phase(self, name: str) -> str:
        pod = await self.pod(name)
        return pod.status.phase if pod is not None else ""

    def processes(self) -> list[int]:
        """Everything that runs in containers of this rig."""
        found = []
        mark = f"RIG={self.run_dir}".encode()
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    async def nothing_left(self) -> bool:
        folders = [path for path in self.paths.pods_dir.iterdir() if path.is_dir()]
        claims = ClaimCheckpoint(self.paths.checkpoint_dir).load()
        return not folders and not claims and not self.processes()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path)
    await made.start()
    yield made
    await made.stop()


async def test_containers_outlive_the_agent(rig: Rig) -> None:
    await rig.start_agent()
    held = await rig.create("held", "exec sleep 300", claim="c")
    await rig.allocate("c", held)
    await rig.create("ends", "while [ ! -e go ]; do sleep 0.05; done; echo bye; exit 7", restartPolicy="Never")

    async def both_run() -> bool:
        return await rig.phase("held") == await rig.phase("ends") == "Running"

    await rig.until(both_run)
    before = await rig.pod("held")
    assert before is not None
    rig.kill_agent()

    (work,) = [p for p in rig.paths.pods_dir.glob("*/containers/main/0/work") if str(held.metadata.uid) not in str(p)]
    (work / "go").write_text("")
    while not (work.parent / "exit").exists():
        await asyncio.sleep(0.02)
    prepared = rig.driver.calls.count(("prepare", "c"))
    await rig.start_agent()

    async def ended() -> bool:
        return await rig.phase("ends") == "Failed"

    await rig.until(ended)
    pod = await rig.pod("ends")
    assert pod is not None
    state = pod.status.container_statuses[0].state
    assert state is not None and state.terminated is not None
    assert state.terminated.exit_code == 7
    after = await rig.pod("held")
    assert after is not None
    assert after.status.container_statuses[0].container_id == before.status.container_statuses[0].container_id
    assert after.status.container_statuses[0].restart_count == 0
    assert rig.driver.calls.count(("prepare", "c")) == prepared
    for name in ("held", "ends"):
        await rig.client.delete(kinds.POD, name, "default")
    await rig.until(rig.nothing_left)
    assert ("unprepare", "c") in rig.driver.calls


async def test_a_kill_while_the_driver_prepares_is_made_good(rig: Rig) -> None:
    rig.driver.gate.clear()
    await rig.start_agent()
    pod = await rig.create("p", "exec sleep 300", claim="c")
    await rig.allocate("c", pod)

    async def asked() -> bool:
        return ("prepare", "c") in rig.driver.calls

    await rig.until(asked)
    (state,) = ClaimCheckpoint(rig.paths.checkpoint_dir).load()
    assert state.drivers == {rig.driver.name: ()}
    rig.kill_agent()
    rig.driver.gate.set()
    await rig.start_agent()

    async def runs() -> bool:
        return await rig.phase("p") == "Running"

    await rig.until(runs)
    assert rig.driver.calls.count(("prepare", "c")) >= 2
    await rig.client.delete(kinds.POD, "p", "default")
    await rig.until(rig.nothing_left)


async def test_nothing_leaks_over_random_kills(rig: Rig) -> None:
    chance = random.Random(20)
    alive: list[str] = []
    await rig.start_agent()
    for number in range(24):
        if number in (5, 11, 17, 22):
            rig.kill_agent()
            await rig.start_agent()
        name = f"p{number}"
        script = chance.choice(["exec sleep 300", "exit 0", "exit 1", "sleep 0.1; exit 3"])
        policy = chance.choice(["Always", "Never", "OnFailure"])
        pod = await rig.create(name, script, claim=f"c{number}", restartPolicy=policy)
        await rig.allocate(f"c{number}", pod)
        alive.append(name)
        await asyncio.sleep(chance.random() * 0.1)
        if chance.random() < 0.5:
            victim = alive.pop(chance.randrange(len(alive)))
            grace = chance.choice([None, 0])
            await rig.client.delete(kinds.POD, victim, "default", grace_period_seconds=grace)
    rig.kill_agent()
    for name in alive:
        await rig.client.delete(kinds.POD, name, "default", grace_period_seconds=chance.choice([1, 0]))
    await rig.start_agent()
    await rig.until(rig.nothing_left)
    prepared = {call[1] for call in rig.driver.calls if call[0] == "prepare"}
    unprepared = {call[1] for call in rig.driver.calls if call[0] == "unprepare"}
    assert prepared <= unprepared
