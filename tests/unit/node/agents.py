"""An agent on a fake API, for tests: real processes, real sockets, short waits."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from kubedra.api import kinds
from kubedra.node.agent import Agent
from kubedra.node.runtime.identity import ProcessIdentity, send_signal
from kubedra.node.settings import AgentSettings, Waits
from tests.unit.node.fake_api import FakeApi, Tree
from tests.unit.node.scripted_driver import node_paths, until

WAITS = Waits(
    plugin_scan=0.01,
    plugin_retry_first=0.05,
    prepare_retry_first=0.02,
    prepare_retry_last=0.1,
    restart_first=0.05,
    restart_last=0.2,
    log_follow=0.01,
    slice_wipe=0.2,
)


class Node:
    """One node for one test; the agent can be stopped and started again on the same folders."""

    def __init__(self, tmp_path: Path, **settings: Any) -> None:
        self.api = FakeApi()
        self.paths = node_paths(tmp_path)
        self.settings = AgentSettings(
            "n1", self.paths.data_dir, self.paths.run_dir, waits=WAITS, cpu="4", memory="8Gi", **settings
        )

    @contextlib.asynccontextmanager
    async def agent(self) -> AsyncIterator[Agent]:
        """Runs an agent; leaving stops it as a kill would: everything on the node stays."""
        agent = Agent(self.api, self.settings)
        task = asyncio.create_task(agent.run())
        ready = asyncio.create_task(agent.ready.wait())
        await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        try:
            yield agent
        finally:
            ready.cancel()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def pod(self, name: str, script: str = "sleep 60", **spec: Any) -> Tree:
        """Creates a pod that is bound to the node."""
        container = {"name": "main", "command": ["/bin/sh", "-c", script], **spec.pop("container", {})}
        tree = {
            "metadata": {"name": name, "generation": 1, **spec.pop("metadata", {})},
            "spec": {
                "nodeName": "n1",
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 1,
                "containers": [container],
                **spec,
            },
        }
        return self.api.put(kinds.POD, tree, "default")

    def status(self, name: str) -> Tree:
        """The pod's status; empty when the pod is gone."""
        tree = self.api.objects.get(("pods", "default", name), {})
        status: Tree = tree.get("status", {})
        return status

    def phase(self, name: str) -> str:
        """The pod's phase."""
        return str(self.status(name).get("phase", ""))

    def state(self, name: str, index: int = 0) -> Tree:
        """The state of one of the pod's containers."""
        statuses = self.status(name).get("containerStatuses") or [{}]
        found: Tree = statuses[index].get("state", {})
        return found

    async def delete(self, name: str, grace: int = 1) -> None:
        """Asks for the pod's deletion, as the API server does it."""
        tree = dict(self.api.objects[("pods", "default", name)])
        tree["metadata"] = {
            **tree["metadata"],
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": grace,
        }
        self.api.put(kinds.POD, tree, "default")

    async def until_gone(self, name: str) -> None:
        """Waits until the pod is removed from the API and its files from the node."""
        await until(lambda: ("pods", "default", name) not in self.api.objects)
        await until(lambda: not [p for p in self.paths.pods_dir.iterdir() if p.is_dir()])

    def close(self) -> None:
        """Ends what still runs in containers, and removes the sockets' folder."""
        end_containers(self.paths.pods_dir)
        shutil.rmtree(self.paths.run_dir, ignore_errors=True)


def end_containers(pods_dir: Path) -> None:
    """Ends all containers below a folder: agents leave them running, tests must not."""
    for record in pods_dir.glob("*/containers/*/*/supervisor"):
        send_signal(msgspec.json.decode(record.read_bytes(), type=ProcessIdentity), signal.SIGUSR1)
