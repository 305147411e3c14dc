"""Replays allocation scenarios with right answers; the independent checker looks at every result as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubedra.allocation.engine import cel_engine
from kubedra.allocation.features import Features
from kubedra.allocation.scenario import claims_of, run
from kubedra.api.codec import from_tree
from kubedra.api.core_v1 import Node
from kubedra.api.resource_v1 import AllocationResult, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kubedra.audit.allocations import checker_for
from tests.shared_cases import read_cases


def without_defaults(tree: Any) -> Any:
    """The tree without members that say nothing (null, empty)."""
    if isinstance(tree, dict):
        return {k: without_defaults(v) for k, v in tree.items() if v not in (None, [], {})}
    if isinstance(tree, list):
        return [without_defaults(item) for item in tree]
    return tree


def problems(case: dict[str, Any], expected: list[dict[str, Any]], plain: bool) -> Iterator[str]:
    """How the answer to a case differs from the right one."""
    results = run(case, "1.37", cel_engine, plain=plain)["results"]
    if [r["node"] for r in results] != [r["node"] for r in expected]:
        yield "other nodes"
    for mine, right in zip(results, expected, strict=False):
        where = f"{case['name']}, node {right['node']}"
        if bool(mine.get("error")) != bool(right.get("error")):
            yield f"{where}: error {mine.get('error')!r} instead of {right.get('error')!r}"
        elif right.get("error"):
            if bool(mine.get("errorOnNode")) != bool(right.get("errorOnNode")):
                yield f"{where}: error of the node or not"
        elif (mine["allocations"] is None) != (right["allocations"] is None):
            yield f"{where}: {'none' if mine['allocations'] is None else 'an allocation'} is wrong"
        elif without_defaults(mine["allocations"]) != without_defaults(right["allocations"]):
            yield f"{where}: another allocation"
    yield from check(case, results)


def check(case: dict[str, Any], results: list[dict[str, Any]]) -> Iterator[str]:
    """What the independent checker says about the results."""
    checker = checker_for(Features.everything("1.37", case.get("features") or {}))
    for number, tree in enumerate(case.get("slices") or []):
        checker.update_slice(from_tree(ResourceSlice, tree), str(number))
    for tree in case.get("classes") or []:
        checker.update_class(from_tree(DeviceClass, tree))
    for tree in case.get("nodes") or []:
        checker.update_node(from_tree(Node, tree))
    for tree in case.get("taintRules") or []:
        checker.update_taint_rule(from_tree(DeviceTaintRule, tree))
    for number, tree in enumerate(case.get("allocated") or []):
        checker.update_claim(from_tree(ResourceClaim, tree), str(number))
    claims = claims_of(case)
    for result in results:
        if result["allocations"]:
            allocations = [from_tree(AllocationResult, tree) for tree in result["allocations"]]
            for violation in checker.check_new(list(zip(claims, allocations, strict=True)), result["node"]):
                yield f"{case['name']}, node {result['node']}: {violation}"


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_the_table_of_upstream(plain: bool) -> None:
    found: list[str] = []
    count = 0
    for case in read_cases("allocator-table.jsonl.gz"):
        count += 1
        right = {"node": case["node"], "allocations": case["expectResults"], "error": case["expectError"]}
        mine = [p for p in problems(case, [right], plain) if "error of the node" not in p]
        found += mine
    assert found == []
    assert count == 223


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_random_clusters(plain: bool) -> None:
    found = []
    count = 0
    for case in read_cases("allocator-random.jsonl.gz"):
        count += 1
        found += list(problems(case, case["expect"], plain))
    assert found == []
    assert count == 1000
