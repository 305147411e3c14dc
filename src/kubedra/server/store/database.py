"""The SQLite side of the store: schema, loading at start, and the writer thread with its group commit.

Every batch that waits when the writer becomes free is one transaction, so fsync is paid once per batch. The file is
append-only history (`kv`, keyed by revision); compaction deletes rows by revision.
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from kubedra.server.store.errors import ForeignFolder, StoreUnavailable
from kubedra.server.store.folder import sync_folder

APPLICATION_ID = 0x6B756264  # "kubd"
SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE kv (rev INTEGER PRIMARY KEY, key TEXT NOT NULL, val BLOB NOT NULL, gone INTEGER NOT NULL) STRICT;
CREATE TABLE floor (resource TEXT PRIMARY KEY, rev INTEGER NOT NULL) STRICT;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
"""

# The two byte orders of checksums in a write-ahead log: https://www.sqlite.org/fileformat2.html
_LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")

# (revision, key text, value, 1 if this is the last state of a deleted object)
Row = tuple[int, str, bytes, int]


class Compaction:
    """Rows to drop, and the floors of the resources that they belonged to."""

    __slots__ = ("floors", "revisions")

    def __init__(self, floors: dict[str, int], revisions: list[int]) -> None:
        self.floors = floors
        self.revisions = revisions


def damaged(path: Path, error: Exception) -> StoreUnavailable:
    """What to say of a database that can't be read: nothing of it is touched, and an empty one would hide the loss."""
    return StoreUnavailable(
        f"{path} is damaged ({error}); put a backup in its place, or choose another data folder to begin anew"
    )


def _check_log(path: Path) -> None:
    """Refuse a write-ahead log that is none: SQLite would take it for an empty one and lose what it held."""
    log = path.with_name(path.name + "-wal")
    try:
        with log.open("rb") as file:
            head = file.read(32)
    except FileNotFoundError:
        return
    # Zeros are what a power cut may leave of a log that nothing was answered from yet.
    if len(head) == 32 and any(head) and head[:4] not in _LOG_MAGIC:
        raise damaged(path, ValueError(f"{log.name} is not its write-ahead log"))


def open_database(path: Path) -> sqlite3.Connection:
    """Opens or makes the file; refuses files of other programs and of newer releases."""
    fresh = not path.exists()
    connection: sqlite3.Connection | None = None
    try:
        if fresh:
            # Made before SQLite sees it: the write-ahead log gets the mode of the database, and holds the same secrets.
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        _check_log(path)
        # Autocommit mode: transactions are opened and ended by hand, in the writer only.
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application == 0 and tables == 0:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.executescript(
                f"BEGIN; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION};{_SCHEMA} COMMIT;"
            )
        elif application != APPLICATION_ID:
            raise ForeignFolder(f"{path} is a database of another program; choose another data folder")
        elif version > SCHEMA_VERSION:
            raise ForeignFolder(f"{path} was written by a newer kubedra (format {version}); use that release")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=4000")
        connection.execute("PRAGMA journal_size_limit=67108864")
    except (ForeignFolder, StoreUnavailable):
        if connection is not None:
            connection.close()
        raise
    except sqlite3.DatabaseError as error:
        if connection is not None:
            connection.close()
        if "not a database" in str(error):
            raise ForeignFolder(f"{path} is not a database of kubedra; choose another data folder") from error
        if "malformed" in str(error):
            raise damaged(path, error) from error
        raise StoreUnavailable(f"{path} can't be opened: {error}") from error
    except OSError as error:
        raise StoreUnavailable(f"{path} can't be made: {error}") from error
    if fresh:
        sync_folder(path.parent)
    return connection


def load(connection: sqlite3.Connection) -> Iterator[Row]:
    """All rows in revision order."""
    return connection.execute("SELECT rev, key, val, gone FROM kv ORDER BY rev")


def load_floors(connection: sqlite3.Connection) -> dict[str, int]:
    """The oldest revision from which each compacted resource can still be watched."""
    return dict(connection.execute("SELECT resource, rev FROM floor"))


class Writer:
    """The thread that owns the connection: takes what is queued, commits it as one transaction, reports the count."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        committed: Callable[[int], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._connection = connection
        self._path = path
        self._committed = committed
        self._failed = failed
        self._queue: queue.SimpleQueue[tuple[int, Row] | Compaction | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._bad_epoch = -1

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def put(self, epoch: int, row: Row) -> None:
        """Queues a row. After a failed commit every row of the same epoch is dropped."""
        self._queue.put((epoch, row))

    def compact(self, compaction: Compaction) -> None:
        """Queues the removal of old rows."""
        self._queue.put(compaction)

    def stop(self) -> None:
        """Commits what is queued, then ends the thread and closes the file."""
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        take, ready = self._queue.get, self._queue.empty
        stopping = False
        while not stopping:
            rows: list[Row] = []
            compactions: list[Compaction] = []
            epoch = -1
            item = take()
            while True:
                if item is None:
                    stopping = True
                    break
                if isinstance(item, Compaction):
                    compactions.append(item)
                elif item[0] > self._bad_epoch:
                    epoch = item[0]
                    rows.append(item[1])
                if len(rows) >= 1000 or ready():
                    break
                item = take()
            if rows or compactions:
                self._commit(rows, compactions, epoch)

    def _commit(self, rows: list[Row], compactions: list[Compaction], epoch: int) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            if rows:
                connection.executemany("INSERT INTO kv (rev, key, val, gone) VALUES (?, ?, ?, ?)", rows)
            for compaction in compactions:
                connection.executemany("DELETE FROM kv WHERE rev = ?", [(r,) for r in compaction.revisions])
                connection.executemany("INSERT OR REPLACE INTO floor VALUES (?, ?)", compaction.floors.items())
            connection.execute("COMMIT")
        # Whatever it is: the thread must live on, or every later write would wait for ever.
        except Exception as error:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            if rows:
                self._bad_epoch = epoch
                self._failed(self._explain(error))
            return
        if rows:
            self._committed(len(rows))

    def _explain(self, error: Exception) -> StoreUnavailable:
        if "full" in str(error):
            return StoreUnavailable(
                f"the disk of the data folder {self._path.parent} is full and nothing was written; "
                "free some space and try again"
            )
        return StoreUnavailable(f"the database {self._path} can't be written ({error}), nothing was changed")
