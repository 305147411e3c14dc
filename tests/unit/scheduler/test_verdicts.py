"""The aggregate message, in the words that a real kube-scheduler 1.36.2 was seen to use."""

from __future__ import annotations

from kubedra.scheduler.verdicts import Refusal, aggregate, rejection

NO_DEVICES = rejection("DynamicResources", "cannot allocate all claims", unresolvable=True)
NO_CPU = rejection("NodeResourcesFit", "Insufficient cpu", unresolvable=True)
TAINTED = rejection("TaintToleration", "node(s) had untolerated taint(s)", unresolvable=True)


def test_reasons_are_counted_and_sorted_as_text() -> None:
    assert aggregate(4, {"a": NO_DEVICES, "b": TAINTED, "c": NO_CPU, "d": TAINTED}, after="still not schedulable") == (
        "0/4 nodes are available: 1 Insufficient cpu, 1 cannot allocate all claims, 2 node(s) had untolerated taint(s)."
        " still not schedulable, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    )


def test_what_refuses_a_pod_everywhere_has_no_count() -> None:
    refusal = Refusal("DynamicResources", "request r: device class nope does not exist")
    assert aggregate(1, {}, refusal=refusal, after="no new claims to deallocate") == (
        "0/1 nodes are available: request r: device class nope does not exist. no new claims to deallocate,"
        " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_nodes_where_evicting_could_help_are_without_victims() -> None:
    full = rejection("NodeResourcesFit", "Insufficient cpu")
    assert aggregate(2, {"a": full, "b": TAINTED}, after="still not schedulable").endswith(
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod,"
        " 1 Preemption is not helpful for scheduling."
    )
