from __future__ import annotations

from typing import Any

import pytest

from kubedra.api import codec, core_v1, kinds, resource_v1
from kubedra.controllers import claims as c
from kubedra.controllers.actions import Delete, Patch


def pod(**over: Any) -> core_v1.Pod:
    tree: dict[str, Any] = {
        "metadata": {"name": "p", "namespace": "a", "uid": "u1"},
        "spec": {"containers": [], "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
        "status": {},
    }
    for key, value in over.items():
        tree[key] = tree.get(key, {}) | value
    return codec.from_tree(core_v1.Pod, tree)


def template() -> resource_v1.ResourceClaimTemplate:
    return codec.from_tree(
        resource_v1.ResourceClaimTemplate,
        {
            "metadata": {"name": "t", "namespace": "a"},
            "spec": {
                "metadata": {"labels": {"l": "v"}, "annotations": {"k": "v"}},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}},
            },
        },
    )


def claim(status: dict[str, Any] | None = None, **meta: Any) -> resource_v1.ResourceClaim:
    tree = {
        "metadata": {"name": "p-gpu-x", "namespace": "a", "uid": "c1", "resourceVersion": "5"} | meta,
        "spec": {},
        "status": status or {},
    }
    return codec.from_tree(resource_v1.ResourceClaim, tree)


OWNER = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1", "controller": True}]
MADE = {"ownerReferences": OWNER, "annotations": {c.POD_CLAIM_NAME: "gpu"}}


def test_a_template_becomes_a_claim_of_the_pod() -> None:
    decision = c.decide_pod(pod(), [], {"t": template()})
    assert [entry for entry, _ in decision.wanted] == ["gpu"]
    made = c.claim_from_template(pod(), "gpu", template())
    assert made["metadata"]["generateName"] == "p-gpu-"
    assert made["metadata"]["annotations"] == {"k": "v", c.POD_CLAIM_NAME: "gpu"}
    assert made["metadata"]["labels"] == {"l": "v"}
    assert made["metadata"]["ownerReferences"] == OWNER
    assert made["spec"]["devices"]["requests"][0]["name"] == "r"


def test_a_claim_made_before_a_crash_is_found_again() -> None:
    decision = c.decide_pod(pod(), [claim(**MADE)], {"t": template()})
    assert (decision.known, decision.wanted) == ({"gpu": "p-gpu-x"}, ())


def test_a_recorded_claim_that_is_gone_is_made_again() -> None:
    waiting = pod(status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gone"}]})
    assert c.decide_pod(waiting, [], {"t": template()}).wanted


def test_a_status_that_names_a_foreign_claim_is_repaired() -> None:
    waiting = pod(status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "foreign"}]})
    decision = c.decide_pod(waiting, [claim(**MADE)], {"t": template()})
    assert decision.known == {"gpu": "p-gpu-x"}
    assert c.status_patch(waiting, decision.known) is not None


def test_a_missing_template_hides_no_other_entry() -> None:
    both = pod(
        spec={
            "resourceClaims": [
                {"name": "bad", "resourceClaimTemplateName": "none"},
                {"name": "gpu", "resourceClaimTemplateName": "t"},
            ]
        }
    )
    decision = c.decide_pod(both, [], {"t": template()})
    assert decision.missing == (("bad", "none"),)
    assert [entry for entry, _ in decision.wanted] == ["gpu"]


@pytest.mark.parametrize(
    "over", [{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, {"status": {"phase": "Succeeded"}}]
)
def test_a_pod_that_is_done_gets_nothing(over: dict[str, Any]) -> None:
    assert c.decide_pod(pod(**over), [], {"t": template()}) == c.PodDecision()


def test_status_is_applied_whole_and_only_when_it_differs() -> None:
    patch = c.status_patch(pod(), {"gpu": "p-gpu-x", "nic": None})
    assert patch is not None
    assert patch.patch["status"] == {
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x"}, {"name": "nic"}]
    }
    assert (patch.patch_type, patch.subresource, patch.force) == ("apply", "status", True)
    recorded = pod(status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x"}, {"name": "nic"}]})
    assert c.status_patch(recorded, {"gpu": "p-gpu-x", "nic": None}) is None


def test_long_names_are_cut_in_proportion() -> None:
    assert c.generate_name("p", "gpu") == "p-gpu-"
    long = c.generate_name("p" * 60, "g" * 20)
    assert long == "p" * (60 * 57 // 82) + "-" + "g" * (20 * 57 // 82)


ALLOCATED = {
    "allocation": {"devices": {"results": []}},
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "u1"}],
}


def test_the_last_consumer_takes_the_allocation_along() -> None:
    held = claim(ALLOCATED, finalizers=[c.FINALIZER])
    (patch,) = c.decide_claim(held, {"u1": pod(status={"phase": "Succeeded"})}, owner_gone=False)
    assert isinstance(patch, Patch)
    assert patch.patch == {
        "metadata": {"uid": "c1", "resourceVersion": "5"},
        "status": {"reservedFor": None, "allocation": None},
    }


def test_a_consumer_that_runs_keeps_its_reservation_while_another_goes() -> None:
    status = ALLOCATED | {"reservedFor": [*ALLOCATED["reservedFor"], {"resource": "pods", "name": "q", "uid": "u2"}]}  # type: ignore[misc]
    (patch,) = c.decide_claim(
        claim(status, finalizers=[c.FINALIZER]), {"u1": None, "u2": pod(metadata={"uid": "u2"})}, owner_gone=False
    )
    assert isinstance(patch, Patch)
    assert patch.patch["status"] == {"reservedFor": [{"resource": "pods", "name": "q", "uid": "u2"}]}


def test_consumers_of_other_kinds_and_unknown_pods_stay() -> None:
    status = ALLOCATED | {
        "reservedFor": [{"apiGroup": "x.io", "resource": "jobs", "name": "j", "uid": "u9"}, *ALLOCATED["reservedFor"]]
    }
    assert c.decide_claim(claim(status, finalizers=[c.FINALIZER]), {}, owner_gone=False) == []


def test_an_unallocated_claim_loses_the_finalizer_when_it_is_deleted() -> None:
    going = claim({}, finalizers=["other", c.FINALIZER], deletionTimestamp="2026-01-01T00:00:00Z")
    (patch,) = c.decide_claim(going, {}, owner_gone=False)
    assert isinstance(patch, Patch)
    assert patch.patch["metadata"]["finalizers"] == ["other"]


def test_a_claim_whose_pod_is_done_is_deleted() -> None:
    actions = c.decide_claim(claim(**MADE), {}, owner_gone=True)
    assert actions == [Delete(kinds.RESOURCE_CLAIM, "p-gpu-x", "a", uid="c1")]


def test_an_allocated_claim_that_nobody_reserved_is_left_to_the_scheduler() -> None:
    held = claim({"allocation": {"devices": {"results": []}}}, finalizers=[c.FINALIZER])
    assert c.decide_claim(held, {}, owner_gone=False) == []


def test_a_reservation_is_restored_only_where_the_allocation_fits() -> None:
    selector = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
    allocated = claim({"allocation": {"devices": {"results": []}, "nodeSelector": selector}})
    on_n1, on_n2 = pod(spec={"nodeName": "n1"}), pod(spec={"nodeName": "n2"})
    assert len(c.missing_reservations(on_n1, [allocated], {})) == 1
    assert c.missing_reservations(on_n2, [allocated], {}) == []
    assert c.missing_reservations(on_n1, [allocated], None) == []
    done = pod(spec={"nodeName": "n1"}, status={"phase": "Failed"})
    assert c.missing_reservations(done, [allocated], {}) == []
