"""Records and events: immutable bytes with a revision, and what is derived from them once and shared.

A record is never changed in place. Decoded forms are made lazily and kept on the record, so that a thousand
watchers in this process share one object; callers must treat whatever they get here as read-only.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Literal, NamedTuple

import msgspec

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Key(NamedTuple):
    """Where an object lives: storage resource ("pods", "deployments.apps"), namespace ("" if none) and name."""

    resource: str
    namespace: str
    name: str

    def text(self) -> str:
        """The key as it is written to the database."""
        return f"{self.resource}/{self.namespace}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> Key:
        """The inverse of `text`."""
        resource, namespace, name = text.split("/", 2)
        return cls(resource, namespace, name)


# Trees are kept for the records that were looked at last; a tree is several times as large as its bytes.
_KEPT_TREES = 256
_with_trees: deque[Record] = deque()


class Record:
    """One version of one object: its key, its revision and its JSON bytes in the storage version."""

    __slots__ = ("_tree", "derived", "key", "revision", "value")

    def __init__(self, key: Key, revision: int, value: bytes) -> None:
        self.key = key
        self.revision = revision
        self.value = value
        self._tree: dict[str, Any] | None = None
        # Other rooms keep what they derive here (selector fields, bytes in another version, decoded structs).
        self.derived: dict[Any, Any] | None = None

    def tree(self) -> dict[str, Any]:
        """A fresh JSON tree that the caller owns (decoding again is cheaper than a deep copy)."""
        decoded: dict[str, Any] = msgspec.json.decode(self.value)
        return decoded

    def shared_tree(self) -> dict[str, Any]:
        """The JSON tree, decoded once while it is in use and shared: read-only."""
        tree = self._tree
        if tree is None:
            tree = self._tree = self.tree()
            _with_trees.append(self)
            if len(_with_trees) > _KEPT_TREES:
                _with_trees.popleft()._tree = None
        return tree

    def strip(self) -> None:
        """Forgets what was derived; it is made again if somebody still asks."""
        self._tree = None
        self.derived = None

    def forget_tree(self) -> None:
        """Drops the shared tree: history is seldom looked into, and trees are what memory goes to."""
        self._tree = None

    def __repr__(self) -> str:
        return f"<Record {self.key.text()} @{self.revision} {len(self.value)} bytes>"


class Event:
    """A committed change. `record` holds the new state, or the last state of a deleted object."""

    __slots__ = ("derived", "previous", "record", "type")

    def __init__(self, type_: EventType, record: Record, previous: Record | None) -> None:
        self.type = type_
        self.record = record
        self.previous = previous
        self.derived: dict[Any, Any] | None = None

    @property
    def revision(self) -> int:
        """The revision at which the change happened."""
        return self.record.revision

    def __repr__(self) -> str:
        return f"<Event {self.type} {self.record!r}>"
