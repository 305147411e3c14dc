"""The data folder: made once, owned by one process, never mistaken for somebody else's.

Refuses folders that hold other things, and a second process, each with one sentence that says what to do.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from kubedra.server.store.errors import FolderLocked, ForeignFolder, StoreUnavailable

DATABASE = "store.db"
LOCK = "lock"
MARKER = "kubedra-data"
IN_USE = b"in use\n"
# What a folder may hold before it has a marker: other parts of the same cluster may have come first.
OWN_NAMES = frozenset({MARKER, LOCK, DATABASE, "pki", "tokens", "kubeconfig", "nodes", "logs", "run", "cluster.json"})
FOLDERS = frozenset({"pki", "tokens", "nodes", "logs", "run"})
# Made by a server that had a database, so a folder that has one of them has lost its own.
MADE_AFTER_DATABASE = ("kubeconfig", "pki", "tokens")


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
        for name in sorted(present & OWN_NAMES):
            if (self.path / name).is_dir() != (name in FOLDERS):
                what = "a file" if name in FOLDERS else "a folder"
                raise ForeignFolder(f"{self.path / name} is {what}, which kubedra did not make; remove it")
        return present

    def _check_database(self, present: set[str]) -> None:
        """Refuse to begin anew where there was a database: its objects would be gone without a word."""
        if self.database.exists() and self.database.stat().st_size:
            return
        others = [name for name in MADE_AFTER_DATABASE if name in present]
        if others:
            raise StoreUnavailable(
                f"{self.database} is {'empty' if DATABASE in present else 'gone'}, but {others[0]} says that there was "
                "one; put a backup in its place, or choose another data folder to begin anew"
            )

    def claim(self) -> None:
        """Makes the folder if needed, checks that it is ours and locks it."""
        present = self.check()
        self._check_database(present)
        try:
            self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError as error:
            raise StoreUnavailable(f"no permission to write the data folder {self.path}; choose another one") from error
        except OSError as error:
            raise StoreUnavailable(f"the data folder {self.path} can't be written: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._lock, 64, 0).decode(errors="replace").partition("\n")[0]
            os.close(self._lock)
            self._lock = -1
            who = f" (process {holder})" if holder else ""
            raise FolderLocked(
                f"the data folder {self.path} is in use by another kubedra server{who}; "
                "stop it first or choose another folder"
            ) from error
        self._check_log()
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

    def _check_log(self) -> None:
        """Refuse to go on without the write-ahead log of a server that was killed: the last writes are in it."""
        log = self.database.with_name(DATABASE + "-wal")
        if IN_USE in os.pread(self._lock, 64, 0) and not log.exists():
            self.release()
            raise StoreUnavailable(
                f"{log}, where a server that was killed had its last writes, is gone; put it back, or remove "
                f"{self.path / LOCK} to go on without it (nothing is lost if sqlite3 was used on {DATABASE} since)"
            )

    def in_use(self) -> None:
        """Note that from now on the database has a write-ahead log."""
        with suppress(OSError):
            os.pwrite(self._lock, f"{os.getpid()}\n".encode() + IN_USE, 0)

    def in_order(self) -> None:
        """Note that the log may go now; before the database is closed, or who dies in between could not start again."""
        with suppress(OSError):
            os.ftruncate(self._lock, 0)

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
