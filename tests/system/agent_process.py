"""Runs one agent in a process of its own, to be killed: ``python -m tests.system.agent_process DATA RUN NODE``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from kubedra.client.https import HttpsClient
from kubedra.client.kubeconfig import load
from kubedra.node.agent import Agent
from kubedra.node.settings import AgentSettings, Waits

WAITS = Waits(
    plugin_scan=0.02,
    prepare_retry_first=0.05,
    prepare_retry_last=0.5,
    restart_first=0.1,
    restart_last=0.5,
    lease_renew=2.0,
)


async def main(data: Path, run: Path, node: str) -> None:
    """Until killed."""
    client = HttpsClient(load([data / "pki" / "agents.kubeconfig"]))
    await Agent(client, AgentSettings(node, data, run, waits=WAITS, cpu="8", memory="8Gi")).run()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
