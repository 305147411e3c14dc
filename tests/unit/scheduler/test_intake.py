"""Events wake the pods that they can help, and no others."""

from __future__ import annotations

from typing import Any

import msgspec

from kubedra.api import core_v1
from kubedra.scheduler.cycle import NoPlace
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.queue import Place
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


def pending(cluster: Cluster, wanted: PodInfo) -> None:
    """Let an attempt for the pod fail; its pause is over at once."""
    cluster.add(wanted)
    attempt(cluster, wanted)


def attempt(cluster: Cluster, wanted: PodInfo) -> None:
    entry = cluster.queue.pop(cluster.now)
    assert entry is not None
    assert entry.pod.name == wanted.name
    verdict = cluster.place(entry.pod)
    assert isinstance(verdict, NoPlace), verdict
    cluster.queue.failed(entry, verdict.plugins, cluster.now)
    cluster.now += 20


def place_of(cluster: Cluster, name: str) -> Place:
    entry = cluster.queue.get(f"uid-{name}")
    assert entry is not None
    return entry.place


def change(raw: core_v1.Pod, **spec: Any) -> core_v1.Pod:
    return msgspec.structs.replace(raw, spec=msgspec.structs.replace(raw.spec, **spec))


def test_a_pod_waits_for_room() -> None:
    cluster = Cluster(node("a"))
    big, small = pod("big", node="a", cpu="7"), pod("small", node="a", cpu="1")
    cluster.add(big, small)
    pending(cluster, pod("p", cpu="4"))
    cluster.intake.pod(small.pod, None, cluster.now)
    assert place_of(cluster, "p") is Place.UNSCHEDULABLE
    cluster.intake.pod(big.pod, None, cluster.now)
    assert place_of(cluster, "p") is Place.ACTIVE


def test_a_finished_pod_leaves_room() -> None:
    cluster = Cluster(node("a"))
    big = pod("big", node="a", cpu="7").pod
    cluster.add(big)
    pending(cluster, pod("p", cpu="4"))
    done = msgspec.structs.replace(big, status=core_v1.PodStatus(phase="Succeeded"))
    cluster.intake.pod(big, done, cluster.now)
    assert place_of(cluster, "p") is Place.ACTIVE


def test_a_heartbeat_wakes_nobody_a_label_does() -> None:
    plain = node("a")
    cluster = Cluster(plain)
    pending(cluster, pod("p", nodeSelector={"k": "v"}))
    beat = msgspec.structs.replace(
        plain, status=msgspec.structs.replace(plain.status, conditions=(core_v1.NodeCondition(type="Ready"),))
    )
    cluster.intake.node(plain, beat, cluster.now)
    assert place_of(cluster, "p") is Place.UNSCHEDULABLE
    cluster.intake.node(plain, node("a", labels={"other": "v"}), cluster.now)
    assert place_of(cluster, "p") is Place.UNSCHEDULABLE
    cluster.intake.node(plain, node("a", labels={"k": "v"}), cluster.now)
    assert place_of(cluster, "p") is Place.ACTIVE


def test_the_first_node_wakes_whoever_waits_for_any() -> None:
    cluster = Cluster()
    pending(cluster, pod("p"))
    cluster.intake.node(None, node("a"), cluster.now)
    assert place_of(cluster, "p") is Place.ACTIVE


def short_of_devices() -> Cluster:
    cluster = Cluster(node("a"))
    cluster.add(device_class(), slice_of("a", "x"), claim("held", status=allocated_on("a", "x")), claim("c"))
    pending(cluster, using("p", "c"))
    return cluster


def test_a_slice_wakes_pods_that_wait_for_devices() -> None:
    cluster = short_of_devices()
    cluster.add(slice_of("a", "y", driver="e.example"))
    assert place_of(cluster, "p") is Place.ACTIVE


def test_a_slice_does_not_wake_pods_that_wait_for_cpu() -> None:
    cluster = Cluster(node("a"))
    pending(cluster, pod("p", cpu="9"))
    cluster.add(slice_of("a", "x"))
    assert place_of(cluster, "p") is Place.UNSCHEDULABLE


