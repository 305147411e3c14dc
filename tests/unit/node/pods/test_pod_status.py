"""A pod's status as the node tells it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubedra.api import codec
from kubedra.api.core_v1 import Pod
from kubedra.node.pods.status import ContainerRecord, PodFacts, Run, pod_status, qos_class
from kubedra.node.runtime.contract import ContainerExit

NOW = "2026-01-01T00:00:10Z"
FACTS = PodFacts(NOW, "10.0.0.1", "process", "2026-01-01T00:00:00Z", initialized=True, prepared=True)
RUN = Run("id", "2026-01-01T00:00:01.5Z")


def build(**more: Any) -> Pod:
    tree = {"metadata": {"name": "p", "generation": 2}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}, **more}
    return codec.from_tree(Pod, tree)


def ended(code: int) -> Run:
    return Run("id", "2026-01-01T00:00:01.5Z", ContainerExit(code, finished="2026-01-01T00:00:02.25Z"))


def test_a_running_pod_is_ready() -> None:
    status = pod_status(build(), {"a": ContainerRecord(RUN), "b": ContainerRecord(RUN)}, FACTS)
    assert status["phase"] == "Running"
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": "2026-01-01T00:00:01Z"}}
    assert status["containerStatuses"][0]["containerID"] == "process://id"
    assert {c["type"]: c["status"] for c in status["conditions"]}["Ready"] == "True"


def test_containers_that_are_not_ready_are_named() -> None:
    waiting = ContainerRecord(ended(1), None, 3, "CrashLoopBackOff", "back-off 10s")
    status = pod_status(build(), {"a": ContainerRecord(RUN), "b": waiting}, FACTS)
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert (ready["reason"], ready["message"]) == ("ContainersNotReady", "containers with unready status: [b]")
    crashing = status["containerStatuses"][1]
    assert crashing["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    assert crashing["lastState"]["terminated"]["exitCode"] == 1
    assert crashing["restartCount"] == 3
    assert status["phase"] == "Running"


def test_a_pod_that_ended_counts_as_running_until_nothing_is_left() -> None:
    records = {"a": ContainerRecord(ended(0)), "b": ContainerRecord(ended(3))}
    before = pod_status(build(), records, FACTS)
    assert before["phase"] == "Running"
    assert before["containerStatuses"][1]["state"]["terminated"]["reason"] == "Error"
    after = pod_status(build(), records, msgspec.structs.replace(FACTS, ended="Failed"))
    assert after["phase"] == "Failed"
    assert {c["type"]: c["reason"] for c in after["conditions"]}["Ready"] == "PodFailed"


def test_a_new_pod_waits() -> None:
    facts = PodFacts(NOW, start_time=NOW)
    status = pod_status(build(), {"a": ContainerRecord(), "b": ContainerRecord()}, facts)
    assert status["phase"] == "Pending"
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert "podIP" not in status


def test_conditions_keep_their_time_while_they_say_the_same() -> None:
    old = "2025-01-01T00:00:00Z"
    conditions = [
        {"type": "Ready", "status": "True", "lastTransitionTime": old},
        {"type": "ContainersReady", "status": "False", "lastTransitionTime": old},
    ]
    pod = build(status={"conditions": conditions})
    status = pod_status(pod, {"a": ContainerRecord(RUN), "b": ContainerRecord(RUN)}, FACTS)
    times = {c["type"]: c["lastTransitionTime"] for c in status["conditions"]}
    assert (times["Ready"], times["ContainersReady"]) == (old, NOW)


@pytest.mark.parametrize(
    ("resources", "answer"),
    [
        ({}, "BestEffort"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}}, "Guaranteed"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"example.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_quality_of_service(resources: dict[str, Any], answer: str) -> None:
    pod = codec.from_tree(Pod, {"spec": {"containers": [{"name": "a", "resources": resources}]}})
    assert qos_class(pod) == answer
