"""Which claims a pod may use, and which devices its containers get."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra.api import codec
from kubedra.api.core_v1 import Pod
from kubedra.api.resource_v1 import ResourceClaim
from kubedra.node.claims.resolving import PrepareError, container_devices, wanted_claims
from kubedra.wire.dra import Device


def pod(**status: Any) -> Pod:
    return codec.from_tree(
        Pod,
        {
            "metadata": {"name": "p", "namespace": "ns", "uid": "pod-uid"},
            "spec": {
                "resourceClaims": [
                    {"name": "own", "resourceClaimTemplateName": "t"},
                    {"name": "shared", "resourceClaimName": "c"},
                ],
                "containers": [
                    {"name": "all", "resources": {"claims": [{"name": "own"}, {"name": "shared"}]}},
                    {"name": "one", "resources": {"claims": [{"name": "shared", "request": "b"}]}},
                    {"name": "none"},
                ],
            },
            "status": status or {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "p-own"}]},
        },
    )


def claim(name: str, **more: Any) -> ResourceClaim:
    tree: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "ownerReferences": [{"uid": "pod-uid", "controller": True}],
        },
        "status": {
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "pod-uid"}],
            "allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}},
        },
    }
    for key, value in more.items():
        tree["metadata" if key == "ownerReferences" else "status"][key] = value
    return codec.from_tree(ResourceClaim, tree)


def check(got: Pod, claims: dict[str, ResourceClaim | None], registered: bool = True, **more: Any) -> Any:
    return wanted_claims(got, claims, lambda driver: registered, **more)


GOOD = {"p-own": claim("p-own"), "c": claim("c")}


def test_claims_come_in_the_pods_order() -> None:
    assert [w.name for w in check(pod(), GOOD)] == ["p-own", "c"]
    assert check(pod(), GOOD)[0].drivers == ("d",)


def test_a_claim_that_is_not_needed_is_left_out() -> None:
    status = {"resourceClaimStatuses": [{"name": "own"}]}
    assert [w.name for w in check(pod(**status), GOOD)] == ["c"]


@pytest.mark.parametrize(
    ("got", "claims", "registered", "text"),
    [
        (pod(phase="Pending"), GOOD, True, 'pod "ns/p": ResourceClaim not created yet'),
        (pod(), GOOD | {"c": None}, True, 'fetch ResourceClaim c: resourceclaims.resource.k8s.io "c" not found'),
        (
            pod(),
            GOOD | {"p-own": claim("p-own", ownerReferences=[])},
            True,
            "ResourceClaim ns/p-own was not created for Pod ns/p (Pod is not owner)",
        ),
        (
            pod(),
            GOOD | {"c": claim("c", reservedFor=[], allocation=None)},
            True,
            "pod p (pod-uid) is not allowed to use ResourceClaim c (uid-c)",
        ),
        (pod(), GOOD | {"c": claim("c", allocation=None)}, True, "ResourceClaim c: not allocated"),
        (pod(), GOOD, False, "DRA driver d is not registered"),
    ],
)
def test_refusals_have_upstreams_sentences(
    got: Pod, claims: dict[str, ResourceClaim | None], registered: bool, text: str
) -> None:
    with pytest.raises(PrepareError) as caught:
        check(got, claims, registered)
    assert str(caught.value) == text


def test_a_driver_is_left_out_only_if_all_its_devices_say_so() -> None:
    def allocation(*skips: list[str]) -> dict[str, Any]:
        return {
            "devices": {
                "results": [{"driver": "d", "device": f"x{i}", "skipNodeOperations": s} for i, s in enumerate(skips)]
            }
        }

    claims = GOOD | {"c": claim("c", allocation=allocation(["*"], ["NodePrepareResources", "Other"]))}
    wanted = check(pod(), claims, optional_operations=True)[1]
    assert (wanted.skip_prepare, wanted.skip_unprepare) == (frozenset({"d"}), frozenset())
    assert check(pod(), claims)[1].skip_prepare == frozenset()
    claims = GOOD | {"c": claim("c", allocation=allocation(["*"], []))}
    assert check(pod(), claims, optional_operations=True)[1].skip_prepare == frozenset()


def test_containers_get_the_devices_of_their_entries_once() -> None:
    devices = {
        "p-own": (("d", Device(("a",), "p", "own", ("x/y=own",))),),
        "c": (
            ("d", Device(("a",), "p", "a", ("x/y=a",))),
            ("d", Device(("b/sub",), "p", "b", ("x/y=b",))),
            ("d", Device((), "p", "any", ("x/y=any",))),
        ),
    }
    got = [
        [device.device_name for _, device in container_devices(pod(), container, lambda name: devices[name])]
        for container in pod().spec.containers
    ]
    assert got == [["own", "a", "b", "any"], ["b", "any"], []]


def test_extended_resource_claims_follow_the_mappings() -> None:
    extended = {
        "resourceClaimName": "p-ext",
        "requestMappings": [{"containerName": "none", "resourceName": "x/gpu", "requestName": "container-2-request-0"}],
    }
    got = pod(
        extendedResourceClaimStatus=extended, resourceClaimStatuses=[{"name": "own", "resourceClaimName": "p-own"}]
    )
    assert [w.name for w in check(got, GOOD | {"p-ext": claim("p-ext")})] == ["p-own", "c", "p-ext"]
    device = Device(("container-2-request-0",), "p", "e", ())
    found = container_devices(got, got.spec.containers[2], lambda name: (("d", device),) if name == "p-ext" else ())
    assert found == (("d", device),)
