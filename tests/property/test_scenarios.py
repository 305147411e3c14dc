"""Random scenarios with real CEL: both searches, the finder and the independent checker agree on every node."""

from __future__ import annotations

import json
import os

import pytest

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.engine import cel_engine
from kubedra.allocation.features import Features
from kubedra.allocation.finder import Aborted, Finder, Found
from kubedra.allocation.scenario import claims_of, load, read, run
from kubedra.api.codec import from_tree
from kubedra.api.resource_v1 import AllocationResult
from kubedra.audit.allocations import checker_for
from tests.property.scenario_making import Maker, Tree

# KUBEDRA_SCENARIOS=20000 for a long run by hand.
SEEDS = int(os.environ.get("KUBEDRA_SCENARIOS", "300"))
BATCH = 50
VERSIONS = ("1.37", "1.37", "1.37", "1.36", "1.35", "1.34")
# What the plain search may take; scenarios that need more are left out.
BUDGET = 100_000


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_all_who_answer_agree(first: int) -> None:
    for seed in range(first, first + BATCH):
        tame = seed % 3 > 0
        scenario = Maker(seed, tame).scenario()
        version = "1.37" if tame else VERSIONS[seed // 3 % len(VERSIONS)]
        line = json.dumps(scenario)
        fast = run(read(line), version, cel_engine)["results"]
        plain = run(read(line), version, cel_engine, plain=True, budget=BUDGET)["results"]
        if any((result.get("error") or "").startswith("timed out") for result in plain):
            continue
        assert fast == plain, f"seed {seed}"
        checked(line, version, fast, seed)
        found(line, version, fast, seed)


def checked(line: str, version: str, results: list[Tree], seed: int) -> None:
    """The checker has nothing against what was allocated."""
    scenario = read(line)
    checker = checker_for(Features.everything(version, scenario["features"]))
    for node in scenario["nodes"]:
        checker.update_node(node)
    for device_class in scenario["classes"]:
        checker.update_class(device_class)
    for slice_ in scenario["slices"]:
        checker.update_slice(slice_)
    for rule in scenario["taintRules"]:
        checker.update_taint_rule(rule)
    for claim in scenario["allocated"]:
        checker.update_claim(claim)
    claims = claims_of(scenario)
    for result in results:
        if result["allocations"] is not None:
            made = [from_tree(AllocationResult, tree) for tree in result["allocations"]]
            wrong = checker.check_new(list(zip(claims, made, strict=True)), result["node"])
            assert not wrong, f"seed {seed}: {wrong[0]}"


def found(line: str, version: str, results: list[Tree], seed: int) -> None:
    """The finder stops at the first node that fits or ends the attempt."""
    scenario = read(line)
    features = Features.everything(version, scenario["features"])
    inventory, ledger = load(scenario, features, cel_engine(features))
    finding = Finder(Allocator(inventory, ledger)).find(claims_of(scenario), inventory.node_names())
    last = next((r for r in results if r["allocations"] is not None or ends(r)), None)
    if last is None:
        assert not isinstance(finding, Found | Aborted), f"seed {seed}"
    elif not ends(last):
        assert isinstance(finding, Found), f"seed {seed}"
        assert finding.node == last["node"], f"seed {seed}"


def ends(result: Tree) -> bool:
    return bool(result.get("error")) and not result.get("errorOnNode")
