"""The current state of one resource in memory, in key order, with the recent history of its changes.

Upstream counterpart: apiserver/pkg/storage/cacher (watchCache). Answers every read: the state now, the state at a
revision that is still in the history, and the events since a revision.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

from kubedra.server.store.errors import Compacted
from kubedra.server.store.records import Event, Record

Place = tuple[str, str]
# Events that watchers are likely to be still reading: older ones keep only their bytes.
FRESH_EVENTS = 256


class Bucket:
    """Records of one resource, sorted by (namespace, name), and a ring of its last events."""

    __slots__ = ("events", "events_bytes", "floor", "fresh", "order", "records", "resource")

    def __init__(self, resource: str) -> None:
        self.resource = resource
        self.records: dict[Place, Record] = {}
        self.order: list[Place] = []
        self.events: deque[Event] = deque()
        self.fresh: deque[Event] = deque()
        self.events_bytes = 0
        # Events at or below the floor are gone; a watch may start at the floor or above.
        self.floor = 0

    def apply(self, event: Event) -> None:
        """Makes a committed event the current state and remembers it."""
        record = event.record
        place = (record.key.namespace, record.key.name)
        if event.type == "DELETED":
            if self.records.pop(place, None) is not None:
                del self.order[bisect_left(self.order, place)]
        else:
            if place not in self.records:
                insort(self.order, place)
            self.records[place] = record
        self.events.append(event)
        self.events_bytes += len(record.value)
        fresh = self.fresh
        fresh.append(event)
        if len(fresh) > FRESH_EVENTS:
            old = fresh.popleft()
            old.derived = None
            if old.previous is not None:
                old.previous.strip()
            if old.type == "DELETED":
                old.record.strip()

    def evict(self, keep_events: int, keep_bytes: int) -> list[int]:
        """Forgets the oldest events beyond the limits; returns the revisions no longer needed on disk."""
        superseded: list[int] = []
        while self.events and (len(self.events) > keep_events or self.events_bytes > keep_bytes):
            superseded += self._forget_oldest()
        return superseded

    def evict_through(self, revision: int) -> list[int]:
        """Forgets all events up to and including `revision`."""
        superseded: list[int] = []
        while self.events and self.events[0].revision <= revision:
            superseded += self._forget_oldest()
        self.floor = max(self.floor, revision)
        return superseded

    def _forget_oldest(self) -> list[int]:
        event = self.events.popleft()
        self.events_bytes -= len(event.record.value)
        self.floor = event.revision
        gone = [event.previous.revision] if event.previous is not None else []
        if event.type == "DELETED":
            gone.append(event.revision)
        return gone

    def listing(self, namespace: str = "") -> list[Record]:
        """Current records in key order, of one namespace or of all."""
        records = self.records
        return [records[place] for place in self._range(self.order, namespace)]

    def listing_at(self, revision: int, namespace: str = "") -> list[Record]:
        """Records as they were at `revision`, in key order."""
        if revision < self.floor:
            raise Compacted(revision, self.floor)
        changed: dict[Place, Record | None] = {}
        for event in reversed(self.events):
            if event.revision <= revision:
                break
            changed[(event.record.key.namespace, event.record.key.name)] = event.previous
        if not changed:
            return self.listing(namespace)
        records = dict(self.records)
        for place, record in changed.items():
            if record is None:
                records.pop(place, None)
            else:
                records[place] = record
        return [records[place] for place in self._range(sorted(records), namespace)]

    @staticmethod
    def _range(order: list[Place], namespace: str) -> list[Place]:
        if not namespace:
            return order
        return order[bisect_left(order, (namespace, "")) : bisect_left(order, (namespace + "\0", ""))]

    def since(self, revision: int) -> list[Event]:
        """Events after `revision`, oldest first."""
        if revision < self.floor:
            raise Compacted(revision, self.floor)
        events = self.events
        if not events or events[-1].revision <= revision:
            return []
        found: list[Event] = []
        for event in reversed(events):
            if event.revision <= revision:
                break
            found.append(event)
        found.reverse()
        return found
