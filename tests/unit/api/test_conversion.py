"""Conversion between versions keeps meaning and never changes what it was given."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubedra.api.conversion import convert, storage_api_version

V1, BETA1, BETA2 = "resource.k8s.io/v1", "resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2"


def claim(*requests: Any, version: str = V1) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "ResourceClaim", "spec": {"devices": {"requests": list(requests)}}}


def test_flattened_request_gets_its_exactly() -> None:
    old = claim({"name": "r", "deviceClassName": "c", "count": 2, "adminAccess": False}, version=BETA1)
    before = copy.deepcopy(old)
    new = convert(old, BETA1, V1)
    assert new == claim({"name": "r", "exactly": {"deviceClassName": "c", "count": 2, "adminAccess": False}})
    assert old == before
    assert convert(new, V1, BETA1) == old


def test_zero_members_make_no_exactly() -> None:
    old = claim({"name": "r", "deviceClassName": "", "count": 0, "allocationMode": ""}, version=BETA1)
    assert convert(old, BETA1, V1) == claim({"name": "r"})


def test_alternatives_read_back_with_an_empty_class() -> None:
    new = claim({"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]})
    old = convert(new, V1, BETA1)
    assert old["spec"]["devices"]["requests"][0] == {
        "name": "r",
        "deviceClassName": "",
        "firstAvailable": [{"name": "s", "deviceClassName": "c"}],
    }


def test_template_is_converted_inside() -> None:
    inner = claim({"name": "r", "deviceClassName": "c"}, version=BETA1)["spec"]
    old = {"apiVersion": BETA1, "kind": "ResourceClaimTemplate", "spec": {"spec": inner}}
    new = convert(old, BETA1, V1)
    assert new["spec"]["spec"]["devices"]["requests"] == [{"name": "r", "exactly": {"deviceClassName": "c"}}]


def test_device_moves_into_basic_and_back() -> None:
    devices = [{"name": "d0", "attributes": {"a": {"int": 1}}}, {"name": "d1"}]
    new = {"apiVersion": V1, "kind": "ResourceSlice", "spec": {"driver": "d", "devices": devices}}
    old = convert(new, V1, BETA1)
    assert old["spec"]["devices"] == [
        {"name": "d0", "basic": {"attributes": {"a": {"int": 1}}}},
        {"name": "d1", "basic": {}},
    ]
    assert convert(old, BETA1, V1) == new


def test_zero_node_members_mean_unset_in_v1beta1() -> None:
    old = {"apiVersion": BETA1, "kind": "ResourceSlice", "spec": {"nodeName": "", "allNodes": False}}
    assert convert(old, BETA1, V1)["spec"] == {}


def test_same_shape_versions_only_change_their_name() -> None:
    tree = claim({"name": "r", "exactly": {"deviceClassName": "c"}}, version=BETA2)
    assert convert(tree, BETA2, V1) == {**tree, "apiVersion": V1}
    assert convert(tree, BETA2, BETA2) is tree


def test_events_have_two_spellings() -> None:
    new = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "regarding": {"name": "p"}, "note": "n", "reason": "R"}
    old = convert(new, "events.k8s.io/v1", "v1")
    assert old == {"apiVersion": "v1", "kind": "Event", "involvedObject": {"name": "p"}, "message": "n", "reason": "R"}
    assert convert(old, "v1", "events.k8s.io/v1") == new


@pytest.mark.parametrize(
    ("version", "kind", "storage"),
    [
        (BETA1, "ResourceClaim", V1),
        ("resource.k8s.io/v1alpha3", "DeviceTaintRule", V1),
        ("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", "resource.k8s.io/v1alpha3"),
        ("events.k8s.io/v1", "Event", "v1"),
        ("apps/v1", "Deployment", "apps/v1"),
    ],
)
def test_storage_version(version: str, kind: str, storage: str) -> None:
    assert storage_api_version(version, kind) == storage


@pytest.mark.parametrize("spec", [None, "x", {"devices": "x"}, {"devices": {"requests": ["x", None]}}])
def test_malformed_objects_pass_through(spec: Any) -> None:
    tree = {"kind": "ResourceClaim", "spec": spec}
    assert convert(tree, BETA1, V1) == tree
    assert convert({"kind": "ResourceSlice", "spec": spec}, BETA1, V1)["spec"] == spec
