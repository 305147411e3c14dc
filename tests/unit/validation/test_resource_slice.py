"""Slices: pools, node selection, devices, counters, request policies."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.validation import resource_slice
from tests.unit.validation.cases import context, create, named, update

SPEC = {"driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n"}
DEVICE = {"name": "d0"}
CONSUMPTION = {"counterSet": "c", "counters": {"x": {}}}


def with_spec(**members: Any) -> dict[str, Any]:
    spec = {**SPEC, **members}
    return named("ResourceSlice", spec={name: value for name, value in spec.items() if value is not None})


def with_device(**members: Any) -> dict[str, Any]:
    return with_spec(devices=[{**DEVICE, **members}])


def devices(count: int, **first: Any) -> list[dict[str, Any]]:
    return [{"name": f"d{index}", **(first if index == 0 else {})} for index in range(count)]


D = "spec.devices[0]"


@pytest.mark.parametrize(
    ("tree", "faults"),
    [
        (with_spec(), set()),
        (named("ResourceSlice", spec={}), {
            "Required spec.driver",
            "Required spec.pool.name",
            "Invalid spec.pool.resourceSliceCount",
            "Required spec",
        }),
        (with_spec(pool={"name": "a/b", "resourceSliceCount": 1, "generation": -1}), {"Invalid spec.pool.generation"}),
        (with_spec(nodeName=""), {"Invalid spec.nodeName", "Required spec"}),
        (with_spec(allNodes=True), {"Invalid spec"}),
        (with_spec(nodeName=None, allNodes=True), set()),
        (with_spec(allNodes=False), {"Invalid spec.allNodes"}),
        (with_spec(nodeName=None, nodeSelector={"nodeSelectorTerms": [{}, {}]}), {
            "Invalid spec.nodeSelector.nodeSelectorTerms",
        }),
        (with_spec(devices=[], sharedCounters=[]), {"Invalid spec"}),
        (with_spec(devices=devices(128)), set()),
        (with_spec(devices=devices(129)), {"TooMany spec.devices"}),
        (with_spec(devices=devices(65, taints=[{"key": "k", "effect": "None"}])), {"TooMany spec.devices"}),
        (with_spec(devices=devices(65, attributes={"a": {"ints": [1]}})), {"TooMany spec.devices"}),
        (with_spec(devices=[DEVICE, DEVICE]), {"Duplicate spec.devices[1]"}),
        (with_spec(sharedCounters=[{"name": "c", "counters": {}}]), {"Required spec.sharedCounters[0].counters"}),
        (with_spec(sharedCounters=[{"name": "", "counters": {"A": {}}}]), {
            "Required spec.sharedCounters[0].name",
            "Invalid spec.sharedCounters[0].counters",
        }),
        (with_spec(skipNodeOperations=["NodePrepareResources"]), {"Invalid spec.skipNodeOperations"}),
        (with_spec(skipNodeOperations=["NodePrepareResources", "*"]), set()),
        (with_spec(skipNodeOperations=["X"]), {"NotSupported spec.skipNodeOperations[0]"}),
    ],
)  # fmt: skip
def test_spec(tree: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.RESOURCE_SLICE, tree) == faults


@pytest.mark.parametrize(
    ("members", "faults"),
    [
        ({"name": "A"}, {f"Invalid {D}.name"}),
        ({"attributes": {f"a{index}": {"int": 1} for index in range(33)}}, {f"Invalid {D}"}),
        ({"attributes": {"a": {"ints": list(range(49))}}}, {f"Invalid {D}"}),
        ({"attributes": {"a": {}}}, {f"Invalid {D}.attributes[a]"}),
        ({"attributes": {"a": {"int": 0, "bool": False}}}, {f"Invalid {D}.attributes[a]"}),
        ({"attributes": {"a": {"string": ""}}}, set()),
        ({"attributes": {"a": {"string": "x" * 65}}}, {f"TooLong {D}.attributes[a].string"}),
        ({"attributes": {"a": {"version": "1.2"}}}, {f"Invalid {D}.attributes[a].version"}),
        ({"attributes": {"a": {"versions": ["1.0.0", "v1"]}}}, {f"Invalid {D}.attributes[a].versions[1]"}),
        ({"attributes": {"a": {"strings": []}}}, {f"Invalid {D}.attributes[a].strings"}),
        ({"attributes": {"b-c": {"int": 1}}}, {f"Invalid {D}.attributes"}),
        ({"capacity": {"m": {"value": "1", "requestPolicy": {}}}}, {f"Forbidden {D}.capacity[m].requestPolicy"}),
        ({"taints": [{"effect": "PreferNoSchedule"}]}, {
            f"Invalid {D}.taints[0].key",
            f"NotSupported {D}.taints[0].effect",
        }),
        ({"taints": [{"key": "k", "effect": "None"}] * 2}, set()),
        ({"consumesCounters": [{}]}, {
            f"Required {D}.consumesCounters[0].counterSet",
            f"Required {D}.consumesCounters[0].counters",
        }),
        ({"consumesCounters": [CONSUMPTION] * 2}, {f"Duplicate {D}.consumesCounters[1]"}),
        ({"nodeName": "n"}, {f"Invalid {D}"}),
        ({"bindingConditions": ["a"]}, {f"Invalid {D}.bindingFailureConditions"}),
        ({"bindingConditions": ["a"], "bindingFailureConditions": ["a"]}, {
            f"Invalid {D}.bindingFailureConditions[0]",
        }),
    ],
)  # fmt: skip
def test_devices(members: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.RESOURCE_SLICE, with_device(**members)) == faults


@pytest.mark.parametrize(
    ("members", "faults"),
    [
        ({"nodeName": "n"}, set()),
        ({"nodeSelector": {"nodeSelectorTerms": [{}, {}]}}, set()),
        ({}, {f"Required {D}"}),
        ({"nodeName": "n", "allNodes": True}, {f"Invalid {D}"}),
        ({"allNodes": False}, {f"Invalid {D}.allNodes", f"Required {D}"}),
    ],
)
def test_devices_with_a_node_of_their_own(members: dict[str, Any], faults: set[str]) -> None:
    tree = with_spec(nodeName=None, perDeviceNodeSelection=True, devices=[{**DEVICE, **members}])
    assert create(kinds.RESOURCE_SLICE, tree) == faults


P = f"{D}.capacity[m].requestPolicy"


@pytest.mark.parametrize(
    ("policy", "faults"),
    [
        ({}, set()),
        ({"default": "11"}, set()),
        ({"validValues": ["1"]}, {f"Required {P}.default"}),
        ({"default": "1", "validValues": ["1", "2"]}, set()),
        ({"default": "1", "validValues": ["2", "1"]}, {f"Invalid {P}.validValues[1]"}),
        ({"default": "1", "validValues": ["1", "1000m"]}, {f"Duplicate {P}.validValues[1]"}),
        ({"default": "3", "validValues": ["1", "11"]}, {f"Invalid {P}.validValues", f"Invalid {P}.validValues[1]"}),
        ({"default": "1", "validValues": [str(index) for index in range(1, 12)]}, {
            f"TooMany {P}.validValues",
            f"Invalid {P}.validValues",
        }),
        ({"default": "1", "validValues": ["1"], "validRange": {}}, {f"Forbidden {P}"}),
        ({"default": "1", "validRange": {}}, {f"Required {P}.validRange.min"}),
        ({"default": "1", "validRange": {"min": "2"}}, {f"Invalid {P}.validRange.min"}),
        ({"default": "2", "validRange": {"min": "2", "max": "8", "step": "3"}}, set()),
        ({"default": "2", "validRange": {"min": "2", "max": "9", "step": "3"}}, {f"Invalid {P}.validRange.step"}),
        ({"default": "2", "validRange": {"min": "2", "step": "0"}}, {f"Invalid {P}.validRange.step"}),
        ({"default": "1", "validRange": {"min": "1", "max": "11"}}, {f"Invalid {P}.validRange.max"}),
    ],
)  # fmt: skip
def test_request_policies(policy: dict[str, Any], faults: set[str]) -> None:
    capacity = {"m": {"value": "10", "requestPolicy": policy}}
    tree = with_device(allowMultipleAllocations=True, capacity=capacity)
    assert create(kinds.RESOURCE_SLICE, tree) == faults


def test_fractional_steps_need_their_gate() -> None:
    policy = {"default": "500m", "validRange": {"min": "500m", "max": "2", "step": "1"}}
    tree = with_device(allowMultipleAllocations=True, capacity={"m": {"value": "10", "requestPolicy": policy}})
    assert create(kinds.RESOURCE_SLICE, tree) == set()
    fractional = context("1.37", DRAFractionalCapacityRange=True)
    assert create(kinds.RESOURCE_SLICE, tree, fractional) == {f"Invalid {P}.validRange.step"}


def test_identity_is_immutable() -> None:
    old = with_spec()
    assert update(kinds.RESOURCE_SLICE, with_spec(driver="e"), old) == {"Invalid spec.driver"}
    assert update(kinds.RESOURCE_SLICE, with_spec(nodeName=None, allNodes=True), old) == {"Invalid spec.nodeName"}
    pool = {"name": "p", "generation": 0, "resourceSliceCount": 2}
    assert update(kinds.RESOURCE_SLICE, with_spec(pool=pool), old) == set()


def test_unchanged_parts_of_a_device_stay_valid() -> None:
    taints = [{"key": "k", "effect": "Novel"}]
    assert update(kinds.RESOURCE_SLICE, with_device(taints=taints), with_device(taints=taints)) == set()
    assert update(kinds.RESOURCE_SLICE, with_device(taints=taints), with_device()) == {
        f"NotSupported {D}.taints[0].effect"
    }


def test_partition_type_must_be_a_string_of_every_partition() -> None:
    consumes = [{"counterSet": "c", "counters": {"x": {"value": "1"}}}]
    bare = with_spec(partitionTypeAttribute="d/kind", devices=[DEVICE])
    assert create(kinds.RESOURCE_SLICE, bare) == {"Invalid spec.partitionTypeAttribute"}
    tree = with_spec(
        partitionTypeAttribute="d/kind",
        devices=[
            {"name": "a", "consumesCounters": consumes, "attributes": {"kind": {"string": "x"}}},
            {"name": "b", "consumesCounters": consumes},
            {"name": "c", "consumesCounters": consumes, "attributes": {"d/kind": {"int": 1}}},
        ],
    )
    assert create(kinds.RESOURCE_SLICE, tree) == {
        "Required spec.devices[1].attributes[d/kind]",
        "Invalid spec.devices[2].attributes[d/kind]",
    }


@pytest.mark.parametrize(
    ("entry", "faults"),
    [
        ({"mapping": {"deviceMultiplier": "1"}}, set()),
        ({"mapping": {"capacityKey": "m", "capacityMultiplier": "1"}}, set()),
        ({}, {"Required {at}"}),
        ({"mapping": {"capacityKey": "x", "capacityMultiplier": "1"}}, {"NotFound {at}.mapping.capacityKey"}),
        ({"mapping": {"capacityKey": "m"}}, {"Required {at}.mapping.capacityMultiplier"}),
        ({"mapping": {"deviceMultiplier": "0"}}, {"Invalid {at}.mapping.deviceMultiplier"}),
        ({"overhead": {}}, {"Invalid {at}.overhead"}),
        ({"overhead": {"perPod": "-1"}}, {"Invalid {at}.overhead.perPod"}),
    ],
)
def test_node_allocatable_resources(entry: dict[str, Any], faults: set[str]) -> None:
    tree = with_device(capacity={"m": {"value": "1"}}, nodeAllocatableResources={"cpu": entry})
    at = f"{D}.nodeAllocatableResources[cpu]"
    assert create(kinds.RESOURCE_SLICE, tree) == {fault.format(at=at) for fault in faults}


def test_capital_letters_in_a_driver_name_are_warned_of() -> None:
    assert resource_slice.warnings(with_spec(driver="GPU.example.com")) == [
        'spec.driver: driver names should be lowercase; "GPU.example.com" contains uppercase characters'
    ]
    assert resource_slice.warnings(with_spec()) == []
