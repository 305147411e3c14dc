"""The PodScheduled condition says what is new, within its limits, and is otherwise left alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubedra.api import core_v1
from kubedra.scheduler.conditions import MESSAGE_BYTES, Outcome, compose, is_news, patch
from tests.unit.scheduler.making import pod

NOW = "2026-01-02T00:00:00Z"
EARLIER = "2026-01-01T00:00:00Z"


def with_condition(**fields: str) -> core_v1.Pod:
    condition: dict[str, Any] = {"type": "PodScheduled", "lastTransitionTime": EARLIER, **fields}
    status = msgspec.convert({"conditions": [condition]}, core_v1.PodStatus)
    return msgspec.structs.replace(pod("p").pod, status=status)


def test_upstream_comes_first_and_is_the_last_to_be_cut() -> None:
    assert compose("theirs.", "ours.") == "theirs. ours."
    assert compose("theirs.", "") == "theirs."
    long = compose("theirs.", "ö" * 2000)
    assert long.startswith("theirs. ö")
    assert long.endswith("...")
    assert len(long.encode()) <= MESSAGE_BYTES


@pytest.mark.parametrize(
    ("known", "news"),
    [
        ({"status": "False", "reason": "Unschedulable", "message": "0/3 nodes: 2 Insufficient cpu"}, False),
        ({"status": "False", "reason": "Unschedulable", "message": "0/4 nodes: 4 Insufficient memory"}, True),
        ({"status": "False", "reason": "SchedulerError", "message": "0/4 nodes: 4 Insufficient cpu"}, True),
        ({"status": "True"}, True),
    ],
)
def test_other_numbers_are_no_news(known: dict[str, str], news: bool) -> None:
    outcome = Outcome("Unschedulable", "0/4 nodes: 4 Insufficient cpu")
    assert is_news(with_condition(**known), outcome) is news


def test_a_nomination_to_be_cleared_is_news() -> None:
    known = with_condition(status="False", reason="Unschedulable", message="m")
    nominated = msgspec.structs.replace(known, status=msgspec.structs.replace(known.status, nominated_node_name="n1"))
    assert is_news(nominated, Outcome("Unschedulable", "m", nominated=""))
    assert not is_news(known, Outcome("Unschedulable", "m", nominated=""))


def test_the_transition_time_moves_only_with_the_status() -> None:
    outcome = Outcome("Unschedulable", "m")
    (condition,) = patch(with_condition(status="False"), outcome, NOW)["status"]["conditions"]
    assert condition["lastTransitionTime"] == EARLIER
    (condition,) = patch(pod("p").pod, outcome, NOW)["status"]["conditions"]
    assert condition["lastTransitionTime"] == NOW
