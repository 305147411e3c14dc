"""Which pod is tried next, and when a pod that could not be placed is tried again.

A pure state machine: time comes in as seconds of a steady clock, nothing sleeps here. A pending pod is in one place:

* gated: something said that an attempt is pointless (scheduling gates, a claim that does not exist yet);
* active: waits for its turn, by priority, then by age;
* backoff: waits out a pause after an attempt, 1 s doubling to 10 s; may be taken early when nothing else is active,
  unless the attempt ended in an error;
* unschedulable: fits nowhere; waits for an event that can help (`hints`), at most five minutes;
* in flight: popped, being placed or bound.

Must never: lose a pod (every pending pod is in exactly one place), or hand out one pod twice.

Upstream: pkg/scheduler/backend/queue (scheduling_queue.go, active_queue.go, backoff_queue.go).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from kubedra.scheduler.pods import PodInfo

Gate = Callable[[PodInfo], str | None]
Hint = Callable[["QueuedPod"], bool]


class Place(Enum):
    """Where a pending pod is; the values are those of the metric scheduler_pending_pods."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in_flight"


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pending pod with the history of its attempts."""

    pod: PodInfo
    added: float
    place: Place = Place.ACTIVE
    changed: float = 0.0
    attempts: int = 0
    failures: int = 0
    errors: int = 0
    last_attempt: float = 0.0
    ready: float = 0.0
    failed_in_error: bool = False
    rejected_by: frozenset[str] = field(default_factory=frozenset)
    gate: str = ""
    ticket: int = 0
    """Identifies the valid entry in a heap; entries with another ticket are leftovers."""
    moved_in_flight: bool = False
    """An event that can help arrived while the pod was being bound."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Upstream's waits."""

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    max_unschedulable: float = 300.0


