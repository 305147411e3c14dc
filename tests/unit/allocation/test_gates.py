"""Every gate that the allocator knows, on and off: one small scenario each whose answer turns on it."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra.allocation.features import Features
from kubedra.base.features import FeatureGates
from tests.unit.allocation.scenarios import (
    Tree,
    answer,
    claim,
    device,
    exactly,
    first_available,
    resource_slice,
    taken,
    world,
)

TAINT = {"key": "t", "effect": "NoSchedule"}
POLICY = {"default": "500m", "validRange": {"min": "500m", "step": "500m"}}
DERIVED = [{"name": "v/a", "expression": "1"}]
RULE = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {}, "taint": TAINT}}
COUNTERS = resource_slice("c", count=2, counters={"cs": {"x": 1}})


def one(made: Tree, **spec: Any) -> list[Tree]:
    return [resource_slice("s", [made], **spec)]


def grouped(name: str) -> Tree:
    made = device(name, uses={"cs": {"x": 0}})
    made["consumesCounters"][0]["compatibilityGroups"] = ["g"]
    return made


def outcome(scenario: Tree, version: str = "1.37") -> str:
    """Devices with what they consume, "none", or the error."""
    result = answer(scenario, version)
    if result.get("error"):
        return str(result["error"])
    if result["allocations"] is None:
        return "none"
    results = [r for a in result["allocations"] for r in a.get("devices", {}).get("results", [])]
    return " ".join(":".join([r["device"], *r.get("consumedCapacity", {}).values()]) for r in results)


CASES: list[tuple[str, Tree, str, str]] = [
    ("DRAAdminAccess", world(one(device("a")), claim(exactly(1, adminAccess=True))), "a", "feature is disabled"),
    ("DRAPrioritizedList", world(one(device("a")), claim(first_available(exactly(1)))), "a", "feature is disabled"),
    ("DRADeviceTaints", world(one(device("a", taints=[TAINT])), claim(exactly(1))), "none", "a"),
    ("DRADeviceTaintRules", world(one(device("a")), claim(exactly(1)), taintRules=[RULE]), "none", "a"),
    ("DRADeviceBindingConditions", world(one(device("a", bindingConditions=["x"])), claim(exactly(1))), "a", "none"),
    (
        "DRAPartitionableDevices",
        world([COUNTERS, *one(device("a", uses={"cs": {"x": 1}}), count=2)], claim(exactly(1))),
        "a",
        "none",
    ),
    ("DRADeviceCompatibilityGroups", world([COUNTERS, *one(grouped("a"), count=2)], claim(exactly(1))), "a", "none"),
    (
        "DRAConsumableCapacity",
        world(
            one(device("a", {"m": 4}, allowMultipleAllocations=True)),
            claim(exactly(1)),
            allocated=[taken("o", ("a", "s", {"m": "0"}))],
        ),
        "a:4",
        "none",
    ),
    (
        "DRAFractionalCapacityRange",
        world(
            one(device("a", {"m": {"value": "4", "requestPolicy": POLICY}}, allowMultipleAllocations=True)),
            claim(exactly(1, capacity={"requests": {"m": "1200m"}})),
        ),
        "a:1500m",
        "a:2",
    ),
    (
        "DRAListTypeAttributes",
        world(
            one(device("a", attributes={"n": [1]})), claim(exactly(1), constraints=[{"matchAttribute": "d.example/n"}])
        ),
        "a",
        "none",
    ),
    (
        "DRADerivedAttributes",
        world(one(device("a")), claim(exactly(1, derivedAttributes=DERIVED), constraints=[{"matchAttribute": "v/a"}])),
        "a",
        "none",
    ),
    (
        "DRAOptionalNodeOperations",
        world(one(device("a"), spec={"skipNodeOperations": ["*"]}), claim(exactly(1))),
        "a",
        "none",
    ),
]


@pytest.mark.parametrize(("gate", "scenario", "on", "off"), CASES, ids=[case[0] for case in CASES])
def test_a_gate_decides(gate: str, scenario: Tree, on: str, off: str) -> None:
    assert outcome(scenario) == on
    assert off in outcome({**scenario, "features": {gate: False}})


def test_every_gate_of_the_allocator_has_a_case() -> None:
    gates = {case[0] for case in CASES}
    for gate in gates:
        assert Features.everything("1.37") != Features.everything("1.37", {gate: False})
    assert Features.everything("1.37", dict.fromkeys(gates, False)) == Features(
        **{name: False for name in Features.__dataclass_fields__ if name != "version"}
    )


def test_taint_rules_were_a_part_of_taints_before_they_had_a_gate() -> None:
    scenario = world(one(device("a")), claim(exactly(1)), taintRules=[RULE])
    assert outcome(scenario, "1.34") == "none"
    assert outcome({**scenario, "features": {"DRADeviceTaints": False}}, "1.34") == "a"
    assert Features.of(FeatureGates("1.34", {"DRADeviceTaints": True})).taint_rules
    assert not Features.of(FeatureGates("1.36")).taint_rules


def test_an_older_version_has_no_gates_of_later_ones() -> None:
    fields = Features.everything("1.34")
    assert not (fields.list_attributes or fields.derived_attributes or fields.compatibility_groups)
    assert Features.everything("1.36").list_attributes
