"""Claims: what may be asked for, and that nobody changes the question afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra.api import kinds
from tests.unit.validation.cases import context, create, named, update

EXACT = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
REQUEST = {"name": "r", "exactly": EXACT}


def claim(*requests: Any, **members: Any) -> dict[str, Any]:
    return named("ResourceClaim", spec={"devices": {"requests": list(requests), **members}})


def exact(**members: Any) -> dict[str, Any]:
    return claim({"name": "r", "exactly": {**EXACT, **members}})


def numbered(count: int) -> list[dict[str, Any]]:
    return [{"name": f"r{index}", "exactly": EXACT} for index in range(count)]


R0 = "spec.devices.requests[0]"
E0 = f"{R0}.exactly"


@pytest.mark.parametrize(
    ("tree", "faults"),
    [
        (claim(), set()),
        (claim(REQUEST), set()),
        (claim({}), {f"Invalid {R0}.name", f"Required {R0}"}),
        (claim(*numbered(32)), set()),
        (claim(*numbered(33)), {"TooMany spec.devices.requests"}),
        (claim(REQUEST, REQUEST), {"Duplicate spec.devices.requests[1]"}),
        (claim({**REQUEST, "firstAvailable": [{"name": "s", **EXACT}]}), {f"Invalid {R0}"}),
        (claim({**REQUEST, "firstAvailable": []}), set()),
        (exact(deviceClassName=""), {f"Required {E0}.deviceClassName"}),
        (exact(deviceClassName="A_"), {f"Invalid {E0}.deviceClassName"}),
        (exact(count=-1), {f"Invalid {E0}.count"}),
        (exact(allocationMode="All"), {f"Invalid {E0}.count"}),
        (exact(allocationMode="All", count=0), set()),
        (exact(allocationMode="Some"), {f"NotSupported {E0}.allocationMode"}),
        (exact(selectors=[{}]), {f"Required {E0}.selectors[0].cel"}),
        (exact(selectors=[{}] * 33), {f"TooMany {E0}.selectors"}),
        (exact(selectors=[{"cel": {"expression": "x" * 10241}}]), {f"TooLong {E0}.selectors[0].cel.expression"}),
        (exact(tolerations=[{"operator": "Exists", "value": "x"}]), {f"Invalid {E0}.tolerations[0].value"}),
        (exact(tolerations=[{"operator": "X", "effect": "Y"}]), {
            f"NotSupported {E0}.tolerations[0].operator",
            f"NotSupported {E0}.tolerations[0].effect",
        }),
        (exact(tolerations=[{"operator": "Equal", "key": f"k{index}"} for index in range(40)]), set()),
        (exact(capacity={"requests": {"": "-1"}}), set()),
    ],
)  # fmt: skip
def test_requests(tree: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.RESOURCE_CLAIM, tree) == faults


def alternatives(*names: str) -> dict[str, Any]:
    return {"name": "r", "firstAvailable": [{"name": name, **EXACT} for name in names]}


@pytest.mark.parametrize(
    ("request_tree", "faults"),
    [
        (alternatives("a", "b"), set()),
        (alternatives("a", "a"), {f"Duplicate {R0}.firstAvailable[1]"}),
        (alternatives(*(f"s{index}" for index in range(9))), {f"TooMany {R0}.firstAvailable"}),
        (alternatives("A"), {f"Invalid {R0}.firstAvailable[0].name"}),
    ],
)
def test_alternatives(request_tree: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.RESOURCE_CLAIM, claim(request_tree)) == faults


C0 = "spec.devices.constraints[0]"


@pytest.mark.parametrize(
    ("constraint", "faults"),
    [
        ({"matchAttribute": "a.b/c"}, set()),
        ({"matchAttribute": "a.b/c", "distinctAttribute": "!"}, set()),
        ({"matchAttribute": "a/b/c"}, set()),
        ({"matchAttribute": "c"}, {f"Invalid {C0}.matchAttribute"}),
        ({"matchAttribute": "a.b/" + "c" * 33}, {f"TooLong {C0}.matchAttribute"}),
        ({"distinctAttribute": "/c"}, {f"Invalid {C0}.distinctAttribute"}),
        ({}, {f"Required {C0}"}),
        ({"matchAttribute": "a.b/c", "requests": ["r", "r"]}, {f"Duplicate {C0}.requests[1]"}),
        ({"matchAttribute": "a.b/c", "requests": ["s"]}, {f"Invalid {C0}.requests[0]"}),
        ({"matchAttribute": "a.b/c", "requests": ["r/s"]}, {f"Invalid {C0}.requests[0]"}),
        ({"matchAttribute": "a.b/c", "requests": ["r/s/t"]}, {f"Invalid {C0}.requests[0]"}),
    ],
)
def test_constraints(constraint: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.RESOURCE_CLAIM, claim(REQUEST, constraints=[constraint])) == faults


def test_missing_attribute_is_named_where_there_is_only_one() -> None:
    tree = claim(REQUEST, constraints=[{}])
    off = context(DRAConsumableCapacity=False)
    assert create(kinds.RESOURCE_CLAIM, tree, off) == {f"Required {C0}.matchAttribute"}


O0 = "spec.devices.config[0].opaque"


@pytest.mark.parametrize(
    ("config", "faults"),
    [
        ({"opaque": {"driver": "d", "parameters": {}}}, set()),
        ({"opaque": {"driver": "D.x", "parameters": {}}}, set()),
        ({}, {f"Required {O0}"}),
        ({"opaque": {}}, {f"Required {O0}.driver", f"Required {O0}.parameters"}),
        ({"opaque": {"driver": "d", "parameters": [1]}}, {f"Invalid {O0}.parameters"}),
        ({"opaque": {"driver": "d", "parameters": {"a": "x" * 10232}}}, set()),
        ({"opaque": {"driver": "d", "parameters": {"a": "x" * 10233}}}, {f"TooLong {O0}.parameters"}),
        ({"opaque": {"driver": "a" * 64, "parameters": {}}}, {f"TooLong {O0}.driver"}),
    ],
)
def test_config(config: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.RESOURCE_CLAIM, claim(REQUEST, config=[config])) == faults


def test_derived_attributes_must_be_used() -> None:
    derived = [{"name": "derived/numa", "expression": "1"}]
    tree = exact(derivedAttributes=derived)
    assert create(kinds.RESOURCE_CLAIM, tree) == {f"Invalid {E0}.derivedAttributes[0].name"}
    tree["spec"]["devices"]["constraints"] = [{"matchAttribute": "derived/numa", "requests": ["r"]}]
    assert create(kinds.RESOURCE_CLAIM, tree) == set()
    assert create(kinds.RESOURCE_CLAIM, exact(derivedAttributes=[{}])) == {
        f"Required {E0}.derivedAttributes[0].name",
        f"Required {E0}.derivedAttributes[0].expression",
    }


def test_spec_is_immutable() -> None:
    assert update(kinds.RESOURCE_CLAIM, exact(count=2), exact()) == {"Invalid spec"}
    assert update(kinds.RESOURCE_CLAIM, claim(REQUEST, config=[]), claim(REQUEST)) == set()


def test_template_metadata_is_labels_and_annotations_only() -> None:
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "uid": "u", "finalizers": ["x/y"]}
    tree = named("ResourceClaimTemplate", spec={"metadata": metadata, "spec": claim(REQUEST)["spec"]})
    assert create(kinds.RESOURCE_CLAIM_TEMPLATE, tree) == {
        "Forbidden spec.metadata.uID",
        "Forbidden spec.metadata.finalizers",
    }
    changed = named("ResourceClaimTemplate", spec={"spec": exact(count=2)["spec"]})
    assert update(kinds.RESOURCE_CLAIM_TEMPLATE, changed, tree) == {"Invalid spec"}
