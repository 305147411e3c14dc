"""What a pod's containers do next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubedra.api import codec
from kubedra.api.core_v1 import Pod
from kubedra.node.pods.lifecycle import Backoff, Decision, View, decide, restarts

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUNS, NEW = View(running=True), View()


def ended(code: int, **more: Any) -> View:
    return View(False, exit_code=code, **more)


def pod(policy: str = "Always", init: tuple[str, ...] = (), mains: tuple[str, ...] = ("main",)) -> Pod:
    """Init containers whose name starts with ``side`` are sidecars."""
    inits = [{"name": n, **({"restartPolicy": "Always"} if n.startswith("side") else {})} for n in init]
    spec = {"restartPolicy": policy, "initContainers": inits, "containers": [{"name": name} for name in mains]}
    return codec.from_tree(Pod, {"metadata": {"name": "p"}, "spec": spec})


def run(got: Pod, **views: View) -> Decision:
    return decide(got, views, NOW)


def test_all_containers_start_together_once_the_init_containers_have_succeeded() -> None:
    got = pod(init=("i1", "i2"), mains=("a", "b"))
    assert run(got, i1=NEW, i2=NEW, a=NEW, b=NEW).start == ("i1",)
    assert run(got, i1=RUNS, i2=NEW, a=NEW, b=NEW) == Decision()
    assert run(got, i1=ended(0), i2=NEW, a=NEW, b=NEW).start == ("i2",)
    assert run(got, i1=ended(0), i2=ended(0), a=NEW, b=NEW) == Decision(("a", "b"), initialized=True)


def test_a_failed_init_container_is_tried_again_or_ends_the_pod() -> None:
    assert run(pod(init=("i",)), i=ended(1), main=NEW).start == ("i",)
    assert run(pod("Never", init=("i",)), i=ended(1), main=NEW).ended == "Failed"
    later = NOW + timedelta(seconds=5)
    assert run(pod(init=("i",)), i=ended(1, not_before=later), main=NEW) == Decision(wake_at=later)


def test_a_sidecar_is_started_before_what_follows_and_restarted_for_ever() -> None:
    got = pod("Never", init=("side", "i"))
    assert run(got, side=NEW, i=NEW, main=NEW).start == ("side",)
    assert run(got, side=RUNS, i=NEW, main=NEW).start == ("i",)
    assert run(got, side=ended(1), i=ended(0), main=RUNS).start == ("side",)


def test_sidecars_are_stopped_last_first_when_the_others_are_done() -> None:
    got = pod("Never", init=("side1", "side2"))
    assert run(got, side1=RUNS, side2=RUNS, main=ended(0)).stop == ("side2",)
    assert run(got, side1=RUNS, side2=ended(143), main=ended(0)).stop == ("side1",)
    assert run(got, side1=ended(143), side2=ended(143), main=ended(0)).ended == "Succeeded"
    failing = pod("Never", init=("side1", "i"))
    assert run(failing, side1=RUNS, i=ended(1), main=NEW).stop == ("side1",)
    assert run(failing, side1=ended(143), i=ended(1), main=NEW).ended == "Failed"


@pytest.mark.parametrize(
    ("policy", "codes", "answer"),
    [
        ("Always", (0, 0), ""),
        ("OnFailure", (0, 0), "Succeeded"),
        ("OnFailure", (0, 1), ""),
        ("Never", (0, 0), "Succeeded"),
        ("Never", (1, 0), "Failed"),
    ],
)
def test_the_restart_policy_says_when_a_pod_is_over(policy: str, codes: tuple[int, int], answer: str) -> None:
    got = run(pod(policy, mains=("a", "b")), a=ended(codes[0]), b=ended(codes[1]))
    assert got.ended == answer
    if not answer:
        assert got.start


def test_a_container_may_have_rules_of_its_own() -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "restartPolicyRules": rules}]}
    got = codec.from_tree(Pod, {"spec": spec})
    assert restarts(got, got.spec.containers[0], 42)
    assert not restarts(got, got.spec.containers[0], 1)


def test_the_first_restart_is_immediate_and_then_waits_double() -> None:
    backoff = Backoff()
    assert [backoff.delay(crashes) for crashes in (1, 2, 3, 4, 5, 6, 7, 100)] == [0, 10, 20, 40, 80, 160, 300, 300]
