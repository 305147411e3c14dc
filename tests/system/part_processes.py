"""The parts of a cluster, each a process of its own, to be killed and started again by tests."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from kubedra.api.errors import ApiError
from kubedra.client.https import HttpsClient
from kubedra.client.kubeconfig import load

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PartProcesses:
    """``kubedra server``, ``controllers``, ``scheduler``, an agent per node, and a driver of the fleet."""

    def __init__(self, folder: Path, run_dir: Path, fleet: Path, nodes: tuple[str, ...]) -> None:
        self.data = folder / "data"
        self.run_dir = run_dir
        self.logs = folder
        shared = ["--data", str(self.data), "--run-dir", str(run_dir)]
        self.commands = {
            "server": ["server", "--data", str(self.data), "--port", str(free_port())],
            "controllers": ["controllers", *self._as("controllers")],
            "scheduler": ["scheduler", *self._as("scheduler")],
            "driver": ["driver", "simulated", "--fleet", str(fleet), *shared, *self._as("drivers")],
        }
        for node in nodes:
            size = ["--cpu", "64", "--memory", "64Gi"]
            self.commands[f"agent-{node}"] = ["agent", "--node", node, *shared, *size, *self._as("agents")]
        # What every command is started under: a tracer, for one.
        self.prefix: tuple[str, ...] = ()
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def _as(self, part: str) -> list[str]:
        return ["--kubeconfig", str(self.data / "pki" / f"{part}.kubeconfig")]

    def start(self, part: str) -> None:
        """Start a part."""
        with (self.logs / f"{part}.log").open("ab") as out:
            self.running[part] = subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "kubedra", *self.commands[part]],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
                cwd=ROOT,
            )

    async def start_all(self) -> HttpsClient:
        """Start the server, then everything else; an administrator's client."""
        self.start("server")
        client = await self.client()
        for part in self.commands:
            if part != "server":
                self.start(part)
        return client

    async def client(self) -> HttpsClient:
        """An administrator's client, once the server answers."""
        path = self.data / "kubeconfig"
        while True:
            self.check_alive()
            if path.exists():
                client = HttpsClient(load([path]))
                try:
                    if (await client.request("GET", "/readyz")).status == 200:
                        return client
                except (ConnectionError, ApiError):
                    pass
                await client.close()
            await asyncio.sleep(0.05)

    def kill(self, part: str) -> None:
        """Kill a part without a word to it; it must have been alive."""
        self.check_alive()
        process = self.running.pop(part)
        process.kill()
        process.wait()

    def check_alive(self) -> None:
        """No part may end by itself, whatever happens to the others."""
        for part, process in self.running.items():
            assert process.poll() is None, f"{part} ended by itself with {process.returncode}: {self.said(part)}"

    def said(self, part: str, limit: int = 3000) -> str:
        """The end of what a part wrote."""
        return (self.logs / f"{part}.log").read_text(errors="replace")[-limit:]

    def stop_all(self) -> dict[str, int]:
        """End all parts politely, the server last; their exit codes."""
        codes = {}
        for part in sorted(self.running, key=lambda name: name == "server"):
            process = self.running.pop(part)
            process.send_signal(signal.SIGTERM)
            try:
                codes[part] = process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                codes[part] = process.wait()
        return codes
