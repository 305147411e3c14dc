"""Devices with binding conditions: ready, failed, or given up on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kubedra.api.resource_v1 import ResourceClaim
from kubedra.scheduler.binding_conditions import Failed, check, has_conditions, unusable
from tests.unit.scheduler.making import allocated_on, claim

STARTED = "2026-01-01T00:00:00Z"


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)


def waiting(*conditions: tuple[str, str], share: str = "", reported_share: str = "") -> ResourceClaim:
    status: dict[str, Any] = allocated_on("n", "x")
    result = status["allocation"]["devices"]["results"][0]
    result |= {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    if share:
        result["shareID"] = share
    status["allocation"]["allocationTimestamp"] = STARTED
    status["devices"] = [
        {
            "driver": "d.example",
            "pool": "n",
            "device": "x",
            **({"shareID": reported_share} if reported_share else {}),
            "conditions": [
                {"type": type_, "status": value, "reason": "R", "message": "msg", "lastTransitionTime": STARTED}
                for type_, value in conditions
            ],
        }
    ]
    return claim("c", status=status)


def test_ready_when_all_conditions_are_true() -> None:
    assert check(waiting(("ready", "True"))) is True
    assert check(waiting(("ready", "False"))) is False
    assert check(waiting()) is False
    assert check(claim("c", status=allocated_on("n", "x"))) is True


def test_a_failure_condition_wins() -> None:
    state = check(waiting(("ready", "True"), ("broken", "True")))
    assert isinstance(state, Failed)
    assert state.message == 'device binding failed: claim=c, reason=R, message="msg"'
    assert unusable(waiting(("broken", "True")), at(0), 10)


def test_the_time_runs_from_the_allocation() -> None:
    assert not unusable(waiting(), at(9), 10)
    assert unusable(waiting(), at(11), 10)
    assert not unusable(waiting(("ready", "True")), at(11), 10)


def test_shares_of_a_device_are_told_apart() -> None:
    assert check(waiting(("ready", "True"), share="s", reported_share="s")) is True
    assert check(waiting(("ready", "True"), share="s")) is True


def test_only_conditions_make_a_claim_wait() -> None:
    assert has_conditions(waiting())
    assert not has_conditions(claim("c", status=allocated_on("n", "x")))
