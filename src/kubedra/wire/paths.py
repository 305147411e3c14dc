"""Where an agent and the drivers of its node meet in the file system.

Agent and drivers are separate processes that share folders and nothing else, so the layout is written once, here.
Files live in the data folder; sockets live in a short *run* folder, because the kernel cuts the name of a unix socket
at 107 bytes whatever the data folder is called. Upstream counterpart: /var/lib/kubelet and its sub-folders.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

# sun_path has 108 bytes and grpc wants the terminating zero inside them.
LONGEST_SOCKET_PATH = 107


class SocketPathTooLong(ValueError):
    """A unix socket can't be made at this path; the text says what to change."""


def check_socket_path(path: Path) -> Path:
    """Return ``path``, or raise ``SocketPathTooLong`` when the kernel could not bind a socket there."""
    length = len(os.fsencode(path))
    if length > LONGEST_SOCKET_PATH:
        raise SocketPathTooLong(
            f"the socket path {path} is {length} bytes long and the kernel allows {LONGEST_SOCKET_PATH}: "
            f"choose a shorter run folder (XDG_RUNTIME_DIR or --run-dir)"
        )
    return path


def default_run_dir(data_dir: Path) -> Path:
    """Return the run folder that belongs to ``data_dir``, without creating it.

    It is named by a hash of the data folder, so every process that is given the same data folder finds the same
    sockets, and lies in $XDG_RUNTIME_DIR or else in a folder of the temporary folder that only this user may enter.
    """
    digest = hashlib.sha256(os.fsencode(data_dir.absolute())).hexdigest()[:10]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and Path(runtime).is_dir() and os.access(runtime, os.W_OK):
        return Path(runtime) / "kubedra" / digest
    return Path(tempfile.gettempdir()) / f"kubedra-{os.getuid()}" / digest


def remove_run_dir(run_dir: Path) -> None:
    """Remove a run folder and, when it was the last one, the private folder that holds them."""
    shutil.rmtree(run_dir, ignore_errors=True)
    if run_dir.parent.name.startswith("kubedra"):
        with contextlib.suppress(OSError):
            run_dir.parent.rmdir()


def make_private(folder: Path) -> Path:
    """Create ``folder`` with mode 0700 below its nearest existing parent; refuse one that another user owns."""
    while not folder.exists():
        missing = []
        current = folder
        while not current.exists():
            missing.append(current)
            current = current.parent
        # A cluster that stops removes empty parents: they may go while we are at it.
        with contextlib.suppress(FileNotFoundError):
            for part in reversed(missing):
                part.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"the folder {folder} belongs to another user; choose another run folder")
    return folder


@dataclass(frozen=True)
class NodePaths:
    """The folders of one node: files below ``data_dir/nodes/<node>``, sockets below ``run_dir/<short node>``."""

    data_dir: Path
    run_dir: Path
    node: str
    _socket_root: Path = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Node names may have 253 characters; the sockets of long ones sit under a hash of the name.
        short = self.node if len(self.node) <= 16 else hashlib.sha256(self.node.encode()).hexdigest()[:10]
        object.__setattr__(self, "_socket_root", self.run_dir / short)

    @property
    def node_dir(self) -> Path:
        """The folder for everything of this node that must survive a restart."""
        return self.data_dir / "nodes" / self.node

    @property
    def socket_dir(self) -> Path:
        """The folder below which all sockets of this node lie."""
        return self._socket_root

    @property
    def plugins_registry_dir(self) -> Path:
        """Watched by the agent for registration sockets."""
        return self._socket_root / "reg"

    @property
    def plugins_dir(self) -> Path:
        """Holds one folder per driver with its service socket."""
        return self._socket_root / "dra"

    @property
    def device_plugins_dir(self) -> Path:
        """Holds the agent's ``kubelet.sock`` and the sockets of device plugins."""
        return self._socket_root / "dp"

    @property
    def kubelet_socket(self) -> Path:
        """Where device plugins register."""
        return self.device_plugins_dir / "kubelet.sock"

    @property
    def pod_resources_socket(self) -> Path:
        """Where the agent answers which pod holds which devices."""
        return self._socket_root / "pr" / "kubelet.sock"

    @property
    def driver_data_dir(self) -> Path:
        """Holds one folder per driver for its checkpoint and metadata files."""
        return self.node_dir / "plugins"

    @property
    def cdi_dir(self) -> Path:
        """Where drivers write CDI files and the agent reads them."""
        return self.node_dir / "cdi"

    @property
    def checkpoint_dir(self) -> Path:
        """The agent's own checkpoints."""
        return self.node_dir / "checkpoints"

    @property
    def pods_dir(self) -> Path:
        """One folder per pod: volumes and container state."""
        return self.node_dir / "pods"

    @property
    def log_dir(self) -> Path:
        """Container logs, in CRI format."""
        return self.node_dir / "logs"

    def registration_socket(self, driver: str) -> Path:
        """Return where ``driver`` announces itself; raises ``SocketPathTooLong`` when it can't."""
        return check_socket_path(self.plugins_registry_dir / f"{_short_driver(driver)}-reg.sock")

    def service_socket(self, driver: str) -> Path:
        """Return where ``driver`` answers prepare and unprepare; raises ``SocketPathTooLong`` when it can't."""
        return check_socket_path(self.plugins_dir / _short_driver(driver) / "dra.sock")

    def create(self) -> None:
        """Create all folders; socket folders are private to the user."""
        for folder in (self.plugins_registry_dir, self.plugins_dir, self.device_plugins_dir):
            make_private(folder)
        make_private(self.pod_resources_socket.parent)
        for folder in (self.driver_data_dir, self.cdi_dir, self.checkpoint_dir, self.pods_dir, self.log_dir):
            make_private(folder)


def _short_driver(driver: str) -> str:
    """Return the driver's name, or a hash of it where it alone would fill half a socket path."""
    return driver if len(driver) <= 32 else hashlib.sha256(driver.encode()).hexdigest()[:16]
