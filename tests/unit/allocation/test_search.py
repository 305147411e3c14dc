"""The search as a machine: it pauses, it can be given up, and giving up is never an answer."""

from __future__ import annotations

import pytest
from benchmarks.allocation_scenarios import SIZES, hard

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.engine import cel_engine
from kubedra.allocation.features import Features
from kubedra.allocation.outcomes import AllocationError, DoesNotFit
from kubedra.allocation.scenario import claims_of, load, run
from tests.unit.allocation.scenarios import (
    Tree,
    answer,
    claim,
    device,
    devices_of,
    exactly,
    fast_answer,
    resource_slice,
    taken,
    world,
)


def allocator_for(scenario: Tree, **given: object) -> Allocator:
    features = Features()
    inventory, ledger = load(scenario, features, cel_engine(features))
    return Allocator(inventory, ledger, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("family", SIZES)
@pytest.mark.parametrize("factor", [1, 2])
def test_what_explodes_in_a_naive_search_is_decided_in_few_steps(family: str, factor: int) -> None:
    scenario = hard(family, 31 if family == "A" and factor == 2 else SIZES[family] * factor)
    outcome = allocator_for(scenario, budget=2000).allocate("n", claims_of(scenario))
    assert isinstance(outcome, DoesNotFit)


def test_a_search_that_is_cut_off_says_so() -> None:
    scenario = hard("B", 10)
    outcome = allocator_for(scenario, plain=True, budget=5000).allocate("n", claims_of(scenario))
    assert isinstance(outcome, AllocationError)
    assert outcome.timed_out
    assert outcome.message.startswith("timed out")
    (result,) = run(scenario, "1.37", cel_engine, plain=True, budget=5000)["results"]
    assert result["allocations"] is None
    assert result["error"].startswith("timed out")


def test_a_search_pauses_and_can_be_left() -> None:
    scenario = hard("B", 10)
    allocator = allocator_for(scenario, plain=True)
    before = allocator.ledger.snapshot()
    steps = allocator.steps("n", claims_of(scenario))
    for _ in range(20):
        next(steps)
    steps.close()
    assert allocator.ledger.snapshot() == before


def test_thousands_of_devices_need_no_deep_recursion() -> None:
    slices = [resource_slice(f"s{i:03}", [device(f"d{i}-{j}") for j in range(128)], count=40) for i in range(40)]
    claims = [claim(exactly(32), name=f"x{i}") for i in range(40)]
    assert len(devices_of(fast_answer(world(slices, *claims))) or ()) == 1280


def test_all_claims_of_a_pod_are_placed_together() -> None:
    devices = [device("a", attributes={"z": 1}), device("b", attributes={"z": 2})]
    first = claim(exactly(1), name="first")
    picky = claim(exactly(1, 'device.attributes["d.example"].z == 1'), name="picky")
    assert devices_of(fast_answer(world([resource_slice("s", devices)], first, picky))) == ["b", "a"]


def test_a_device_that_can_no_longer_be_shared_stays_with_those_who_hold_shares() -> None:
    slices = [resource_slice("s", [device("a"), device("b")])]
    scenario = world(slices, claim(exactly(1)), allocated=[taken("o", ("a", "share", None))])
    assert devices_of(answer(scenario)) == ["b"]


def test_a_count_below_zero_asks_for_nothing() -> None:
    slices = [resource_slice("s", [device("a")])]
    wanted = claim(exactly(-1), constraints=[{"matchAttribute": "d.example/x"}])
    assert devices_of(answer(world(slices, wanted, allocated=[taken("o", "a")]))) == []
