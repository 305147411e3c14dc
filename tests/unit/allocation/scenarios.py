"""Short ways to write allocation scenarios in tests: one driver, one node unless said otherwise."""

from __future__ import annotations

from typing import Any

from kubedra.allocation.engine import cel_engine
from kubedra.allocation.scenario import run

Tree = dict[str, Any]
DRIVER = "d.example"


def device(name: str, capacity: Tree | None = None, uses: Tree | None = None, **fields: Any) -> Tree:
    """A device; ``capacity`` and ``uses`` ({set: {counter: amount}}) in short form, attributes typed by value."""
    attributes: Tree = {}
    for key, value in fields.pop("attributes", {}).items():
        kind = {bool: "bool", int: "int", str: "string", list: "ints"}[type(value)]
        attributes[key] = {kind: value}
    made: Tree = {"name": name, **fields}
    if attributes:
        made["attributes"] = attributes
    if capacity:
        made["capacity"] = {k: v if isinstance(v, dict) else {"value": str(v)} for k, v in capacity.items()}
    if uses:
        made["consumesCounters"] = [
            {"counterSet": name, "counters": {k: {"value": str(v)} for k, v in counters.items()}}
            for name, counters in uses.items()
        ]
    return made


def resource_slice(name: str, devices: list[Tree] | None = None, **given: Any) -> Tree:
    """A slice of pool n1 on node n1."""
    spec: Tree = {
        "driver": given.get("driver", DRIVER),
        "pool": {
            "name": given.get("pool", "n1"),
            "generation": given.get("generation", 1),
            "resourceSliceCount": given.get("count", 1),
        },
    }
    where = given.get("where", {"nodeName": "n1"})
    counters = given.get("counters")
    if counters:
        spec["sharedCounters"] = [
            {"name": name, "counters": {k: {"value": str(v)} for k, v in values.items()}}
            for name, values in counters.items()
        ]
    else:
        spec["devices"] = devices or []
    return {"metadata": {"name": name}, "spec": {**spec, **where, **given.get("spec", {})}}


def exactly(count: int | None = 1, cel: str = "", **fields: Any) -> Tree:
    """An exact request or alternative; count None asks for all devices."""
    made: Tree = {"deviceClassName": "c", "allocationMode": "All" if count is None else "ExactCount", **fields}
    if count is not None:
        made["count"] = count
    if cel:
        made["selectors"] = [{"cel": {"expression": cel}}]
    return made


def claim(*requests: Tree, name: str = "x", **devices: Any) -> Tree:
    """A claim; a request is exact unless it says firstAvailable. Names are r0, r1… unless given."""
    made = []
    for index, request in enumerate(requests):
        request = dict(request)
        label = request.pop("name", f"r{index}")
        made.append({"name": label, **(request if "firstAvailable" in request else {"exactly": request})})
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"devices": {"requests": made, **devices}}}


def first_available(*alternatives: Tree, name: str = "") -> Tree:
    """A request with alternatives s0, s1…"""
    made: Tree = {"firstAvailable": [{"name": f"s{i}", **a} for i, a in enumerate(alternatives)]}
    return {**made, "name": name} if name else made


def taken(name: str, *devices: Any, driver: str = DRIVER, pool: str = "n1") -> Tree:
    """A claim that holds devices: names, or (name, share ID, consumed capacity)."""
    results = []
    for item in devices:
        result: Tree = {"request": "r", "driver": driver, "pool": pool}
        if isinstance(item, tuple):
            result |= {"device": item[0], "shareID": item[1]}
            if item[2]:
                result["consumedCapacity"] = item[2]
        else:
            result["device"] = item
        results.append(result)
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": metadata, "status": {"allocation": {"devices": {"results": results}}}}


def world(slices: list[Tree], *claims: Tree, **given: Any) -> Tree:
    """A scenario with node n1 and class c (all devices of the driver)."""
    classes = given.pop("classes", None) or [
        {"metadata": {"name": "c"}, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}}
    ]
    nodes = [{"metadata": {"name": name}} for name in given.pop("nodes", ["n1"])]
    return {"name": "test", "nodes": nodes, "classes": classes, "slices": slices, "claims": list(claims), **given}


def answers(scenario: Tree, version: str = "1.37") -> list[Tree]:
    """The results of a scenario, after making sure that the plain search agrees."""
    results: list[Tree] = run(scenario, version, cel_engine)["results"]
    assert results == run(scenario, version, cel_engine, plain=True, budget=200_000)["results"]
    return results


def fast_answer(scenario: Tree, version: str = "1.37") -> Tree:
    """The only result of a scenario on which the plain search would not end."""
    results: list[Tree] = run(scenario, version, cel_engine)["results"]
    (result,) = results
    return result


def answer(scenario: Tree, version: str = "1.37") -> Tree:
    """The result of the first node."""
    return answers(scenario, version)[0]


def devices_of(result: Tree) -> list[str] | None:
    """The devices of all claims in order, or None if they do not fit. Fails on an error."""
    assert not result.get("error"), result["error"]
    if result["allocations"] is None:
        return None
    return [r["device"] for a in result["allocations"] for r in a.get("devices", {}).get("results", [])]
