"""Changed pods: what may change, and what a status may say."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubedra.api import kinds
from tests.unit.validation.cases import update
from tests.unit.validation.test_pod import pod


def change(subresource: str = "", start: dict[str, Any] | None = None, **spec: Any) -> set[str]:
    old = start or pod()
    new = copy.deepcopy(old)
    new["spec"].update(spec)
    return update(kinds.POD, new, old, subresource)


TWO = [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]
KEPT = {"key": "a", "operator": "Exists", "effect": "NoExecute"}


def test_images_and_tolerations_may_change() -> None:
    containers = pod(containers=[{"name": "c", "image": "other"}])["spec"]["containers"]
    containers[0]["imagePullPolicy"] = "Always"
    assert change(containers=containers) == set()
    assert change(tolerations=[KEPT]) == set()
    assert change(start=pod(tolerations=[KEPT]), tolerations=[{**KEPT, "tolerationSeconds": 3}]) == set()
    assert change(start=pod(tolerations=[KEPT]), tolerations=[]) == {"Forbidden spec.tolerations"}


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"containers": TWO}, {"Forbidden spec.containers"}),
        ({"nodeName": "n"}, {"Forbidden spec"}),
        ({"resourceClaims": [{"name": "a", "resourceClaimName": "x"}]}, {"Forbidden spec"}),
        ({"activeDeadlineSeconds": 5}, set()),
        ({"schedulingGates": [{"name": "g"}]}, {"Forbidden spec.schedulingGates[0].name"}),
        ({"nodeSelector": {"a": "b"}}, {"Forbidden spec"}),
    ],
)
def test_the_rest_is_fixed(spec: dict[str, Any], faults: set[str]) -> None:
    assert change(**spec) == faults


def test_deadlines_only_shrink() -> None:
    start = pod(activeDeadlineSeconds=10)
    assert change(start=start, activeDeadlineSeconds=5) == set()
    assert change(start=start, activeDeadlineSeconds=20) == {"Invalid spec.activeDeadlineSeconds"}
    assert change(start=start, activeDeadlineSeconds=None) == {"Invalid spec.activeDeadlineSeconds"}


def test_held_back_pods_can_be_narrowed() -> None:
    start = pod(schedulingGates=[{"name": "g"}], nodeSelector={"a": "b"})
    assert change(start=start, schedulingGates=[], nodeSelector={"a": "b", "c": "d"}) == set()
    assert change(start=start, nodeSelector={"c": "d"}) == {"Forbidden spec"}


def with_status(start: dict[str, Any], status: dict[str, Any], before: dict[str, Any] | None = None) -> set[str]:
    old = {**start, "status": before or {"phase": "Pending", "qosClass": "BestEffort"}}
    return update(kinds.POD, {**start, "status": {"qosClass": "BestEffort", **status}}, old, "status")


CLAIMED = pod(
    containers=[
        {
            "name": "c",
            "image": "i",
            "resources": {"claims": [{"name": "a", "request": "r"}], "limits": {"example.com/gpu": "1"}},
        }
    ],
    resourceClaims=[{"name": "a", "resourceClaimTemplateName": "t"}],
)


@pytest.mark.parametrize(
    ("status", "faults"),
    [
        ({"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "x"}]}, set()),
        ({"resourceClaimStatuses": [{"name": "a"}, {"name": "a"}]}, {
            "Duplicate status.resourceClaimStatuses[1].name",
        }),
        ({"resourceClaimStatuses": [{"name": "z", "resourceClaimName": "X"}]}, {
            "Invalid status.resourceClaimStatuses[0].name",
            "Invalid status.resourceClaimStatuses[0].resourceClaimName",
        }),
        ({"qosClass": "Guaranteed"}, {"Invalid status.qosClass"}),
        ({"extendedResourceClaimStatus": {}}, {
            "Required status.extendedResourceClaimStatus.requestMappings",
            "Required status.extendedResourceClaimStatus.resourceClaimName",
        }),
        ({"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [
            {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"},
        ]}}, set()),
        ({"containerStatuses": [{"name": "c", "allocatedResourcesStatus": [
            {"name": "claim:a/r", "resources": [{"resourceID": "x", "health": "Healthy"}]},
        ]}]}, set()),
        ({"containerStatuses": [{"name": "c", "allocatedResourcesStatus": [
            {"name": "claim:a", "resources": [{"resourceID": "x", "health": "Sick"}]},
        ]}]}, {
            "Invalid status.containerStatuses[0].allocatedResourcesStatus[0].name",
            "NotSupported status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health",
        }),
    ],
)  # fmt: skip
def test_statuses(status: dict[str, Any], faults: set[str]) -> None:
    assert with_status(CLAIMED, status) == faults


def test_ended_containers_do_not_come_back() -> None:
    start = pod(restartPolicy="Never")
    ended = {"qosClass": "BestEffort", "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]}
    running = {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}
    assert with_status(start, running, ended) == {"Forbidden status.containerStatuses[0].state"}
    assert with_status(pod(), running, ended) == set()


def test_ephemeral_containers_are_only_added() -> None:
    first = {"name": "e", "image": "i", "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
    assert change("ephemeralcontainers", ephemeralContainers=[first]) == set()
    start = pod()
    start["spec"]["ephemeralContainers"] = [first]
    assert change("ephemeralcontainers", start, ephemeralContainers=[]) == {"Forbidden spec.ephemeralContainers"}
    claiming = {**first, "name": "f", "resources": {"claims": [{"name": "a"}]}}
    assert change("ephemeralcontainers", ephemeralContainers=[claiming]) == {
        "Forbidden spec.ephemeralContainers[0].resources"
    }
