"""What a pod waits for before any node is looked at, first things first."""

from __future__ import annotations

import pytest

from kubedra.api import coordination_v1, core_v1, meta_v1
from kubedra.base.features import FeatureGates
from kubedra.insight.snapshots import Unseen
from kubedra.insight.why import NoSuchObject
from tests.unit.insight.clusters import Tree, ask, claim, class_of, held, node, pod, request, slice_of, snapshot

TEMPLATE: Tree = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "big-gpu", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [request()]}}},
}


def templated(name: str, template: str) -> Tree:
    made = pod(name)
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return made


def event(reason: str, message: str, about: str = "uid-p", component: str = "kubelet") -> core_v1.Event:
    return core_v1.Event(
        involved_object=core_v1.ObjectReference(uid=about),
        reason=reason,
        message=message,
        reporting_component=component,
        first_timestamp="2026-01-01T11:55:00Z",
        last_timestamp="2026-01-01T11:59:00Z",
        count=7,
    )


def test_a_missing_template_is_named_with_the_nearest_one() -> None:
    answer, text = ask(snapshot(slice_of("n1", ["a"]), TEMPLATE, templated("p", "big-gpus")))
    assert answer.reasons[0].code == "template-missing"
    assert "there is no ResourceClaimTemplate 'big-gpus' in the namespace default" in text
    assert "did you mean 'big-gpu'?" in text
    assert answer.exit_code == 3


def test_a_claim_that_is_not_created_yet_points_at_the_controller_and_its_event() -> None:
    answer, text = ask(snapshot(slice_of("n1", ["a"]), TEMPLATE, templated("p", "big-gpu")))
    assert answer.reasons[0].code == "claim-not-created"
    assert "kube-controller-manager" in text
    told = event("FailedResourceClaimCreation", "quota exceeded")
    _, text = ask(snapshot(slice_of("n1", ["a"]), TEMPLATE, templated("p", "big-gpu"), events=(told,)))
    assert "quota exceeded" in text


def test_a_claim_that_does_not_exist_is_told_apart_from_one_that_can_not_be_seen() -> None:
    found = snapshot(slice_of("n1", ["a"]), claim("gpu-claim", request()), pod("p", "gpuclaim"))
    answer, text = ask(found)
    assert answer.reasons[0].code == "claim-missing"
    assert "did you mean 'gpu-claim'?" in text


def test_a_claim_being_deleted_names_who_still_uses_it() -> None:
    old = held("x", "a", pods=["q"])
    old["metadata"]["deletionTimestamp"] = "2026-01-01T11:00:00Z"
    answer, text = ask(snapshot(slice_of("n1", ["a"]), old, pod("q", "x", node_name="n1"), pod("p", "x")))
    assert answer.reasons[0].code == "claim-deleting"
    assert "being deleted since 60m" in text
    assert "pod q" in text


def test_a_claim_made_for_another_pod_is_told() -> None:
    foreign = claim("p-gpu", request(), ownerReferences=[_owner("old-p")])
    mine = templated("p", "big-gpu")
    mine["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "p-gpu"}]
    answer, text = ask(snapshot(slice_of("n1", ["a"]), TEMPLATE, foreign, mine))
    assert answer.reasons[0].code == "claim-foreign"
    assert "its owner is pod old-p" in text


def _owner(name: str) -> Tree:
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}


def test_a_gated_pod_names_its_gates() -> None:
    answer, text = ask(snapshot(slice_of("n1", ["a"]), pod("p", schedulingGates=[{"name": "queue.x/wait"}])))
    assert answer.reasons[0].code == "pod-gated"
    assert "queue.x/wait" in text


def test_a_scheduler_nobody_heard_of_is_told_when_it_had_its_time() -> None:
    heard = event("Scheduled", "ok", about="uid-other", component="default-scheduler")
    lost = pod("p", schedulerName="defualt-scheduler")
    answer, text = ask(snapshot(slice_of("n1", ["a"]), lost, live=True, events=(heard,)))
    assert answer.reasons[0].code == "no-scheduler"
    assert "no scheduler has looked at it for 12m" in text
    assert "did you mean 'default-scheduler'?" in text
    fresh = pod("p", metadata={"creationTimestamp": "2026-01-01T11:59:58Z"})
    answer, _ = ask(snapshot(slice_of("n1", ["a"]), fresh, live=True))
    assert answer.fits


