"""The default runtime: the container's command as a plain child process in its own session.

It needs nothing installed. There is no isolation and no image: the command runs on the host as the agent's user,
and an event says so. Volumes can't be mounted, so their folders are named in the environment:
``KUBEDRA_VOLUME_<NAME>`` for the pod's volumes,
``KUBEDRA_MOUNT_<PATH>`` for what a driver asks to be mounted at PATH. Upstream has no counterpart.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
from pathlib import Path

from kubedra.node.runtime.contract import Container, ContainerConfig, StartError
from kubedra.node.runtime.executing import execute
from kubedra.node.runtime.launcher import Launcher, Spec, SupervisedContainer

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def variable(prefix: str, name: str) -> str:
    """The environment variable that names a folder: upper case, everything else an underscore."""
    return f"{prefix}_{re.sub('[^A-Za-z0-9]', '_', name.strip('/')).upper()}"


def no_command(config: ContainerConfig, runtime: str) -> StartError:
    """Why a container without a command can't start here."""
    return StartError(
        f"container {config.name} has no command, and the {runtime} runtime does not run images "
        f"({config.image or 'none named'}): set spec.containers[].command",
        "CreateContainerConfigError",
    )


class ProcessRuntime:
    """Runs commands as processes of the host."""

    name = "process"

    def __init__(self, pods_dir: Path, *, log_limit: int = 10 << 20) -> None:
        self._launcher = Launcher(pods_dir, log_limit)

    @property
    def version(self) -> str:
        """The kernel is all there is to it."""
        return f"process://{platform.release()}"

    def remarks(self, config: ContainerConfig) -> tuple[tuple[str, str], ...]:
        """The image is not used: people should hear that before they wonder."""
        if not config.image:
            return ()
        text = f'Image "{config.image}" is ignored: the process runtime runs the command of container '
        return (("ImageIgnored", f"{text}{config.name} on the host"),)

    async def start(self, config: ContainerConfig) -> Container:
        """Starts the command."""
        if not config.command:
            raise no_command(config, self.name)
        folder = self._launcher.folder(config)
        env = {"PATH": DEFAULT_PATH, "HOME": os.environ.get("HOME", "/"), "HOSTNAME": config.hostname}
        env |= dict(config.env)
        for mount in config.mounts:
            if mount.name:
                env.setdefault(variable("KUBEDRA_VOLUME", mount.name), mount.source)
            env.setdefault(variable("KUBEDRA_MOUNT", mount.target), mount.source)
        if config.termination_log:
            env.setdefault("KUBEDRA_TERMINATION_LOG", config.termination_log)
        cwd = config.working_dir
        if not cwd:
            work = folder / "work"
            work.mkdir(parents=True, exist_ok=True)
            if config.uid is not None:
                with contextlib.suppress(PermissionError):
                    os.chown(work, config.uid, -1 if config.gid is None else config.gid)
            cwd = str(work)
        spec = Spec(config.command, tuple(env.items()), cwd, 0, config.uid, config.gid, config.groups)
        return await self._launcher.launch(config, spec)

    async def execute(self, container: Container, command: tuple[str, ...], timeout: float) -> tuple[int, str]:
        """Runs a command beside the container's, in its folder and environment."""
        assert isinstance(container, SupervisedContainer)
        return await execute(container, command, timeout)

    def find(self, pod_uid: str) -> tuple[Container, ...]:
        """The pod's containers that left a trace."""
        return self._launcher.find(pod_uid)

    def forget(self, container: Container) -> None:
        """Drops the trace of a container that has ended."""
        assert isinstance(container, SupervisedContainer)
        self._launcher.forget(container)

    def detach(self) -> None:
        """Stops looking; the containers run on."""
        self._launcher.detach()