def test_a_freed_device_wakes_everybody_who_waits_for_devices() -> None:
    cluster = short_of_devices()
    held = cluster.store.get(("t", "held"))
    cluster.intake.claim(held, claim("held", version=2), cluster.now)
    cluster.intake.settle(cluster.now)
    assert place_of(cluster, "p") is Place.ACTIVE


def test_a_claim_that_vanishes_frees_its_devices_too() -> None:
    cluster = short_of_devices()
    cluster.intake.claim(cluster.store.get(("t", "held")), None, cluster.now)
    cluster.intake.settle(cluster.now)
    assert place_of(cluster, "p") is Place.ACTIVE


def test_a_new_claim_of_somebody_else_wakes_nobody() -> None:
    cluster = short_of_devices()
    cluster.add(claim("other"))
    assert place_of(cluster, "p") is Place.UNSCHEDULABLE


def test_a_slice_that_did_not_change_wakes_nobody() -> None:
    cluster = short_of_devices()
    again = slice_of("a", "x")
    cluster.intake.resource_slice(again, slice_of("a", "x"), cluster.now)
    cluster.intake.settle(cluster.now)
    assert place_of(cluster, "p") is Place.UNSCHEDULABLE


def test_a_class_wakes_pods_that_missed_it() -> None:
    cluster = Cluster(node("a"))
    cluster.add(slice_of("a", "x"), claim("c", exactly("r", "late")))
    pending(cluster, using("p", "c"))
    cluster.add(device_class("late"))
    assert place_of(cluster, "p") is Place.ACTIVE


def test_a_class_for_an_extended_resource_wakes_pods_that_lack_it() -> None:
    cluster = Cluster(node("a"))
    pending(cluster, pod("p", requests={"example.com/gpu": "1"}))
    cluster.add(device_class("gpu", extendedResourceName="example.com/other"))
    assert place_of(cluster, "p") is Place.UNSCHEDULABLE
    cluster.add(device_class("gpu2", extendedResourceName="example.com/gpu"))
    assert place_of(cluster, "p") is Place.ACTIVE


def test_a_class_does_not_wake_pods_that_fit_no_node_for_other_reasons() -> None:
    cluster = Cluster(node("a"))
    pending(cluster, pod("p", requests={"example.com/gpu": "1"}, nodeSelector={"k": "v"}))
    cluster.add(device_class("gpu", extendedResourceName="example.com/gpu"))
    assert place_of(cluster, "p") is Place.UNSCHEDULABLE


def test_a_pod_is_held_back_until_its_claim_exists() -> None:
    cluster = Cluster(node("a"))
    cluster.add(using("p", "c"))
    assert place_of(cluster, "p") is Place.GATED
    cluster.add(claim("c"))
    assert place_of(cluster, "p") is Place.ACTIVE


def test_a_pod_that_was_bound_is_not_pending_any_more() -> None:
    cluster = Cluster(node("a"))
    wanted = pod("p")
    cluster.add(wanted)
    cluster.intake.pod(wanted.pod, change(wanted.pod, node_name="a"), cluster.now)
    assert cluster.queue.get("uid-p") is None
    assert cluster.view.node_of("uid-p") == "a"


def test_pods_of_other_schedulers_are_left_alone() -> None:
    cluster = Cluster(node("a"))
    cluster.add(pod("p", schedulerName="other"))
    assert len(cluster.queue) == 0


def test_a_pod_made_again_under_its_name_replaces_the_old_one() -> None:
    cluster = Cluster(node("a"))
    old = pod("p", node="a", cpu="8").pod
    cluster.add(old)
    again = msgspec.structs.replace(pod("p").pod, metadata=msgspec.structs.replace(old.metadata, uid="new"))
    cluster.intake.pod(old, again, cluster.now)
    assert cluster.view.node_of("uid-p") is None
    assert cluster.queue.get("new") is not None
