"""Runs one more command beside a container's own: for exec probes and lifecycle hooks.

It gets the environment, the folder and, inside bubblewrap, the namespaces of the container's process. It carries
the container's id like everything else in it, so it does not outlive the container.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from pathlib import Path

from kubedra.node.runtime.contract import StartError
from kubedra.node.runtime.identity import is_running
from kubedra.node.runtime.launcher import SupervisedContainer

OUTPUT_LIMIT = 10 * 1024
START_TRIES = 40
START_PAUSE = 0.025


async def command_pid(container: SupervisedContainer, depth: int) -> int:
    """The pid of the container's command, so many generations below the supervisor's child; raises StartError."""
    for _ in range(START_TRIES):
        child = container.child
        if child is None or not is_running(child):
            break
        pid: int | None = child.pid
        for _ in range(depth):
            pid = _first_child(pid) if pid is not None else None
        if pid is not None:
            return pid
        # bubblewrap is still setting up the namespaces.
        await asyncio.sleep(START_PAUSE)
    raise StartError(f"container {container.config.name} is not running")


def _first_child(pid: int) -> int | None:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


async def execute(
    container: SupervisedContainer, command: tuple[str, ...], timeout: float, *, depth: int = 0
) -> tuple[int, str]:
    """Exit code and output of a command in a container; raises TimeoutError and StartError."""
    pid = await command_pid(container, depth)
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError as error:
        raise StartError(f"container {container.config.name} is not running") from error
    env = dict(part.split(b"=", 1) for part in raw.split(b"\0") if b"=" in part)
    argv = list(command)
    cwd = f"/proc/{pid}/cwd"
    if depth:
        enter = shutil.which("nsenter")
        if enter is None:
            raise StartError("a command in a container needs nsenter (package util-linux)")
        argv = [enter, "-a", "-t", str(pid), "-r", "-w", "--", *argv]
        cwd = "/"
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise StartError(f"{command[0]}: {error.strerror}") from error
    try:
        output, _ = await asyncio.wait_for(process.communicate(), timeout)
    except (TimeoutError, asyncio.CancelledError):
        # Its own session: whatever it started goes with it. It is our unreaped child, so the group is its own.
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        raise
    return process.returncode or 0, output[:OUTPUT_LIMIT].decode(errors="replace")