class SchedulingQueue:
    """All pending pods of one scheduler."""

    def __init__(self, gate: Gate, settings: QueueSettings | None = None) -> None:
        self._gate = gate
        self._settings = settings or QueueSettings()
        self._pods: dict[str, QueuedPod] = {}
        self._places: dict[Place, dict[str, QueuedPod]] = {place: {} for place in Place}
        self._active: list[tuple[int, float, int, str]] = []
        self._backoff: list[tuple[float, int, int, str]] = []
        self._tickets = itertools.count(1)

    def __repr__(self) -> str:
        return "<SchedulingQueue " + " ".join(f"{p.value}={n}" for p, n in self.counts().items()) + ">"

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> QueuedPod | None:
        """The pending pod with that uid."""
        return self._pods.get(uid)

    def counts(self) -> dict[Place, int]:
        """How many pods are in each place."""
        return {place: len(pods) for place, pods in self._places.items()}

    def waiting(self, place: Place) -> list[QueuedPod]:
        """The pods in one place."""
        return list(self._places[place].values())

    # --- pods come, change and go ---------------------------------------------------------------------

    def add(self, pod: PodInfo, now: float) -> QueuedPod:
        """Take in a pending pod that is new here."""
        entry = self._pods.get(pod.uid)
        if entry is not None:
            self.update(pod, now)
            return entry
        entry = QueuedPod(pod, added=now)
        self._pods[pod.uid] = entry
        self._admit(entry, now)
        return entry

    def update(self, pod: PodInfo, now: float, *, can_help: bool = True) -> None:
        """Take over a newer version of a pod; `can_help`: the change may be what it waited for."""
        entry = self._pods.get(pod.uid)
        if entry is None:
            self.add(pod, now)
            return
        entry.pod = pod
        if entry.place is Place.GATED:
            self._admit(entry, now)
        elif entry.place is Place.UNSCHEDULABLE and can_help:
            self._wake(entry, now)
        elif entry.place is Place.IN_FLIGHT and can_help:
            entry.moved_in_flight = True
        elif entry.place is Place.ACTIVE:
            self._move(entry, Place.ACTIVE, now)

    def remove(self, uid: str) -> None:
        """Forget a pod: deleted, bound, or not ours any more."""
        entry = self._pods.pop(uid, None)
        if entry is not None:
            del self._places[entry.place][uid]

    def regate(self, now: float, uids: Iterable[str] | None = None) -> list[QueuedPod]:
        """Ask the gates again, of all gated pods or of those; returns the ones that may be tried now."""
        gated = self._places[Place.GATED]
        entries = list(gated.values()) if uids is None else [gated[uid] for uid in uids if uid in gated]
        freed = []
        for entry in entries:
            self._admit(entry, now)
            if entry.place is not Place.GATED:
                freed.append(entry)
        return freed

    # --- attempts -------------------------------------------------------------------------------------

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to try, now in flight; None when no pod may be tried yet."""
        self.flush(now)
        entry = self._pop_active()
        if entry is None:
            entry = self._pop_backoff_early()
        if entry is None:
            return None
        entry.attempts += 1
        entry.last_attempt = now
        entry.moved_in_flight = False
        self._move(entry, Place.IN_FLIGHT, now)
        return entry

    def failed(self, entry: QueuedPod, rejected_by: Iterable[str], now: float) -> None:
        """An attempt found no place: wait for an event that concerns one of these plugins."""
        if self._pods.get(entry.pod.uid) is not entry:
            return
        entry.failures += 1
        entry.errors = 0
        entry.failed_in_error = False
        entry.rejected_by = frozenset(rejected_by)
        entry.ready = now + self._pause(entry.failures)
        if entry.moved_in_flight:
            entry.moved_in_flight = False
            self._move(entry, Place.BACKOFF, now)
        else:
            self._move(entry, Place.UNSCHEDULABLE, now)
            self._admit_if_gated(entry, now)

    def errored(self, entry: QueuedPod, now: float) -> None:
        """An attempt ended in an error: try again after a pause, whatever happens meanwhile."""
        if self._pods.get(entry.pod.uid) is not entry:
            return
        entry.errors += 1
        entry.failed_in_error = True
        entry.rejected_by = frozenset()
        entry.ready = now + self._pause(entry.errors)
        self._move(entry, Place.BACKOFF, now)
        self._admit_if_gated(entry, now)

    def wake(self, hint: Hint, now: float) -> int:
        """Something changed in the cluster: move the pods that it may help. Returns how many were moved."""
        moved = 0
        for entry in list(self._places[Place.UNSCHEDULABLE].values()):
            if hint(entry):
                self._wake(entry, now)
                moved += 1
        for entry in self._places[Place.IN_FLIGHT].values():
            if not entry.moved_in_flight:
                # What will reject the pod, if anything does, isn't known yet: any event may be the one that helps.
                entry.moved_in_flight = True
        return moved

    # --- time -----------------------------------------------------------------------------------------

    def flush(self, now: float) -> None:
        """Move the pods whose pause is over, and those that waited for an event for too long."""
        while self._backoff:
            ready, _, ticket, uid = self._backoff[0]
            entry = self._pods.get(uid)
            if entry is None or entry.ticket != ticket:
                heapq.heappop(self._backoff)
            elif ready <= now:
                heapq.heappop(self._backoff)
                self._admit(entry, now)
            else:
                break
        oldest = now - self._settings.max_unschedulable
        # The dict is in order of arrival: the first one is the one that waits longest.
        while self._places[Place.UNSCHEDULABLE]:
            entry = next(iter(self._places[Place.UNSCHEDULABLE].values()))
            if entry.changed > oldest:
                break
            self._wake(entry, now)

    def next_flush(self) -> float | None:
        """When `flush` has something to do next."""
        times = [self._backoff[0][0]] if self._backoff else []
        waiting = self._places[Place.UNSCHEDULABLE]
        if waiting:
            times.append(next(iter(waiting.values())).changed + self._settings.max_unschedulable)
        return min(times, default=None)

    # --- inside ---------------------------------------------------------------------------------------

    def _pause(self, count: int) -> float:
        doubled: float = self._settings.initial_backoff * 2 ** min(count - 1, 30)
        return min(doubled, self._settings.max_backoff)

    def _wake(self, entry: QueuedPod, now: float) -> None:
        if entry.ready > now:
            self._move(entry, Place.BACKOFF, now)
        else:
            self._admit(entry, now)

    def _admit(self, entry: QueuedPod, now: float) -> None:
        reason = self._gate(entry.pod)
        entry.gate = reason or ""
        if reason is None:
            self._move(entry, Place.ACTIVE, now)
        elif entry.place is not Place.GATED or entry.pod.uid not in self._places[Place.GATED]:
            self._move(entry, Place.GATED, now)

    def _admit_if_gated(self, entry: QueuedPod, now: float) -> None:
        """What the pod needs may have gone while it was in flight."""
        reason = self._gate(entry.pod)
        if reason is not None:
            entry.gate = reason
            self._move(entry, Place.GATED, now)

    def _move(self, entry: QueuedPod, place: Place, now: float) -> None:
        uid = entry.pod.uid
        self._places[entry.place].pop(uid, None)
        entry.place = place
        entry.changed = now
        entry.ticket = next(self._tickets)
        self._places[place][uid] = entry
        if place is Place.ACTIVE:
            heapq.heappush(self._active, (-entry.pod.priority, entry.added, entry.ticket, uid))
        elif place is Place.BACKOFF:
            heapq.heappush(self._backoff, (entry.ready, -entry.pod.priority, entry.ticket, uid))

    def _pop_active(self) -> QueuedPod | None:
        while self._active:
            _, _, ticket, uid = heapq.heappop(self._active)
            entry = self._pods.get(uid)
            if entry is not None and entry.ticket == ticket:
                return entry
        return None

    def _pop_backoff_early(self) -> QueuedPod | None:
        ready = [entry for entry in self._places[Place.BACKOFF].values() if not entry.failed_in_error]
        return min(ready, key=lambda entry: (entry.ready, -entry.pod.priority, entry.ticket), default=None)
