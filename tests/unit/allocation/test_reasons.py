"""Reasons: their codes are documented, and each says what is the case in a sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.engine import cel_engine
from kubedra.allocation.features import Features
from kubedra.allocation.reasons import REASON_CODES, Explanation, explain
from kubedra.allocation.scenario import claims_of, load
from kubedra.allocation.violations import CODES as VIOLATIONS
from tests.unit.allocation.scenarios import DRIVER, Tree, claim, device, exactly, resource_slice, taken, world

ROOT = Path(__file__).resolve().parents[3]
TAINT = {"key": "t", "effect": "NoSchedule"}
ATTRIBUTES = f'device.attributes["{DRIVER}"]'


def explanation(scenario: Tree) -> Explanation:
    features = Features.everything("1.37", scenario.get("features"))
    inventory, ledger = load(scenario, features, cel_engine(features))
    pod = Allocator(inventory, ledger).prepare(claims_of(scenario))
    return explain(inventory, ledger, pod, inventory.node_names())


def two_nodes() -> list[Tree]:
    return [
        resource_slice(f"s{n}", [device("d", attributes={"z": 1})], pool=n, where={"nodeName": n}) for n in ("n1", "n2")
    ]


def numbered(*values: int) -> list[Tree]:
    return [resource_slice("s", [device(f"d{i}", attributes={"z": value}) for i, value in enumerate(values)])]


CASES = {
    "claim-invalid": world([], claim(exactly(1, deviceClassName="nope"))),
    "no-nodes": world([], claim(exactly(1)), nodes=[]),
    "nothing-published": world([], claim(exactly(1))),
    "pool-incomplete": world([resource_slice("s", [device("a")], count=2)], claim(exactly(1))),
    "pool-invalid": world([resource_slice(n, [device("a")], count=2) for n in ("s", "t")], claim(exactly(1))),
    "class-matches-nothing": world([resource_slice("s", [device("a")], driver="other.example")], claim(exactly(1))),
    "selector-matches-too-few": world(numbered(1, 2), claim(exactly(2, f"{ATTRIBUTES}.z == 1"))),
    "selector-fails": world(numbered(1), claim(exactly(1, f"{ATTRIBUTES}.missing"))),
    "not-reachable": world([resource_slice("s", [device("a")], where={"nodeName": "elsewhere"})], claim(exactly(1))),
    "feature-off": world(
        [resource_slice("s", [device("a", bindingConditions=["x"], bindingFailureConditions=["y"])])],
        claim(exactly(1)),
        features={"DRADeviceBindingConditions": False},
    ),
    "tainted": world([resource_slice("s", [device("a", taints=[TAINT])])], claim(exactly(1))),
    "too-small": world(
        [resource_slice("s", [device("a", {"c": 1})])], claim(exactly(1, capacity={"requests": {"c": "2"}}))
    ),
    "in-use": world(numbered(1), claim(exactly(1)), allocated=[taken("other", "d0")]),
    "no-room": world(
        [resource_slice("s", [device("a", {"c": 1}, allowMultipleAllocations=True)])],
        claim(exactly(1, capacity={"requests": {"c": "1"}})),
        allocated=[taken("other", ("a", "share", {"c": "1"}))],
    ),
    "constraint": world(numbered(1, 2), claim(exactly(2), constraints=[{"matchAttribute": f"{DRIVER}/z"}])),
    "too-few-on-one-node": world(two_nodes(), claim(exactly(2)), nodes=["n1", "n2"]),
    "not-together": world(numbered(1, 2), claim(exactly(1), exactly(2))),
}


@pytest.mark.parametrize("code", CASES)
def test_every_reason_is_given_where_it_is_the_reason(code: str) -> None:
    found = explanation(CASES[code])
    assert found.reasons[0].code == code
    assert found.sentence()
    assert found.to_tree()["reasons"][0]["code"] == code


def test_every_code_has_a_case() -> None:
    assert set(CASES) == set(REASON_CODES)


def test_the_waterfall_counts_down_and_names_who_holds_the_rest() -> None:
    scenario = world(numbered(1, 1, 2), claim(exactly(2, f"{ATTRIBUTES}.z == 1")), allocated=[taken("other", "d0")])
    (fall,) = explanation(scenario).waterfalls
    assert [(step.code, step.count) for step in fall.steps] == [
        ("published", 3),
        ("current", 3),
        ("class", 3),
        ("selector", 2),
        ("reachable", 2),
        ("free", 1),
    ]
    assert fall.holders == [("allocated-0", 1)]


def test_the_reference_lists_every_code() -> None:
    tool = ROOT / "tools" / "generate_allocation_reference.py"
    subprocess.run([sys.executable, str(tool), "--check"], check=True)
    text = (ROOT / "docs" / "reference" / "allocation.md").read_text()
    assert set(re.findall(r"^\| `([a-z-]+)`", text, re.MULTILINE)) >= {*REASON_CODES, *VIOLATIONS}


def test_no_violation_is_reported_under_an_unknown_code() -> None:
    folder = ROOT / "src" / "kubedra" / "allocation"
    used = set()
    for name in ("checker_claims.py", "checker_totals.py"):
        text = (folder / name).read_text()
        used |= set(re.findall(r'(?:report|Violation)\(\s*"([a-z-]+)"', text))
    assert used <= set(VIOLATIONS)
