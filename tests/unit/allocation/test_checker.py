"""The independent checker finds every kind of wrong allocation, and nothing in a right one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubedra.allocation.features import Features
from kubedra.allocation.scenario import claims_of
from kubedra.allocation.violations import CODES
from kubedra.api.codec import from_tree
from kubedra.api.core_v1 import Node
from kubedra.api.resource_v1 import AllocationResult, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kubedra.audit.allocations import checker_for
from tests.unit.allocation.scenarios import (
    DRIVER,
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

ATTRIBUTES = f'device.attributes["{DRIVER}"]'


def codes(scenario: Tree, allocations: list[Tree], cluster: bool = False, features: Features | None = None) -> set[str]:
    """What the checker says about allocations for the scenario's claims."""
    checker = checker_for(features or Features())
    for tree in scenario["nodes"]:
        checker.update_node(from_tree(Node, tree))
    for tree in scenario["classes"]:
        checker.update_class(from_tree(DeviceClass, tree))
    for tree in scenario["slices"]:
        checker.update_slice(from_tree(ResourceSlice, tree))
    for tree in scenario.get("taintRules", []):
        checker.update_taint_rule(from_tree(DeviceTaintRule, tree))
    for tree in scenario.get("allocated", []):
        checker.update_claim(from_tree(ResourceClaim, tree))
    claims = claims_of(scenario)
    made = [from_tree(AllocationResult, tree) for tree in allocations]
    if cluster:
        for one, allocation in zip(claims, made, strict=True):
            checker.update_claim(
                type(one)(metadata=one.metadata, spec=one.spec, status=type(one.status)(allocation=allocation))
            )
        return {violation.code for violation in checker.check_cluster()}
    return {violation.code for violation in checker.check_new(list(zip(claims, made, strict=True)), "n1")}


def result(name: str, request: str = "r0", **fields: Any) -> Tree:
    return {"request": request, "driver": DRIVER, "pool": "n1", "device": name, **fields}


PINNED = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}


def allocation(*results: Tree, selector: Tree | None = PINNED) -> Tree:
    return {"devices": {"results": list(results)}, **({"nodeSelector": selector} if selector else {})}


def plain(count: int = 1, cel: str = "", devices: list[Tree] | None = None, **fields: Any) -> Tree:
    made = devices or [device(f"d{i}", attributes={"z": i}) for i in range(3)]
    return world([resource_slice("s", made)], claim(exactly(count, cel, **fields)))


def counted(value: int = 1, groups: tuple[list[str], ...] = ([], [])) -> Tree:
    devices = []
    for index, names in enumerate(groups):
        made = device(f"d{index}", uses={"cs": {"x": 1}})
        if names:
            made["consumesCounters"][0]["compatibilityGroups"] = names
        devices.append(made)
    slices = [resource_slice("c", count=2, counters={"cs": {"x": value}}), resource_slice("s", devices, count=2)]
    return world(slices, claim(exactly(2)))


def shared_world(**wanted: Any) -> Tree:
    policy = {"value": "8", "requestPolicy": {"default": "2", "validRange": {"min": "2", "step": "2", "max": "4"}}}
    return plain(devices=[device("d0", {"c": policy}, allowMultipleAllocations=True)], **wanted)


def with_claims(scenario: Tree, *claims: Tree) -> Tree:
    return {**scenario, "claims": list(claims)}


SHARE = {"shareID": "a", "consumedCapacity": {"c": "2"}}
TAINTED = plain(devices=[device("d0", taints=[{"key": "t", "effect": "NoExecute"}])])
RULE = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {}, "taint": {"key": "t", "effect": "NoSchedule"}}}