def test_a_class_that_does_not_exist_names_the_nearest() -> None:
    wanted = claim("x", request(device_class="gpu.exmaple.com"))
    found = snapshot(slice_of("n1", ["a"]), class_of("gpu.example.com"), wanted, pod("p", "x"))
    answer, text = ask(found)
    assert answer.reasons[0].code == "class-missing"
    assert "did you mean 'gpu.example.com'?" in text


def test_a_feature_that_is_off_is_named() -> None:
    sub = {"name": "s", "deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
    wanted = claim("x", {"name": "r", "firstAvailable": [sub]})
    gates = FeatureGates("1.34", {"DRAPrioritizedList": False})
    answer, text = ask(snapshot(slice_of("n1", ["a"]), wanted, pod("p", "x"), gates=gates))
    assert answer.reasons[0].code == "feature-off"
    assert "feature gate DRAPrioritizedList" in text


def test_an_unknown_driver_is_told_with_time_times_and_log_lines() -> None:
    failed = event(
        "FailedPrepareDynamicResources",
        "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver d.example is not registered",
    )
    objects = (node("n1"), class_of(), held("x", "a", pods=["p"]), pod("p", "x", node_name="n1"))
    logs = {("n1", "d.example"): ("starting", "panic: no GPU")}
    answer, text = ask(snapshot(*objects, events=(failed,), live=True, driver_logs=logs))
    assert answer.reasons[0].code == "driver-not-registered"
    assert "the DRA driver d.example is not registered on the node n1, since 5m, 7 times" in text
    assert "it publishes devices of no node at all" in text
    assert "starting | panic: no GPU" in text
    assert answer.exit_code == 3


def test_an_error_of_a_driver_is_repeated_in_its_words() -> None:
    failed = event(
        "FailedPrepareDynamicResources",
        "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for"
        " ResourceClaim x: GPU has fallen off the bus",
    )
    objects = (slice_of("n1", ["a"]), held("x", "a", pods=["p"]), pod("p", "x", node_name="n1"))
    answer, text = ask(snapshot(*objects, events=(failed,), live=True))
    assert answer.reasons[0].code == "prepare-failed"
    assert "GPU has fallen off the bus" in text
    assert "driver d.example on n1" in text


def test_a_driver_that_publishes_nothing_any_more_is_suspected() -> None:
    objects = (node("n1"), class_of(), held("x", "a", pods=["p"]), pod("p", "x", node_name="n1"))
    answer, _ = ask(snapshot(*objects, live=True))
    assert answer.reasons[0].code == "driver-gone"


def test_a_pod_that_runs_or_has_ended_waits_for_nothing() -> None:
    running = {"containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "state": {"running": {}}}]}
    objects = (slice_of("n1", ["a"]), held("x", "a", pods=["p"]))
    answer, text = ask(snapshot(*objects, pod("p", "x", node_name="n1", phase="Running", status=running)))
    assert (answer.state, answer.exit_code) == ("runs", 0)
    assert "runs on the node n1" in text
    answer, _ = ask(snapshot(*objects, pod("p", "x", node_name="n1", phase="Succeeded")))
    assert (answer.state, answer.exit_code) == ("done", 0)


def test_a_claim_that_nobody_uses_says_what_happens_when_a_pod_does() -> None:
    found = snapshot(slice_of("n1", ["a"]), claim("x", request()))
    answer, text = ask(found, "claim/x")
    assert answer.exit_code == 0
    assert "such a pod fits on the node n1" in text
    answer, text = ask(snapshot(slice_of("n1", ["a"]), claim("x", request(count=2))), "claim/x")
    assert answer.exit_code == 3
    assert "does not fit" in text


def test_a_claim_answers_through_the_pod_that_waits_for_it() -> None:
    answer, text = ask(snapshot(slice_of("n1", ["a"]), claim("x", request(count=2)), pod("p", "x")), "claim/x")
    assert answer.exit_code == 3
    assert text.startswith("Claim default/x, used by pod default/p")


def test_what_could_not_be_seen_is_said_with_how_far_the_answer_holds() -> None:
    hidden = (
        Unseen("resourceclaims", "resourceclaims is forbidden", "default"),
        Unseen("deviceclasses", "deviceclasses is forbidden"),
    )
    objects = (slice_of("n1", ["a"]), claim("x", request(count=2)), pod("p", "x"))
    answer, text = ask(snapshot(*objects, unseen=hidden))
    assert "claims of other namespaces, so devices they hold count as free here" in text
    assert "only those of the namespace default were read" in text
    assert len(answer.to_tree()["notSeen"]) == 2


def test_a_pod_that_is_not_there_is_an_error_with_a_hint() -> None:
    found = snapshot(slice_of("n1", ["a"]), pod("trainer"))
    with pytest.raises(NoSuchObject, match="did you mean 'trainer'"):
        ask(found, "pod/trainr")
    hidden = snapshot(unseen=(Unseen("pods", "pods is forbidden"),))
    with pytest.raises(NoSuchObject, match="can't be seen: pods is forbidden"):
        ask(hidden, "pod/trainer")


def test_nodes_that_reject_the_pod_say_why_and_what_would_change_it() -> None:
    objects = (
        node("n1", unschedulable=True),
        node("n2", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
        node("n3", {"zone": "b"}),
        *(slice_of(name, ["a"]) for name in ("n1", "n2", "n3")),
        claim("x", request()),
        pod("p", "x", nodeSelector={"zone": "b"}, containers=[_greedy()]),
    )
    answer, text = ask(snapshot(*objects))
    assert answer.reasons[0].code == "nodes-reject"
    assert "cordoned" in text
    assert "does not tolerate the node's taint gpu=yes:NoSchedule" in text
    assert "too little cpu: 100 wanted, 8 of 8 free" in text


def _greedy() -> Tree:
    return {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100"}}}


def test_a_lease_is_no_matter_of_an_answer() -> None:
    lease = coordination_v1.Lease(metadata=meta_v1.ObjectMeta(name="default-scheduler", namespace="kube-system"))
    answer, _ = ask(snapshot(slice_of("n1", ["a"]), claim("x", request()), pod("p", "x"), leases=(lease,)))
    assert answer.fits


def test_a_node_that_is_not_ready_is_told_so_and_not_as_a_taint_to_tolerate() -> None:
    sick = node("n1", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    answer, text = ask(snapshot(sick, slice_of("n1", ["a"]), claim("x", request()), pod("p", "x")))
    assert "the node is not ready" in text
    assert "tolerate-node" not in [remedy.code for remedy in answer.remedies]


def test_nodes_that_differ_in_numbers_only_share_a_line() -> None:
    busy = [
        pod(f"q{i}", node_name=f"n{i}", phase="Running", containers=[_wants(str(i + 1))], resourceClaims=[])
        for i in range(5)
    ]
    objects = [node(f"n{i}") for i in range(5)] + [slice_of(f"n{i}", ["a"]) for i in range(5)]
    wish = pod("p", "x", containers=[_wants("8")])
    answer, text = ask(snapshot(*objects, *busy, claim("x", request()), wish))
    assert len(answer.nodes) == 1
    assert "for example too little cpu: 8 wanted, 7 of 8 free" in text


def _wants(cpu: str) -> Tree:
    return {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}


def test_who_may_not_see_devices_hears_what_the_scheduler_says() -> None:
    hidden = (Unseen("resourceslices", "forbidden"), Unseen("deviceclasses", "forbidden"))
    said = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]}
    found = snapshot(node("n1"), claim("x", request()), pod("p", "x", status=said), live=True, unseen=hidden)
    answer, text = ask(found)
    assert (answer.reasons[0].code, answer.exit_code) == ("not-visible", 3)
    assert "you may not list resourceslices and deviceclasses" in text
    assert "the scheduler says: 0/3 nodes are available" in text


def test_a_missing_template_comes_before_the_silence_of_the_scheduler() -> None:
    # Upstream's scheduler writes no condition while a claim is missing.
    answer, _ = ask(snapshot(slice_of("n1", ["a"]), templated("p", "big-gpu"), live=True))
    assert [reason.code for reason in answer.reasons] == ["template-missing"]
