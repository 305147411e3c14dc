"""One agent per node folder: two would trust their own checkpoint each, and end each other's containers.

The lock goes with the process, however it dies. Upstream counterpart: the kubelet's --lock-file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import AsyncIterator
from pathlib import Path

from kubedra.base.clock import Clock

# An agent that is just ending gets this long.
WAIT_SECONDS = 5.0
_POLL_SECONDS = 0.1


class NodeTaken(Exception):
    """Another agent has the folder of the node; the text says which process."""


@contextlib.asynccontextmanager
async def node_lock(path: Path, node: str, clock: Clock) -> AsyncIterator[None]:
    """Hold the node's folder for the length of a block. Raises ``NodeTaken`` when another agent keeps it."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        left = WAIT_SECONDS
        while not _taken(handle):
            if left <= 0:
                holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
                raise NodeTaken(
                    f"node {node} has an agent already (process {holder}, {path.parent}): stop it first, "
                    "or choose another --data"
                )
            await clock.sleep(_POLL_SECONDS)
            left -= _POLL_SECONDS
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