WRONG: dict[str, Callable[[], tuple[Tree, list[Tree]]]] = {
    "device-held-twice": lambda: ({**plain(), "allocated": [taken("o", "d0")]}, [allocation(result("d0"))]),
    "capacity-overcommitted": lambda: (
        {**shared_world(), "allocated": [taken("o", ("d0", "b", {"c": "7"}))]},
        [allocation(result("d0", **SHARE))],
    ),
    "counters-overcommitted": lambda: (counted(1), [allocation(result("d0"), result("d1"))]),
    "groups-incompatible": lambda: (counted(2, (["a"], ["b"])), [allocation(result("d0"), result("d1"))]),
    "unknown-request": lambda: (plain(), [allocation(result("d0"), result("d1", "other"))]),
    "wrong-count": lambda: (plain(2), [allocation(result("d0"))]),
    "mixed-alternatives": lambda: (
        with_claims(plain(), claim(first_available(exactly(2), exactly(2)))),
        [allocation(result("d0", "r0/s0"), result("d1", "r0/s1"))],
    ),
    "not-all": lambda: (with_claims(plain(), claim(exactly(None))), [allocation(result("d0"), result("d1"))]),
    "device-twice-in-request": lambda: (plain(2), [allocation(result("d0"), result("d0"))]),
    "device-unknown": lambda: (plain(), [allocation(result("gone"))]),
    "pool-unusable": lambda: (
        world([resource_slice("s", [device("d0")], count=2)], claim(exactly(1))),
        [allocation(result("d0"))],
    ),
    "class-unknown": lambda: (plain(deviceClassName="nope"), [allocation(result("d0"))]),
    "selector-not-met": lambda: (plain(1, f"{ATTRIBUTES}.z == 1"), [allocation(result("d0"))]),
    "selector-failed": lambda: (plain(1, f"{ATTRIBUTES}.missing"), [allocation(result("d0"))]),
    "constraint-not-met": lambda: (
        with_claims(plain(), claim(exactly(2), constraints=[{"matchAttribute": f"{DRIVER}/z"}])),
        [allocation(result("d0"), result("d1"))],
    ),
    "taint-not-tolerated": lambda: (TAINTED, [allocation(result("d0"))]),
    "tolerations-differ": lambda: (plain(), [allocation(result("d0", tolerations=[{"operator": "Exists"}]))]),
    "admin-access-differs": lambda: (plain(), [allocation(result("d0", adminAccess=True))]),
    "share-missing": lambda: (shared_world(), [allocation(result("d0"))]),
    "share-unexpected": lambda: (plain(), [allocation(result("d0", shareID="a"))]),
    "consumed-capacity-wrong": lambda: (
        shared_world(capacity={"requests": {"c": "3"}}),
        [allocation(result("d0", **SHARE))],
    ),
    "too-many-devices": lambda: (
        plain(33, devices=[device(f"d{i}") for i in range(33)]),
        [allocation(*(result(f"d{i}") for i in range(33)))],
    ),
    "node-not-selected": lambda: (
        plain(),
        [
            allocation(
                result("d0"),
                selector={"nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}]},
            )
        ],
    ),
    "node-selector-too-wide": lambda: (
        {**plain(), "nodes": [{"metadata": {"name": n}} for n in ("n1", "n2")]},
        [allocation(result("d0"), selector=None)],
    ),
}


@pytest.mark.parametrize("code", WRONG)
def test_every_kind_of_wrong_allocation_is_found(code: str) -> None:
    scenario, allocations = WRONG[code]()
    assert code in codes(scenario, allocations)


def test_every_code_has_a_case() -> None:
    assert set(WRONG) == set(CODES)


@pytest.mark.parametrize("scenario", [plain(2), shared_world(), counted(2), counted(2, (["a"], ["a", "b"]))])
def test_right_allocations_are_left_alone(scenario: Tree) -> None:
    allocations = answer(scenario)["allocations"]
    assert codes(scenario, allocations) == set()
    assert codes(scenario, allocations, cluster=True) == set()


def test_taint_rules_count_when_an_allocation_is_made_and_not_later() -> None:
    scenario = {**plain(), "taintRules": [RULE]}
    assert codes(scenario, [allocation(result("d0"))]) == {"taint-not-tolerated"}
    assert codes(scenario, [allocation(result("d0"))], cluster=True) == set()


def test_admin_access_holds_nothing() -> None:
    scenario = {**plain(adminAccess=True), "allocated": [taken("o", "d0")]}
    assert codes(scenario, [allocation(result("d0", adminAccess=True))]) == set()


def test_a_further_share_is_not_charged_for_what_was_overdrawn_before() -> None:
    part = device("d0", {"c": 4}, uses={"cs": {"x": 2}}, allowMultipleAllocations=True)
    slices = [resource_slice("c", count=2, counters={"cs": {"x": 1}}), resource_slice("s", [part], count=2)]
    scenario = world(slices, claim(exactly(1, capacity={"requests": {"c": "1"}})))
    scenario["allocated"] = [taken("o", ("d0", "b", {"c": "1"}))]
    assert codes(scenario, answer(scenario)["allocations"]) == set()


def test_derived_values_and_steps_are_checked() -> None:
    derived = [{"name": "v/half", "expression": f"{ATTRIBUTES}.index / 2"}]
    wanted = claim(exactly(2, derivedAttributes=derived), constraints=[{"matchAttribute": "v/half"}])
    scenario = world([resource_slice("s", [device(f"d{i}", attributes={"index": i}) for i in range(4)])], wanted)

    def made(*names: str) -> Tree:
        (right,) = answer(scenario)["allocations"]
        return {**right, "devices": {"results": [result(name) for name in names]}}

    assert codes(scenario, [made("d2", "d3")]) == set()
    assert codes(scenario, [made("d1", "d2")]) == {"constraint-not-met"}
    policy = {"value": "8", "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "2"}}}
    shared = resource_slice("s", [device("d", {"m": policy}, allowMultipleAllocations=True)])
    scenario = world([shared], claim(exactly(1, capacity={"requests": {"m": "4"}})))
    (right,) = answer(scenario)["allocations"]
    (one,) = right["devices"]["results"]
    assert one["consumedCapacity"] == {"m": "5"}
    assert codes(scenario, [right]) == set()
    one["consumedCapacity"] = {"m": "6"}
    assert codes(scenario, [right]) == {"consumed-capacity-wrong"}


def test_devices_that_a_gate_keeps_back_are_not_missed() -> None:
    skipping = {"skipNodeOperations": ["*"]}
    slices = [resource_slice("s", [device("a")]), resource_slice("t", [device("b")], pool="q", spec=skipping)]
    scenario = world(slices, claim(exactly(None)), features={"DRAOptionalNodeOperations": False})
    allocations = answer(scenario)["allocations"]
    assert [r["device"] for r in allocations[0]["devices"]["results"]] == ["a"]
    assert codes(scenario, allocations) == {"not-all"}
    assert codes(scenario, allocations, features=Features(optional_node_operations=False)) == set()
