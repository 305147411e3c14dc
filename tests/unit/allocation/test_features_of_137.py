"""Derived attributes, compatibility groups and optional node operations (dra-1.37.md 8.5, 8.7, 8.8), on and off."""

from __future__ import annotations

import pytest

from tests.unit.allocation.scenarios import (
    DRIVER,
    Tree,
    answer,
    claim,
    device,
    devices_of,
    exactly,
    resource_slice,
    taken,
    world,
)

ATTRIBUTES = f'device.attributes["{DRIVER}"]'


# -- derived attributes -----------------------------------------------------------------------------------------------


def indexed(count: int = 4) -> list[Tree]:
    return [resource_slice("s", [device(f"d{i}", attributes={"index": i}) for i in range(count)])]


def half(expression: str = f"{ATTRIBUTES}.index / 2", name: str = "derived/half") -> list[Tree]:
    return [{"name": name, "expression": expression}]


def test_a_constraint_compares_derived_values() -> None:
    wanted = claim(
        exactly(1, f"{ATTRIBUTES}.index > 0", derivedAttributes=half()),
        exactly(1, derivedAttributes=half()),
        constraints=[{"matchAttribute": "derived/half"}],
    )
    assert devices_of(answer(world(indexed(), wanted))) == ["d1", "d0"]


def test_a_derived_value_hides_a_published_one_from_constraints_alone() -> None:
    devices = [device(f"d{i}", attributes={"z": 7, "index": i}) for i in range(2)]
    wanted = claim(
        exactly(2, f"{ATTRIBUTES}.z == 7", derivedAttributes=half(f"{ATTRIBUTES}.index", f"{DRIVER}/z")),
        constraints=[{"matchAttribute": f"{DRIVER}/z"}],
    )
    assert devices_of(answer(world([resource_slice("s", devices)], wanted))) is None
    wanted["spec"]["devices"]["constraints"] = [{"distinctAttribute": f"{DRIVER}/z"}]
    assert devices_of(answer(world([resource_slice("s", devices)], wanted))) == ["d0", "d1"]


def test_a_derived_list_is_a_set() -> None:
    wanted = claim(
        exactly(2, derivedAttributes=half(f"[{ATTRIBUTES}.index, dyn({ATTRIBUTES}.index + 1)]")),
        constraints=[{"distinctAttribute": "derived/half"}],
    )
    assert devices_of(answer(world(indexed(), wanted))) == ["d0", "d2"]


@pytest.mark.parametrize("expression", [f"{ATTRIBUTES}.missing", 'quantity("1Gi")', "1 +"])
def test_a_derived_attribute_that_fails_ends_the_attempt(expression: str) -> None:
    wanted = claim(exactly(1, derivedAttributes=half(expression)), constraints=[{"matchAttribute": "derived/half"}])
    result = answer(world(indexed(), wanted))
    assert "derived attribute derived/half" in result["error"]
    assert "errorOnNode" not in result


def test_without_the_gate_derived_attributes_do_not_exist() -> None:
    wanted = claim(exactly(1, derivedAttributes=half()), constraints=[{"matchAttribute": "derived/half"}])
    scenario = world(indexed(), wanted, features={"DRADerivedAttributes": False})
    assert devices_of(answer(scenario)) is None
    scenario.pop("features")
    assert devices_of(answer(scenario)) == ["d0"]
    # A cluster of 1.36 has never heard of them.
    assert devices_of(answer(scenario, "1.36")) is None


# -- compatibility groups ---------------------------------------------------------------------------------------------


def grouped(*groups: list[str]) -> list[Tree]:
    devices = []
    for index, names in enumerate(groups):
        made = device(f"d{index}", uses={"cs": {"x": 1}})
        if names:
            made["consumesCounters"][0]["compatibilityGroups"] = names
        devices.append(made)
    return [resource_slice("c", count=2, counters={"cs": {"x": 9}}), resource_slice("s", devices, count=2)]


@pytest.mark.parametrize(
    ("groups", "fitting"),
    [
        ([["a"], ["b"], ["a"]], ["d0", "d2"]),
        ([["a", "b"], ["b"], ["a"]], ["d0", "d1"]),
        ([[], ["a"], []], ["d0", "d2"]),
        ([["a"], [], ["b"]], None),
        ([[], ["a"], ["a"]], ["d1", "d2"]),
    ],
)
def test_devices_on_a_counter_set_share_a_group_or_have_none(
    groups: list[list[str]], fitting: list[str] | None
) -> None:
    assert devices_of(answer(world(grouped(*groups), claim(exactly(2))))) == fitting


def test_the_common_group_narrows_with_each_device() -> None:
    slices = grouped(["a", "b"], ["b", "c"], ["a"], ["b"])
    assert devices_of(answer(world(slices, claim(exactly(3))))) == ["d0", "d1", "d3"]


def test_allocated_devices_count_across_claims() -> None:
    scenario = world(grouped(["a"], ["b"], ["a"]), claim(exactly(1)), allocated=[taken("other", "d1")])
    assert devices_of(answer(scenario)) is None
    scenario["allocated"] = [taken("other", "d0")]
    assert devices_of(answer(scenario)) == ["d2"]


def test_without_the_gate_pools_with_groups_are_left_out() -> None:
    scenario = world(grouped(["a"], ["a"]), claim(exactly(1)), features={"DRADeviceCompatibilityGroups": False})
    assert devices_of(answer(scenario)) is None
    scenario["slices"] += [resource_slice("t", [device("x")], pool="other")]
    assert devices_of(answer(scenario)) == ["x"]
    scenario["claims"] = [claim(exactly(None))]
    assert "currently being updated" in answer(scenario)["error"]


# -- optional node operations -----------------------------------------------------------------------------------------


def test_skipped_operations_are_copied_from_the_slice() -> None:
    skipped = ["NodePrepareResources", "NodeUnprepareResources"]
    slices = [
        resource_slice("s", [device("a")], count=2, spec={"skipNodeOperations": skipped}),
        resource_slice("t", [device("b")], count=2),
    ]
    scenario = world(slices, claim(exactly(2)))
    (allocation,) = answer(scenario)["allocations"]
    assert [r.get("skipNodeOperations") for r in allocation["devices"]["results"]] == [skipped, None]
    scenario["claims"] = [claim(exactly(1))]
    scenario["features"] = {"DRAOptionalNodeOperations": False}
    assert devices_of(answer(scenario)) == ["b"]
