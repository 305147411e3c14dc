"""Files that survive a power cut: checkpoints and CDI files of a node.

A file is written beside its place, synced, renamed over it, and the folder is synced too, because the new name lives
there. A reader sees the old content or the new one, never a half. Upstream counterpart: the checkpoint store of the
kubelet, which does not sync the folder.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

_SUFFIX = ".tmp"


def write_durably(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace ``path`` by ``data``: write, fsync, rename, fsync of the folder. Blocks on the disk."""
    write_all_durably({path: data}, mode)


def write_all_durably(files: Mapping[Path, bytes], mode: int = 0o600) -> None:
    """Replace several files; each is synced before any is renamed, and each folder once after that."""
    temporary = {path: path.with_name(f".{path.name}{_SUFFIX}") for path in files}
    try:
        for path, data in files.items():
            _write_synced(temporary[path], data, mode)
    except BaseException:
        for leftover in temporary.values():
            with contextlib.suppress(OSError):
                leftover.unlink()
        raise
    for path, written in temporary.items():
        written.replace(path)
    for folder in {path.parent for path in files}:
        sync_folder(folder)


def _write_synced(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    except OSError as error:
        # A full disk is told of without a name.
        error.filename = error.filename or str(path.with_name(path.name[1:].removesuffix(_SUFFIX)))
        raise
    finally:
        os.close(descriptor)


def remove_durably(path: Path) -> bool:
    """Remove ``path`` and sync its folder; False when it was not there."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    sync_folder(path.parent)
    return True


def remove_all_durably(paths: Iterable[Path]) -> None:
    """Remove those files that are there and sync each folder once."""
    folders = set()
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            folders.add(path.parent)
    for folder in folders:
        sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path, older_than: float = 60.0, *, prefix: str = "") -> None:
    """Remove half-written files, of names that begin with ``prefix``, that a process left when it was killed.

    Files younger than ``older_than`` seconds stay: agent and drivers share folders, and one of them may be writing.
    Who knows that nobody else writes such names says 0.
    """
    limit = time.time() - older_than
    for entry in folder.glob(f".*{_SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):
            if entry.name.startswith(f".{prefix}") and (not older_than or entry.stat().st_mtime < limit):
                entry.unlink()
