"""Ending what a cluster started: processes that are proven ours, and the containers of its nodes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from kubedra.base.clock import Clock
from kubedra.node.runtime.identity import ProcessIdentity, is_running, send_signal

STOP_SECONDS = 10.0


async def end_process(identity: ProcessIdentity, clock: Clock, seconds: float = STOP_SECONDS) -> None:
    """End a process that is proven to be the one that was meant: a polite signal first, then a hard one."""
    if not is_running(identity):
        return
    send_signal(identity, signal.SIGTERM)
    end = clock.monotonic() + seconds
    while is_running(identity) and clock.monotonic() < end:
        await clock.sleep(0.02)
    if is_running(identity):
        send_signal(identity, signal.SIGKILL)
        while is_running(identity):
            await clock.sleep(0.02)


async def end_containers(data_dir: Path, clock: Clock, seconds: float = 5.0) -> None:
    """End all containers that the nodes of a data folder started, wherever their agent is."""
    from kubedra.node.runtime.process import ProcessRuntime

    running_ones = []
    runtimes = []
    for pods_dir in sorted((data_dir / "nodes").glob("*/pods")):
        runtime = ProcessRuntime(pods_dir)
        runtimes.append(runtime)
        for folder in pods_dir.iterdir():
            running_ones += [c for c in runtime.find(folder.name) if c.exit is None]
    for container in running_ones:
        container.terminate()
    waits: list[Awaitable[Any]] = [c.wait() for c in running_ones]
    if waits:
        try:
            await asyncio.wait_for(asyncio.gather(*waits), seconds)
        except TimeoutError:
            for container in running_ones:
                if container.exit is None:
                    container.kill()
            await asyncio.gather(*(c.wait() for c in running_ones))
    for runtime in runtimes:
        runtime.detach()
