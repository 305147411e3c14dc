"""The form of scenarios: extra state, defaults, the order and number of answers, versions."""

from __future__ import annotations

import pytest

from kubedra.allocation.engine import cel_engine
from kubedra.allocation.scenario import ScenarioError, read, run
from tests.unit.allocation.scenarios import (
    Tree,
    answer,
    answers,
    claim,
    device,
    devices_of,
    exactly,
    resource_slice,
    world,
)


def shared(amount: int = 2) -> Tree:
    return device("d1", {"c": amount}, allowMultipleAllocations=True)


def with_state(state: Tree, **wanted: object) -> Tree:
    return world([resource_slice("s", [shared()])], claim(exactly(1, **wanted)), allocatedState=state)


def test_extra_state_takes_devices_shares_and_capacity() -> None:
    one = {"capacity": {"requests": {"c": "1"}}}
    place = "d.example/n1/d1"
    assert devices_of(answer(with_state({}, **one))) == ["d1"]
    assert devices_of(answer(with_state({"devices": [place]}, **one))) is None
    assert devices_of(answer(with_state({"shared": [f"{place}/s1"]}, **one))) == ["d1"]
    assert devices_of(answer(with_state({"capacity": {place: {"c": "2"}}}, **one))) is None
    taken = {"shared": [f"{place}/s1"], "capacity": {place: {"c": "1"}}}
    assert devices_of(answer(with_state(taken, **one))) == ["d1"]
    assert devices_of(answer(with_state(taken, capacity={"requests": {"c": "2"}}))) is None


def test_pool_names_in_extra_state_may_have_slashes() -> None:
    scenario = world([resource_slice("s", [device("a")], pool="rack/1")], claim(exactly(1)))
    scenario["allocatedState"] = {"devices": ["d.example/rack/1/a"]}
    assert devices_of(answer(scenario)) is None
    scenario["allocatedState"] = {"devices": ["nonsense"]}
    with pytest.raises(ScenarioError, match="driver/pool/device"):
        run(scenario, "1.37", cel_engine)


def test_defaults_are_those_of_the_api_and_only_on_request() -> None:
    bare = {
        "metadata": {"name": "x"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
    }
    scenario = world([resource_slice("s", [device("a"), device("b")])], bare)
    assert "unsupported count mode" in answer(scenario)["error"]
    assert devices_of(answer({**scenario, "defaults": True})) == ["a"]


def test_every_node_is_answered_in_order_until_the_first_that_fits_is_enough() -> None:
    slices = [resource_slice(f"s{n}", [device("a")], pool=n, where={"nodeName": n}) for n in ("n2", "n3")]
    scenario = world(slices, claim(exactly(1)), nodes=["n1", "n2", "n3"])
    assert [r["node"] for r in answers({**scenario, "node": "*"})] == ["n1", "n2", "n3"]
    assert [r["node"] for r in answers({**scenario, "node": "*", "stopAtFirst": True})] == ["n1", "n2"]
    assert [r["node"] for r in answers({**scenario, "node": "n3"})] == ["n3"]


def test_no_claims_are_a_success() -> None:
    assert answer(world([resource_slice("s", [device("a")])]))["allocations"] == []


def test_share_ids_are_numbered_in_each_answer() -> None:
    slices = [resource_slice(f"s{n}", [shared()], pool=n, where={"nodeName": n}) for n in ("n1", "n2")]
    wanted = claim(exactly(1, capacity={"requests": {"c": "1"}}), exactly(1, capacity={"requests": {"c": "1"}}))
    for result in answers(world(slices, wanted, nodes=["n1", "n2"])):
        found = [r["shareID"] for r in result["allocations"][0]["devices"]["results"]]
        assert found == ["share-1", "share-2"]


def opaque(mode: str) -> Tree:
    return {"opaque": {"driver": "d.example", "parameters": {"mode": mode}}}


def test_configuration_is_scoped_as_the_version_does_it() -> None:
    wanted = claim(exactly(1), exactly(1), config=[{"requests": ["r0", "r1"], **opaque("x")}])
    scenario = world([resource_slice("s", [device("a"), device("b")])], wanted)
    entry = {"source": "FromClaim", **opaque("x")}
    scoped = {**entry, "requests": ["r0", "r1"]}
    assert answer(scenario, "1.37")["allocations"][0]["devices"]["config"] == [entry]
    assert answer(scenario, "1.36")["allocations"][0]["devices"]["config"] == [scoped, scoped]


def test_quantities_may_be_numbers_and_members_may_be_null() -> None:
    text = b"""{"name": "n", "nodes": [{"metadata": {"name": "n1"}}], "allocated": null, "claims": [], "slices": [
      {"metadata": {"name": "s"}, "spec": {"driver": "d.example", "nodeName": "n1", "sharedCounters": null,
       "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
       "devices": [{"name": "a", "capacity": {"c": {"value": 5}}}]}}]}"""
    assert run(read(text), "1.37", cel_engine)["results"] == [{"node": "n1", "allocations": []}]
