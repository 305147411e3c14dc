"""Who is this process really: pid, start time and boot id together, and signals that can't hit a stranger.

A pid alone is worthless once the agent was away: another program may have it. Here a process is named by pid, start
time (clock ticks since boot) and boot id, and every signal goes through a handle (pidfd) that was opened *before*
the name was checked, so nothing can slip in between. Whatever can't be proven ours is left alone. A zombie counts
as ended. Upstream counterpart: what containerd-shim gives the kubelet for free.
"""

from __future__ import annotations

import functools
import os
import signal
from pathlib import Path

import msgspec

ID_VARIABLE = "KUBEDRA_CONTAINER_ID"
_ENDED_STATES = frozenset("ZXx")
_SWEEP_ROUNDS = 20
_EXEC_ROUNDS = 2


class ProcessIdentity(msgspec.Struct, frozen=True):
    """A process for good: equal identities are the same process."""

    pid: int
    start: str
    boot: str


def folder_id(path: Path) -> str:
    """Names a folder for good: moved it is the same, a copy of it is another."""
    found = path.stat()
    return f"{found.st_dev}:{found.st_ino}"


@functools.cache
def boot_id() -> str:
    """The id of this boot; identities of another boot name nothing that runs."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _stat(pid: int) -> tuple[str, str] | None:
    """State letter and start time, None where there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return fields[0], fields[19]


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of a process that exists now, zombies included."""
    found = _stat(pid)
    return ProcessIdentity(pid, found[1], boot_id()) if found else None


def is_running(identity: ProcessIdentity) -> bool:
    """Whether exactly this process still runs; a zombie does not."""
    if identity.boot != boot_id():
        return False
    found = _stat(identity.pid)
    return found is not None and found[1] == identity.start and found[0] not in _ENDED_STATES


def open_handle(identity: ProcessIdentity) -> int | None:
    """A pidfd of exactly this process, None when it has ended. The caller closes it."""
    if identity.boot != boot_id():
        return None
    try:
        handle = os.pidfd_open(identity.pid)
    except OSError:
        return None
    # The handle was taken first: if the name still fits now, the handle is of the process we mean.
    if is_running(identity):
        return handle
    os.close(handle)
    return None


def send_signal(identity: ProcessIdentity, number: int) -> bool:
    """Signals exactly this process; False when it has ended and nothing was signalled."""
    handle = open_handle(identity)
    if handle is None:
        return False
    try:
        signal.pidfd_send_signal(handle, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def kill_marked(container_id: str) -> int:
    """Kills every process that carries this container's id in its environment; how many were found.

    For what a container left behind when its supervisor was killed: the id is random, so who carries it is ours.
    """
    marker = f"{ID_VARIABLE}={container_id}".encode()
    killed = 0
    for turn in range(_SWEEP_ROUNDS):
        again = False
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                handle = os.pidfd_open(int(entry.name))
            except OSError:
                continue
            try:
                environ = (entry / "environ").read_bytes()
                if marker in environ.split(b"\0"):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    killed += 1
                    again = True
                elif turn < _EXEC_ROUNDS and not environ and (entry / "statm").read_bytes()[:2] != b"0 ":
                    again = True  # in the middle of an exec: look again
            except OSError:
                continue
            finally:
                os.close(handle)
        if not again:
            break
    return killed
