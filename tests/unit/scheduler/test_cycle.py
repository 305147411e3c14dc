"""Attempts to place pods: which node, which devices, and the whole message when there is none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubedra.allocation.violations import Violation
from kubedra.scheduler.cycle import NoPlace, Placed
from kubedra.scheduler.verdicts import AttemptError
from tests.unit.scheduler.making import (
    Cluster,
    allocated_on,
    claim,
    device_class,
    exactly,
    node,
    pod,
    slice_of,
    using,
)

SUFFIX = "preemption: 0/{n} nodes are available: {n} Preemption is not helpful for scheduling."


def unhelpful(nodes: int) -> str:
    return SUFFIX.format(n=nodes)


def test_no_nodes() -> None:
    assert Cluster().refused(pod("p")) == "no nodes available to schedule pods"


def test_the_emptiest_node_wins_and_equal_ones_take_turns() -> None:
    cluster = Cluster(node("a"), node("b"), node("c"))
    assert [cluster.node_of(pod(f"p{i}", cpu="1")) for i in range(6)] == ["a", "b", "c", "a", "b", "c"]
    cluster.view.forget("uid-p1")
    assert cluster.node_of(pod("q", cpu="1")) == "b"


def test_the_walk_goes_from_zone_to_zone() -> None:
    zone = "topology.kubernetes.io/zone"
    cluster = Cluster(*(node(name, labels={zone: name[0]}) for name in ("a1", "a2", "b1", "b2")))
    assert [cluster.node_of(pod(f"p{i}")) for i in range(4)] == ["a1", "b1", "a2", "b2"]


def test_preferences_outweigh_emptiness() -> None:
    cluster = Cluster(node("a"), node("b", labels={"fast": "yes"}))
    term = {"weight": 1, "preference": {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}}
    wants = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert [cluster.node_of(pod(f"p{i}", cpu="1", affinity=wants)) for i in range(2)] == ["b", "b"]


def test_soft_taints_are_avoided() -> None:
    cluster = Cluster(node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}]), node("b"))
    assert [cluster.node_of(pod(f"p{i}", cpu="1")) for i in range(2)] == ["b", "b"]


def test_a_pod_that_uses_what_is_not_implemented_is_told_the_field() -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "x"}}
    message = Cluster(node("a")).refused(pod("p", volumes=[volume]))
    assert message.startswith("spec.volumes[0].persistentVolumeClaim: ")


def with_devices(**devices: tuple[str, ...]) -> Cluster:
    cluster = Cluster(*(node(name) for name in devices))
    cluster.add(device_class(), *(slice_of(name, *names) for name, names in devices.items() if names))
    return cluster


def test_devices_decide_before_emptiness() -> None:
    cluster = with_devices(a=(), b=("x",))
    cluster.add(claim("c"))
    verdict = cluster.place(using("p", "c"))
    assert isinstance(verdict, Placed)
    assert verdict.node == "b"
    (reserved,) = verdict.reserved
    assert reserved.allocation is not None
    assert reserved.allocation.devices is not None
    assert [result.device for result in reserved.allocation.devices.results] == ["x"]


def test_a_device_that_was_decided_on_is_taken_before_it_is_written() -> None:
    cluster = with_devices(a=("x",))
    cluster.add(claim("c"), claim("d"))
    assert cluster.node_of(using("p", "c")) == "a"
    assert cluster.refused(using("q", "d")) == (
        f"0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, {unhelpful(1)}"
    )


def test_a_device_that_is_given_back_can_be_had_again() -> None:
    cluster = with_devices(a=("x",))
    cluster.add(claim("c"), claim("d"), claim("e"))
    cluster.node_of(using("p", "c"))
    cluster.refused(using("q", "d"))
    cluster.store.drop_pending("uid-c", cluster.store.get(("t", "c")))
    assert cluster.node_of(using("r", "e")) == "a"


def test_a_claim_in_flight_is_waited_for() -> None:
    cluster = with_devices(a=("x",))
    cluster.add(claim("c"))
    cluster.node_of(using("p", "c"))
    assert cluster.refused(using("q", "c")) == (
        "0/1 nodes are available: resource claim t/c is in the process of being allocated."
        f" no new claims to deallocate, {unhelpful(1)}"
    )


def test_a_missing_class_refuses_the_pod_everywhere() -> None:
    cluster = Cluster(node("a"))
    cluster.add(claim("c", exactly("r", "nope")))
    assert cluster.refused(using("p", "c")) == (
        "0/1 nodes are available: request r: device class nope does not exist."
        f" no new claims to deallocate, {unhelpful(1)}"
    )


def test_an_allocated_claim_pins_the_pod_and_a_fresh_one_follows() -> None:
    cluster = with_devices(a=("x", "y"), b=("x", "y"))
    cluster.add(claim("c", status=allocated_on("b", "x")), claim("d"))
    verdict = cluster.place(using("p", "c", "d"))
    assert isinstance(verdict, Placed)
    assert verdict.node == "b"
    old, fresh = verdict.reserved
    assert old.allocation is None
    assert fresh.allocation is not None
    assert fresh.allocation.devices is not None
    assert fresh.allocation.devices.results[0].device == "y"


@pytest.mark.parametrize(
    ("reserved", "after", "rescued"),
    [
        ((), "deallocation of ResourceClaim completed", True),
        (("p",), "deallocation of ResourceClaim completed", True),
        (("q",), "still not schedulable", False),
    ],
)
def test_a_claim_nobody_else_uses_is_given_back_when_it_is_in_the_way(
    reserved: tuple[str, ...], after: str, rescued: bool
) -> None:
    cluster = with_devices(a=("x",), b=("x",))
    cluster.add(claim("c", status=allocated_on("a", "x", reserved=reserved)))
    verdict = cluster.place(using("p", "c", nodeSelector={"kubernetes.io/hostname": "b"}))
    assert isinstance(verdict, NoPlace)
    assert verdict.message == (
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector,"
        f" 1 resourceclaim not available on the node. {after}, {unhelpful(2)}"
    )
    assert (verdict.rescue is not None) is rescued


def test_an_error_of_a_selector_ends_the_attempt() -> None:
    cluster = Cluster(node("a"), node("b"))
    cluster.add(device_class(selector="error no such key: k"), slice_of("a", "x"), claim("c"))
    verdict = cluster.place(using("p", "c"))
    assert isinstance(verdict, AttemptError)
    assert verdict.message.startswith('running "DynamicResources" filter plugin: class gpu: selector #0')


def test_earlier_alternatives_make_a_node_better() -> None:
    cluster = Cluster(*(node(name) for name in ("a", "b", "c")))
    cluster.add(device_class(), *(slice_of(n, "x", k="big" if n == "b" else "small") for n in ("a", "b", "c")))
    alternatives = [
        {
            "name": k,
            "deviceClassName": "gpu",
            "allocationMode": "ExactCount",
            "count": 1,
            "selectors": [{"cel": {"expression": f"k={k}"}}],
        }
        for k in ("big", "small")
    ]
    cluster.add(claim("c", {"name": "r", "firstAvailable": alternatives}))
    assert cluster.node_of(using("p", "c")) == "b"


def test_many_nodes_are_answered_like_few() -> None:
    cluster = Cluster(*(node(f"n{i:02}") for i in range(40)))
    cluster.add(device_class(), *(slice_of(f"n{i:02}", "x", k="big" if i == 33 else "small") for i in range(40)))
    cluster.add(claim("c", exactly("r", selector="k=big")), claim("d", exactly("r", selector="k=big")))
    assert cluster.node_of(using("p", "c")) == "n33"
    assert cluster.refused(using("q", "d")).startswith("0/40 nodes are available: 40 cannot allocate all claims.")


def test_an_extended_resource_becomes_a_claim_where_the_node_has_none_of_it() -> None:
    cluster = with_devices(a=("x", "y"))
    cluster.add(device_class("bridge", extendedResourceName="example.com/gpu"))
    verdict = cluster.place(pod("p", requests={"example.com/gpu": "2"}))
    assert isinstance(verdict, Placed)
    (reserved,) = verdict.reserved
    assert reserved.extended
    assert [request.name for request in reserved.claim.spec.devices.requests] == ["container-0-request-0"]  # type: ignore[union-attr]
    assert [(m.container_name, m.request_name) for m in reserved.mappings] == [("c", "container-0-request-0")]


def test_devices_that_skip_node_operations_need_a_node_that_declares_them() -> None:
    cluster = with_devices(a=("x",))
    skipping = slice_of("b", "y")
    skipping = replace(skipping, spec=replace(skipping.spec, skip_node_operations=("*",)))
    plain = node("b")
    cluster.intake.node(None, plain, cluster.now)
    cluster.add(skipping, claim("c", exactly("r", selector="all")))
    assert cluster.node_of(using("p", "c")) == "a"
    cluster.add(claim("d", exactly("r", selector="all")))
    assert "does not declare the feature DRAOptionalNodeOperations" in cluster.refused(using("q", "d"))
    declaring = replace(plain, status=replace(plain.status, declared_features=("DRAOptionalNodeOperations",)))
    cluster.intake.node(plain, declaring, cluster.now)
    assert cluster.node_of(using("q", "d")) == "b"


class Refusing:
    """An independent checker that finds something wrong with everything."""

    def check_new(self, new: object, node: str) -> list[Violation]:
        """Refuse."""
        return [Violation("device-held-twice", "device d", f"on {node}")]


def test_nothing_is_taken_that_the_independent_checker_refuses() -> None:
    cluster = with_devices(a=("x",))
    cluster.add(claim("c"))
    before = cluster.ledger.snapshot()
    cluster.store.checker = Refusing()  # type: ignore[assignment]
    verdict = cluster.place(using("p", "c"))
    assert isinstance(verdict, AttemptError)
    assert "checker refused its allocation on node a: device d: on a (device-held-twice)" in verdict.message
    assert cluster.ledger.snapshot() == before
    cluster.store.checker = None
    assert cluster.node_of(using("p", "c")) == "a"
