"""What can go wrong in the store; each message is one sentence that a person can act on."""

from __future__ import annotations


class StoreError(Exception):
    """Root of everything the store raises."""


class FolderLocked(StoreError):
    """Another process serves this data folder."""


class ForeignFolder(StoreError):
    """The folder holds something that this store did not make (or a newer release made)."""


class StoreUnavailable(StoreError):
    """A write could not be made durable (disk full, I/O error); nothing of it is visible."""


class RevisionConflict(StoreError):
    """The key is not at the revision that the caller expected."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"expected revision {expected}, found {actual}")
        self.expected = expected
        self.actual = actual


class Compacted(StoreError):
    """The revision asked for lies below the history that is kept."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {requested} ({oldest})")
        self.requested = requested
        self.oldest = oldest


class FutureRevision(StoreError):
    """The revision asked for has not been reached yet."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"Too large resource version: {requested}, current: {current}")
        self.requested = requested
        self.current = current
