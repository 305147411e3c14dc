"""The durable store under the API server: one SQLite file, one writer thread, one revision counter.

Upstream counterpart: etcd plus the API server's watch cache (apiserver/pkg/storage). Everything that is current is
held in memory as bytes; SQLite is the log that makes it durable. The loop thread owns all state, the writer thread
owns the database connection, and nothing is visible to readers before it is on disk.
"""

from __future__ import annotations

from kubedra.server.store.errors import (
    Compacted,
    FolderLocked,
    ForeignFolder,
    FutureRevision,
    RevisionConflict,
    StoreError,
    StoreUnavailable,
)
from kubedra.server.store.records import Event, EventType, Key, Record
from kubedra.server.store.store import Store
from kubedra.server.store.watching import Watch, WatchOverflow

__all__ = [
    "Compacted",
    "Event",
    "EventType",
    "FolderLocked",
    "ForeignFolder",
    "FutureRevision",
    "Key",
    "Record",
    "RevisionConflict",
    "Store",
    "StoreError",
    "StoreUnavailable",
    "Watch",
    "WatchOverflow",
]
