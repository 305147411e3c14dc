"""The queue hands out each pod once, in order, and brings it back when that may help."""

from __future__ import annotations

import random

import pytest

from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.queue import Place, QueuedPod, SchedulingQueue
from tests.unit.scheduler.making import pod


class Gates:
    """Gates that a test opens and closes."""

    def __init__(self) -> None:
        self.closed: dict[str, str] = {}

    def __call__(self, info: PodInfo) -> str | None:
        return self.closed.get(info.name)


@pytest.fixture
def gates() -> Gates:
    return Gates()


@pytest.fixture
def queue(gates: Gates) -> SchedulingQueue:
    return SchedulingQueue(gates)


def popped(queue: SchedulingQueue, now: float) -> QueuedPod:
    entry = queue.pop(now)
    assert entry is not None
    return entry


def always(entry: QueuedPod) -> bool:
    return True


def test_priority_comes_before_age(queue: SchedulingQueue) -> None:
    for when, (name, priority) in enumerate([("old", 0), ("young", 0), ("high", 7)]):
        queue.add(pod(name, priority=priority), when)
    assert [popped(queue, 9).pod.name for _ in range(3)] == ["high", "old", "young"]
    assert queue.pop(9) is None


def test_a_gated_pod_is_not_tried_until_its_gate_opens(queue: SchedulingQueue, gates: Gates) -> None:
    gates.closed["p"] = "no claim yet"
    entry = queue.add(pod("p"), 0)
    assert queue.pop(1) is None
    assert (entry.place, entry.gate) == (Place.GATED, "no claim yet")
    del gates.closed["p"]
    assert queue.regate(2) == [entry]
    assert popped(queue, 2) is entry
    assert entry.gate == ""


def test_an_unschedulable_pod_waits_for_an_event_that_can_help(queue: SchedulingQueue) -> None:
    queue.add(pod("p"), 0)
    entry = popped(queue, 0)
    queue.failed(entry, {"NodeResourcesFit"}, 0)
    assert queue.wake(lambda e: "DynamicResources" in e.rejected_by, 5) == 0
    assert queue.pop(5) is None
    assert queue.wake(lambda e: "NodeResourcesFit" in e.rejected_by, 6) == 1
    assert popped(queue, 6) is entry


def test_a_woken_pod_still_in_its_pause_is_taken_early_when_nothing_else_waits(queue: SchedulingQueue) -> None:
    queue.add(pod("p"), 0)
    entry = popped(queue, 0)
    queue.failed(entry, {"x"}, 0)
    queue.wake(always, 0.1)
    assert entry.place is Place.BACKOFF
    queue.add(pod("other"), 0.2)
    assert popped(queue, 0.2).pod.name == "other"
    assert popped(queue, 0.2) is entry


@pytest.mark.parametrize("errors", [1, 2, 3, 4, 5, 6])
def test_errors_are_retried_after_a_pause_that_doubles_up_to_ten_seconds(queue: SchedulingQueue, errors: int) -> None:
    queue.add(pod("p"), 0)
    now = 0.0
    for count in range(1, errors + 1):
        entry = popped(queue, now)
        queue.errored(entry, now)
        pause = min(2 ** (count - 1), 10)
        assert queue.next_flush() == now + pause
        assert queue.pop(now + pause - 0.01) is None
        now += pause


def test_nobody_waits_for_an_event_longer_than_five_minutes(queue: SchedulingQueue) -> None:
    queue.add(pod("p"), 0)
    entry = popped(queue, 0)
    queue.failed(entry, {"x"}, 0)
    assert queue.next_flush() == 300
    assert queue.pop(299.9) is None
    assert popped(queue, 300) is entry


def test_an_event_during_the_binding_is_not_lost(queue: SchedulingQueue) -> None:
    queue.add(pod("p"), 0)
    entry = popped(queue, 0)
    queue.wake(always, 0.5)
    queue.failed(entry, {"x"}, 1)
    assert entry.place is Place.BACKOFF


def test_a_pod_deleted_in_flight_does_not_come_back(queue: SchedulingQueue) -> None:
    queue.add(pod("p"), 0)
    entry = popped(queue, 0)
    queue.remove("uid-p")
    queue.failed(entry, {"x"}, 1)
    queue.errored(entry, 1)
    assert len(queue) == 0
    assert queue.pop(100) is None


def test_a_failed_pod_whose_claim_vanished_meanwhile_is_gated(queue: SchedulingQueue, gates: Gates) -> None:
    queue.add(pod("p"), 0)
    entry = popped(queue, 0)
    gates.closed["p"] = "gone"
    queue.errored(entry, 0)
    assert entry.place is Place.GATED
    assert queue.pop(20) is None


def test_every_pod_is_in_exactly_one_place_whatever_happens(queue: SchedulingQueue, gates: Gates) -> None:
    rng = random.Random(7)
    names = [f"p{i}" for i in range(12)]
    flying: list[QueuedPod] = []
    now = 0.0
    for _ in range(3000):
        now += rng.random() * 3
        name = rng.choice(names)
        match rng.randrange(9):
            case 0 | 1:
                queue.add(pod(name, priority=rng.randrange(3)), now)
            case 2:
                queue.remove(f"uid-{name}")
            case 3:
                gates.closed[name] = "closed"
            case 4:
                gates.closed.pop(name, None)
                queue.regate(now)
            case 5:
                entry = queue.pop(now)
                if entry is not None:
                    assert all(
                        other.pod.uid != entry.pod.uid or queue.get(entry.pod.uid) is not other for other in flying
                    )
                    flying.append(entry)
            case 6:
                queue.wake(lambda e: rng.random() < 0.5, now)
            case 7 if flying:
                queue.failed(flying.pop(), {"x"}, now)
            case 8 if flying:
                queue.errored(flying.pop(), now)
        assert sum(queue.counts().values()) == len(queue)
        for place in Place:
            assert all(entry.place is place for entry in queue.waiting(place))
