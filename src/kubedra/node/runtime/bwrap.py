"""Containers in bubblewrap: own mount, pid, ipc and uts namespaces, real mounts and device nodes, own network on
demand.

The image is not used here either: the container sees the host's files read-only, with the agent's folders hidden,
an empty /tmp, its own /proc and a minimal /dev. Upstream counterpart: containerd with runc. It needs the program
bwrap 0.8 or newer.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from kubedra.node.runtime.contract import Container, ContainerConfig, StartError
from kubedra.node.runtime.executing import execute
from kubedra.node.runtime.launcher import Launcher, Spec, SupervisedContainer
from kubedra.node.runtime.process import DEFAULT_PATH, no_command, variable

# Set up by bubblewrap itself, or not for containers.
_OWN = frozenset({"proc", "dev", "sys", "tmp", "run", "lost+found"})
# Below bwrap itself come its pid 1 and then the command: signals are meant for the command.
_COMMAND_DEPTH = 2


def installed() -> str | None:
    """The bwrap program, None where it is not installed."""
    return shutil.which("bwrap")


@functools.cache
def _version(program: str) -> str:
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return answer.stdout.split()[-1] if answer.stdout.split() else "unknown"


def real_target(target: str, root: Path = Path("/")) -> str:
    """Where a mount point really lies: bwrap can't follow the links of the root that it is building (/var/run)."""
    path = Path("/")
    for part in Path(target).parts[1:]:
        path = path / part
        own = len(path.parts) > 1 and path.parts[1] in _OWN
        host = root / path.relative_to("/")
        if not own and host.is_symlink():
            link = host.readlink()
            path = Path(os.path.normpath(path.parent / link))
    return str(path)


def root_arguments(targets: tuple[str, ...], hidden: tuple[str, ...], root: Path = Path("/")) -> list[str]:
    """The host's files, read-only, with room for every mount target.

    bwrap can't create a mount point below a read-only bind: a folder that must get one is rebuilt entry by entry.
    """
    arguments: list[str] = []

    def needs_room(folder: Path) -> bool:
        return any(
            target.is_relative_to(folder) and not (root / target.relative_to("/")).exists()
            for target in map(Path, targets)
        )

    def add(path: Path) -> None:
        host = root / path.relative_to("/")
        if host.is_symlink():
            arguments.extend(["--symlink", str(host.readlink()), str(path)])
        elif not host.is_dir() or not needs_room(path):
            arguments.extend(["--ro-bind-try", str(host), str(path)])
        else:
            arguments.extend(["--dir", str(path)])
            for entry in sorted(host.iterdir()):
                add(path / entry.name)

    for entry in sorted(root.iterdir()):
        if entry.name not in _OWN:
            add(Path("/") / entry.name)
    arguments.extend(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"])
    arguments.extend(["--ro-bind-try", "/sys", "/sys"])
    for secret in hidden:
        if Path(secret).is_dir() and not secret.startswith(("/tmp/", "/run/")):
            arguments.extend(["--tmpfs", secret])
    return arguments


def arguments(program: str, config: ContainerConfig, hidden: tuple[str, ...]) -> list[str]:
    """The whole bwrap command line of a container."""
    argv = [program, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    argv += ["--hostname", config.hostname or config.pod_name]
    if config.own_network:
        argv.append("--unshare-net")
    if config.uid is not None:
        argv += ["--unshare-user", "--uid", str(config.uid), "--gid", str(config.gid or config.uid)]
    targets = tuple(mount.target for mount in config.mounts) + tuple(device.path for device in config.devices)
    argv += root_arguments(tuple(map(real_target, targets)), hidden)
    # Outer mounts first, so that an inner one is not covered.
    for mount in sorted(config.mounts, key=lambda mount: mount.target.count("/")):
        argv += ["--ro-bind" if mount.read_only else "--bind", mount.source, real_target(mount.target)]
    for device in config.devices:
        argv += ["--dev-bind", device.host_path or device.path, real_target(device.path)]
    if config.termination_log:
        argv += ["--bind", config.termination_log, "/dev/termination-log"]
    argv += ["--chdir", config.working_dir or "/", "--", *config.command]
    return argv


class BwrapRuntime:
    """Runs commands in namespaces of their own."""

    name = "bwrap"

    def __init__(self, pods_dir: Path, *, hidden: tuple[str, ...] = (), log_limit: int = 10 << 20) -> None:
        program = installed()
        if program is None:
            raise StartError("bubblewrap is not installed: install it (package bubblewrap) or use --runtime process")
        self._program = program
        self._hidden = hidden
        self._launcher = Launcher(pods_dir, log_limit)

    @property
    def version(self) -> str:
        """The version of the program."""
        return f"bwrap://{_version(self._program)}"

    def remarks(self, config: ContainerConfig) -> tuple[tuple[str, str], ...]:
        """The image is not used: people should hear that before they wonder."""
        if not config.image:
            return ()
        text = (
            f'Image "{config.image}" is ignored: the bwrap runtime shows container {config.name} the files of the host'
        )
        return (("ImageIgnored", text),)

    async def start(self, config: ContainerConfig) -> Container:
        """Starts the command in its namespaces."""
        if not config.command:
            raise no_command(config, self.name)
        for mount in config.mounts:
            if not Path(mount.source).exists():
                raise StartError(f"container {config.name}: {mount.source} does not exist", "CreateContainerError")
        for device in config.devices:
            if not Path(device.host_path or device.path).exists():
                raise StartError(
                    f"container {config.name}: device node {device.host_path or device.path} does not exist",
                    "CreateContainerError",
                )
        if config.termination_log:
            Path(config.termination_log).touch(exist_ok=True)
        env = {"PATH": DEFAULT_PATH, "HOME": "/", "HOSTNAME": config.hostname} | dict(config.env)
        # The same names as with the process runtime, so that a script runs in both; here they name what is mounted.
        for mount in config.mounts:
            if mount.name:
                env.setdefault(variable("KUBEDRA_VOLUME", mount.name), mount.target)
            env.setdefault(variable("KUBEDRA_MOUNT", mount.target), mount.target)
        if config.termination_log:
            env.setdefault("KUBEDRA_TERMINATION_LOG", "/dev/termination-log")
        spec = Spec(tuple(arguments(self._program, config, self._hidden)), tuple(env.items()), "/", _COMMAND_DEPTH)
        return await self._launcher.launch(config, spec)

    async def execute(self, container: Container, command: tuple[str, ...], timeout: float) -> tuple[int, str]:
        """Runs a command in the container's namespaces."""
        assert isinstance(container, SupervisedContainer)
        return await execute(container, command, timeout, depth=_COMMAND_DEPTH)

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
