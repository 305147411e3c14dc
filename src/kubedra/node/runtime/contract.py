"""What the agent asks of a container runtime, and the plain records that pass between them.

Upstream counterpart: the CRI RuntimeService, reduced to what our two runtimes (process, bwrap) need. A runtime
starts one container at a time, finds its containers again after the agent was killed, and signals nothing that it
can't prove its own. Pod sandboxes do not exist here: a container carries all it needs.
"""

from __future__ import annotations

from typing import Protocol

import msgspec


class Mount(msgspec.Struct, frozen=True):
    """A folder or file of the host that the container sees at a path."""

    name: str
    source: str
    target: str
    read_only: bool = False


class DeviceNode(msgspec.Struct, frozen=True):
    """A device node of the host that the container may use."""

    host_path: str
    path: str
    permissions: str = "rwm"


class ContainerConfig(msgspec.Struct, frozen=True):
    """Everything that is needed to start one container once."""

    id: str
    pod_uid: str
    pod_name: str
    namespace: str
    name: str
    attempt: int
    command: tuple[str, ...]
    log_path: str
    env: tuple[tuple[str, str], ...] = ()
    image: str = ""
    working_dir: str = ""
    hostname: str = ""
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    stop_signal: int = 15
    own_network: bool = False
    termination_log: str = ""
    created: str = ""


class ContainerExit(msgspec.Struct, frozen=True):
    """How a container ended. ``reason`` is set by the runtime only where the exit code alone would mislead."""

    code: int
    signal: int = 0
    finished: str = ""
    message: str = ""
    reason: str = ""


class StartError(Exception):
    """A container could not be started: ``reason`` is for the waiting state, the text is for people."""

    def __init__(self, message: str, reason: str = "RunContainerError") -> None:
        super().__init__(message)
        self.reason = reason


class Container(Protocol):
    """A container that was started, now or by an earlier agent."""

    @property
    def config(self) -> ContainerConfig:
        """What it was started with (without its environment when it was found again)."""

    @property
    def started(self) -> str:
        """When its command was started, RFC 3339."""

    @property
    def exit(self) -> ContainerExit | None:
        """How it ended; None while it runs."""

    async def wait(self) -> ContainerExit:
        """Waits for the end; may be called often and cancelled at will."""

    def terminate(self) -> bool:
        """Asks the command to stop (its stop signal); False when there is nothing to signal."""

    def kill(self) -> bool:
        """Kills the command and all it left; False when there is nothing to signal."""


class Runtime(Protocol):
    """Starts containers and finds them again."""

    @property
    def name(self) -> str:
        """``process`` or ``bwrap``."""

    @property
    def version(self) -> str:
        """Goes into node.status.nodeInfo.containerRuntimeVersion, ``NAME://VERSION``."""

    def remarks(self, config: ContainerConfig) -> tuple[tuple[str, str], ...]:
        """What a person should know before this container starts: (event reason, sentence)."""

    async def start(self, config: ContainerConfig) -> Container:
        """Starts a container; returns once its command was executed. Raises StartError."""

    async def execute(self, container: Container, command: tuple[str, ...], timeout: float) -> tuple[int, str]:
        """Runs a command in a running container: exit code and output. Raises TimeoutError, StartError."""

    def find(self, pod_uid: str) -> tuple[Container, ...]:
        """All containers of a pod that left a trace, running or ended, oldest first."""

    def forget(self, container: Container) -> None:
        """Drops the trace of a container that has ended."""

    def detach(self) -> None:
        """Stops looking at the containers; they run on."""
