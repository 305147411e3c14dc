"""Canonical form: equal objects have one spelling."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra.api.canonical import canonical_micro_time, canonical_quantity, canonical_time, canonicalize, normalise

CLAIM = "io.k8s.api.resource.v1.ResourceClaim"
SLICE = "io.k8s.api.resource.v1.ResourceSlice"
POD = "io.k8s.api.core.v1.Pod"


def test_permanent_members_are_added() -> None:
    assert canonicalize(CLAIM, {"metadata": {"name": "c"}}) == {
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": None}},
        "status": {},
    }


def test_normalising_keeps_what_validation_must_see() -> None:
    spec = {"devices": [], "sharedCounters": [], "nodeName": "", "allNodes": None}
    assert normalise(SLICE, {"spec": dict(spec)})["spec"] == {"devices": [], "sharedCounters": [], "nodeName": ""}


def test_null_items_become_objects() -> None:
    tree = {"spec": {"devices": {"requests": [None, {"name": "r", "exactly": None}]}}}
    assert normalise(CLAIM, tree)["spec"]["devices"]["requests"] == [{}, {"name": "r"}]


def test_quantities_are_respelled_everywhere() -> None:
    request = {"exactly": {"capacity": {"requests": {"m": "1024Mi", "n": 3, "o": "0.5"}}}}
    tree = normalise(CLAIM, {"spec": {"devices": {"requests": [request]}}})
    requests = tree["spec"]["devices"]["requests"][0]["exactly"]["capacity"]["requests"]
    assert requests == {"m": "1Gi", "n": "3", "o": "500m"}


def test_empty_optional_members_go_and_required_stay() -> None:
    device = {"name": "", "attributes": {}, "taints": [], "capacity": {"m": {}}, "nodeName": ""}
    tree = canonicalize(SLICE, {"spec": {"driver": "", "devices": [device]}})
    assert tree["spec"]["devices"][0] == {"name": "", "capacity": {"m": {"value": "0"}}, "nodeName": ""}
    assert tree["spec"]["pool"] == {"name": "", "generation": 0, "resourceSliceCount": 0}


def test_empty_attribute_string_is_a_value() -> None:
    device = {"name": "d", "attributes": {"a": {"string": ""}}}
    tree = canonicalize(SLICE, {"spec": {"devices": [device]}})
    assert tree["spec"]["devices"][0]["attributes"] == {"a": {"string": ""}}


def test_raw_values_are_left_alone() -> None:
    config = {"opaque": {"driver": "d", "parameters": {"a": None, "b": [], "c": ""}}}
    tree = canonicalize(CLAIM, {"spec": {"devices": {"config": [config]}}})
    assert tree["spec"]["devices"]["config"][0]["opaque"]["parameters"] == {"a": None, "b": [], "c": ""}


def test_counters_of_a_budget_are_always_there() -> None:
    tree = canonicalize("io.k8s.api.policy.v1.PodDisruptionBudget", {"spec": {"minAvailable": 0}})
    assert tree["status"] == {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
    assert tree["spec"] == {"minAvailable": 0}


def test_pods_keep_empty_directories() -> None:
    pod: dict[str, Any] = {"spec": {"containers": [{"name": "c"}], "volumes": [{"name": "v", "emptyDir": {}}]}}
    tree = canonicalize(POD, pod)
    assert tree["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert tree["spec"]["containers"] == [{"name": "c", "resources": {}}]
    assert tree["status"] == {}


@pytest.mark.parametrize(
    ("given", "result"),
    [("2020-01-01T01:00:00+01:00", "2020-01-01T00:00:00Z"), ("2020-01-01T00:00:00.9Z", "2020-01-01T00:00:00Z")],
)
def test_times(given: str, result: str) -> None:
    assert canonical_time(given) == result


def test_micro_times() -> None:
    assert canonical_micro_time("2020-01-01T00:00:00Z") == "2020-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("value", ["x", True, None, {}])
def test_what_is_no_quantity_stays(value: Any) -> None:
    assert canonical_quantity(value) == value
    assert canonical_time(value) == value
