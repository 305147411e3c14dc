"""Scenarios that are none: each is refused with a place and a reason, or answered; nothing else may happen."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from kubedra.allocation.engine import cel_engine
from kubedra.allocation.scenario import ScenarioError, read, run
from tests.unit.allocation.scenarios import Tree, claim, device, exactly, resource_slice, taken, world

Path = tuple[Any, ...]
ODD: tuple[Any, ...] = (
    *(None, [], {}, "", 0, -1, 1.5, True, "x", 10**30, "é\u0000", "\ud800"),
    *([None], [[]], ["x"], [1], [{}] * 3, {"a": None}, {"metadata": None}, [{"spec": None}]),
)


def base() -> Tree:
    slices = [resource_slice("s", [device("a", {"m": 4}, attributes={"x": 1}), device("b")])]
    wanted = claim(exactly(1, capacity={"requests": {"m": "1"}}), constraints=[{"matchAttribute": "d.example/x"}])
    rule = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"device": "b"}, "taint": {"key": "k"}}}
    state = {"devices": ["d.example/n1/b"], "shared": ["d.example/n1/a/s"], "capacity": {"d.example/n1/a": {"m": "1"}}}
    return world(
        slices, wanted, allocated=[taken("o", "b")], taintRules=[rule], allocatedState=state, defaults=True, node="*"
    )


def places(tree: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    members = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in members:
        yield from places(value, (*path, key))


@pytest.mark.parametrize("place", list(places(base())), ids=lambda p: ".".join(map(str, p)))
def test_a_value_of_any_kind_anywhere_is_refused_or_answered(place: Path) -> None:
    for odd in ODD:
        scenario = base()
        inner: Any = scenario
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = copy.deepcopy(odd)
        try:
            answer = run(read(json.dumps(scenario)), "1.37", cel_engine)
        except ScenarioError:
            continue
        msgspec.json.encode(answer)
        assert answer == run(read(json.dumps(scenario)), "1.37", cel_engine, plain=True, budget=10_000)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "a scenario is a JSON object"),
        (b"null", "a scenario is a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"nodes": 1}', "nodes: a list is expected"),
        (b'{"node": ["n1"]}', "node: the name of a node"),
        (b'{"features": {"DRADeviceTaints": "no"}}', "features: DRADeviceTaints: true or false"),
        (b'{"claims": [[]]}', "claims[0]: an object"),
        (b'{"slices": [{"spec": {"devices": [{"name": 1}]}}]}', "slices[0]: "),
    ],
)
def test_what_is_no_scenario_is_refused_with_the_place(line: bytes, says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        run(read(line), "1.37", cel_engine)
    assert says in str(refused.value)
