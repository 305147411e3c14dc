"""Small random clusters for the allocator's property tests, and a selector language so small that it can't be wrong.

The selectors are not CEL on purpose: what is tested here is the allocator, and the tests must not depend on another
room. ``a=1`` compares, ``a`` reads a bool and fails where there is none, ``*`` admits everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from kubedra.allocation.columns import ValueSet
from kubedra.allocation.devices import DeviceView
from kubedra.allocation.selection import Expression, ReadSet, SelectorFailure
from kubedra.api.codec import from_tree
from kubedra.api.core_v1 import Node
from kubedra.api.resource_v1 import Device, DeviceClass, ResourceClaim, ResourceSlice

DRIVER = "d.example"
Tree = dict[str, Any]


def value_of(device: Device, name: str) -> Any:
    """The scalar value of an unqualified attribute, None if there is none."""
    attribute = device.attributes.get(name)
    if attribute is None:
        return None
    return next((v for v in (attribute.int_, attribute.string, attribute.bool_) if v is not None), None)


def matches(expression: str, device: Device, driver: str) -> bool:
    """Evaluate a selector; raises ValueError where CEL would raise."""
    if expression == "*":
        return True
    if expression.startswith("driver="):
        return driver == expression.removeprefix("driver=")
    name, equals, wanted = expression.partition("=")
    value = value_of(device, name)
    if equals:
        return value is not None and str(value) == wanted
    if not isinstance(value, bool):
        raise ValueError(f"no such key: {name}")
    return value


@dataclass(frozen=True)
class ToyExpression:
    """A selector in the toy language."""

    text: str

    @property
    def reads(self) -> ReadSet:
        name = self.text.partition("=")[0]
        return ReadSet() if name in ("*", "driver") else ReadSet(attributes=frozenset(((DRIVER, name),)))

    def test(self, device: DeviceView) -> bool:
        try:
            return matches(self.text, device.raw, device.slice.driver)
        except ValueError as error:
            raise SelectorFailure(str(error)) from None

    def derive(self, device: DeviceView) -> ValueSet:
        value = value_of(device.raw, self.text)
        if value is None:
            raise SelectorFailure(f"no such key: {self.text}")
        return frozenset((("int", value),))


def compile_toy(text: str, derived: bool = False) -> Expression:
    """Compile a selector of the toy language."""
    return ToyExpression(text)


@dataclass
class World:
    """A cluster as API objects."""

    nodes: list[Node]
    slices: list[ResourceSlice]
    classes: list[DeviceClass]
    allocated: list[ResourceClaim]
    claims: list[ResourceClaim]


small = st.integers(0, 2)
CLASSES = [
    {"metadata": {"name": "all"}},
    {"metadata": {"name": "red"}, "spec": {"selectors": [{"cel": {"expression": "color=0"}}]}},
]


@st.composite
def devices(draw: st.DrawFn, prefix: str, counters: bool, errors: bool, most: int = 5) -> list[Tree]:
    """Devices of one slice."""
    made = []
    for index in range(draw(st.integers(0, most))):
        attributes: Tree = {"color": {"int": draw(small)}}
        if draw(st.booleans()):
            attributes["numa"] = {"int": draw(small)}
        elif draw(st.booleans()):
            attributes["numa"] = {"ints": sorted(draw(st.sets(small, min_size=1)))}
        if not errors or draw(st.integers(0, 3)):
            attributes["ok"] = {"bool": draw(st.booleans())}
        if errors and draw(st.integers(0, 15)) == 0:
            attributes["release"] = {"version": "not a version"}
        device: Tree = {"name": f"{prefix}{index}", "attributes": attributes}
        kind = draw(st.integers(0, 5))
        if kind == 0:
            device["allowMultipleAllocations"] = True
        if kind <= 1:
            policy: Tree = {}
            if kind == 0 and draw(st.booleans()):
                policy = {
                    "default": "2",
                    "validRange": {"min": "1", "max": "4", "step": draw(st.sampled_from(["1", "2"]))},
                }
            device["capacity"] = {"mem": {"value": "4", **({"requestPolicy": policy} if policy else {})}}
        if counters and draw(st.integers(0, 2)):
            uses = {"counterSet": "cs", "counters": {"x": {"value": str(draw(st.integers(1, 3)))}}}
            group = draw(st.integers(0, 5))
            if group < 2:
                uses["compatibilityGroups"] = [f"g{group}"]
            device["consumesCounters"] = [uses]
        if draw(st.integers(0, 7)) == 0:
            device["taints"] = [{"key": "t", "effect": "NoSchedule"}]
        made.append(device)
    return made


@st.composite
def pools(draw: st.DrawFn, name: str, errors: bool, most: int, node: str = "n") -> list[Tree]:
    """The slices of one complete pool on a node, or on all nodes."""
    counters = draw(st.booleans())
    parts = [draw(devices(f"{name}-{i}-", counters, errors, most)) for i in range(draw(st.integers(1, 2)))]
    count = len(parts) + counters
    where: Tree = {"nodeName": node} if draw(st.integers(0, 3)) else {"allNodes": True}
    spec = {"driver": DRIVER, "pool": {"name": name, "generation": 1, "resourceSliceCount": count}, **where}
    slices = [{"metadata": {"name": f"{name}-{i}"}, "spec": {**spec, "devices": part}} for i, part in enumerate(parts)]
    if counters:
        total = {"counters": {"x": {"value": str(draw(st.integers(2, 6)))}}, "name": "cs"}
        slices.append({"metadata": {"name": f"{name}-c"}, "spec": {**spec, "sharedCounters": [total]}})
    return slices


@st.composite
def alternatives(draw: st.DrawFn, errors: bool, everything: bool, exactly: bool) -> Tree:
    """One exact request or alternative."""
    mode = "All" if everything and draw(st.integers(0, 4)) == 0 else "ExactCount"
    made: Tree = {"deviceClassName": draw(st.sampled_from(["all", "all", "red"])), "allocationMode": mode}
    if mode == "ExactCount":
        made["count"] = draw(st.sampled_from([1, 1, 1, 2, 2, 3]))
    expressions = ["*", "color=1", "color=0"] + (["ok"] if errors else ["ok=True"])
    if draw(st.booleans()):
        made["selectors"] = [{"cel": {"expression": draw(st.sampled_from(expressions))}}]
    if draw(st.integers(0, 3)) == 0:
        made["tolerations"] = [{"operator": "Exists"}]
    if draw(st.integers(0, 3)) == 0:
        made["capacity"] = {"requests": {"mem": draw(st.sampled_from(["1", "2", "3"]))}}
    if exactly and draw(st.integers(0, 9)) == 0:
        made["adminAccess"] = True
    return made


@st.composite
def claims(draw: st.DrawFn, name: str, errors: bool, everything: bool) -> ResourceClaim:
    """One claim with up to three requests."""
    requests: list[Tree] = []
    for index in range(draw(st.integers(1, 3))):
        if draw(st.integers(0, 3)):
            requests.append({"name": f"r{index}", "exactly": draw(alternatives(errors, everything, True))})
        else:
            subs = [
                {"name": f"s{i}", **draw(alternatives(errors, everything, False))}
                for i in range(draw(st.integers(1, 3)))
            ]
            requests.append({"name": f"r{index}", "firstAvailable": subs})
    constraints: list[Tree] = []
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        kind = draw(st.sampled_from(["matchAttribute", "distinctAttribute"]))
        attribute = draw(st.sampled_from(["numa", "color"]))
        covered = draw(st.lists(st.sampled_from([r["name"] for r in requests]), unique=True))
        constraints.append({kind: f"{DRIVER}/{attribute}", "requests": covered})
    tree = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": requests, "constraints": constraints}},
    }
    return from_tree(ResourceClaim, tree)


@st.composite
def worlds(draw: st.DrawFn, errors: bool = False, everything: bool = False, most: int = 5) -> World:
    """A cluster with one node, some devices taken, and claims of a pod."""
    slices = [s for i in range(draw(st.integers(1, 2))) for s in draw(pools(f"p{i}", errors, most))]
    allocated = []
    for slice_ in slices:
        for device in slice_["spec"].get("devices", []):
            if draw(st.integers(0, 5)) == 0:
                result = {
                    "request": "r",
                    "driver": DRIVER,
                    "pool": slice_["spec"]["pool"]["name"],
                    "device": device["name"],
                }
                if device.get("allowMultipleAllocations"):
                    result |= {"shareID": f"share-{device['name']}", "consumedCapacity": {"mem": "2"}}
                uid = f"uid-used-{device['name']}"
                allocated.append(
                    {
                        "metadata": {"name": uid, "namespace": "default", "uid": uid},
                        "status": {"allocation": {"devices": {"results": [result]}}},
                    }
                )
    return World(
        [from_tree(Node, {"metadata": {"name": "n"}})],
        [from_tree(ResourceSlice, s) for s in slices],
        [from_tree(DeviceClass, c) for c in CLASSES],
        [from_tree(ResourceClaim, c) for c in allocated],
        [draw(claims(f"c{i}", errors, everything)) for i in range(draw(st.sampled_from([1, 1, 1, 2])))],
    )


@st.composite
def fleets(draw: st.DrawFn) -> World:
    """Some nodes, many of them alike, and pods of few kinds."""
    shapes = [draw(pools("local", True, 3, "NODE")) for _ in range(2)]
    nodes, slices = [], []
    for index in range(draw(st.integers(2, 6))):
        name = f"n{index}"
        nodes.append(from_tree(Node, {"metadata": {"name": name}}))
        for tree in draw(st.sampled_from(shapes)):
            spec = {**tree["spec"], "pool": {**tree["spec"]["pool"], "name": name}}
            if "nodeName" in spec:
                spec["nodeName"] = name
            slices.append({"metadata": {"name": f"{name}-{tree['metadata']['name']}"}, "spec": spec})
    return World(
        nodes,
        [from_tree(ResourceSlice, s) for s in slices],
        [from_tree(DeviceClass, c) for c in CLASSES],
        [],
        [draw(claims(f"c{i}", True, draw(st.booleans()))) for i in range(2)],
    )
