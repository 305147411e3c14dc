"""Files that survive a power cut: checkpoints and CDI files of a node.

A file is written beside its place, synced, renamed over it, and the folder is synced too, because the new name lives
there. A reader sees the old content or the new one, never a half. Upstream counterpart: the checkpoint store of the
kubelet, which does not sync the folder.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_SUFFIX = ".tmp"


def write_durably(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace ``path`` by ``data``: write, fsync, rename, fsync of the folder. Blocks on the disk."""
    temporary = path.with_name(f".{path.name}{_SUFFIX}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    except BaseException:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    os.close(descriptor)
    temporary.replace(path)
    sync_folder(path.parent)


def remove_durably(path: Path) -> bool:
    """Remove ``path`` and sync its folder; False when it was not there."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    sync_folder(path.parent)
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove half-written files that a process left when it was killed."""
    for entry in folder.glob(f".*{_SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):
            entry.unlink()
