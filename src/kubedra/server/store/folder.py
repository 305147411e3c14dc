"""The data folder: made once, owned by one process, never mistaken for somebody else's.

Refuses folders that hold other things, and a second process, each with one sentence that says what to do.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from kubedra.server.store.errors import FolderLocked, ForeignFolder, StoreUnavailable

DATABASE = "store.db"
LOCK = "lock"
MARKER = "kubedra-data"
# What a folder may hold before it has a marker: other parts of the same cluster may have come first.
OWN_NAMES = frozenset({MARKER, LOCK, DATABASE, "pki", "tokens", "kubeconfig", "nodes", "logs", "run", "cluster.json"})


class DataFolder:
    """A claimed data folder; `release` gives it back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = -1

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / DATABASE

    def check(self) -> set[str]:
        """Makes the folder if needed, and refuses it when it is not ours; returns the names in it."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            present = {entry.name for entry in self.path.iterdir()}
        except NotADirectoryError as error:
            raise ForeignFolder(f"the data folder {self.path} is not a folder; choose another one") from error
        except FileExistsError as error:
            raise ForeignFolder(f"the data folder {self.path} is not a folder; choose another one") from error
        except PermissionError as error:
            raise StoreUnavailable(f"no permission to use the data folder {self.path}; choose another one") from error
        except OSError as error:
            raise StoreUnavailable(
                f"the data folder {self.path} can't be made ({error.strerror}); choose another one"
            ) from error
        strange = sorted(name for name in present if name not in OWN_NAMES and not name.startswith(DATABASE))
        if MARKER not in present and strange:
            raise ForeignFolder(
                f"the data folder {self.path} holds things that kubedra did not make ({strange[0]}); "
                "choose an empty folder"
            )
        return present

    def claim(self) -> None:
        """Makes the folder if needed, checks that it is ours and locks it."""
        present = self.check()
        try:
            self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError as error:
            raise StoreUnavailable(f"no permission to write the data folder {self.path}; choose another one") from error
        except OSError as error:
            raise StoreUnavailable(f"the data folder {self.path} can't be written: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._lock, 64, 0).decode(errors="replace").strip()
            os.close(self._lock)
            self._lock = -1
            who = f" (process {holder})" if holder else ""
            raise FolderLocked(
                f"the data folder {self.path} is in use by another kubedra server{who}; "
                "stop it first or choose another folder"
            ) from error
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
            if MARKER not in present:
                marker = os.open(self.path / MARKER, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
                os.write(marker, b"1\n")
                os.fsync(marker)
                os.close(marker)
                sync_folder(self.path)
        except OSError as error:
            self.release()
            raise StoreUnavailable(f"the data folder {self.path} can't be written: {error.strerror}") from error

    def release(self) -> None:
        """Unlocks the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sync_folder(path: Path) -> None:
    """Makes renames and new names in a folder durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
