"""Laws of patches and of field ownership, on generated objects."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubedra.api import kinds, schema
from kubedra.api.errors import ApiError
from kubedra.server import patch
from kubedra.server.patch.apply import fieldset as fs

Tree = dict[str, Any]
KEYS = st.sampled_from(["a", "b", "c", "d/e", "f~g"])
SCALARS = st.one_of(st.booleans(), st.integers(-3, 3), st.sampled_from(["x", "y", ""]))
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=4)

LABELS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=3)


def _container(name: str) -> st.SearchStrategy[Tree]:
    env = st.lists(st.sampled_from("ABC"), min_size=1, max_size=3, unique=True).map(
        lambda names: [{"name": n, "value": "v"} for n in names]
    )
    return st.fixed_dictionaries({"name": st.just(name), "image": st.sampled_from("ij")}, optional={"env": env})


CONTAINERS = st.lists(st.sampled_from("pqr"), max_size=3, unique=True).flatmap(
    lambda names: st.tuples(*[_container(name) for name in names]).map(list)
)
PODS = st.fixed_dictionaries(
    {"labels": LABELS, "containers": CONTAINERS, "host": st.one_of(st.none(), st.booleans())}
).map(
    lambda p: {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", **({"labels": p["labels"]} if p["labels"] else {})},
        "spec": {
            **({"containers": p["containers"]} if p["containers"] else {}),
            **({} if p["host"] is None else {"hostNetwork": p["host"]}),
        },
    }
)
TIME = "2026-01-01T00:00:00Z"


@given(OBJECTS, OBJECTS)
def test_a_computed_merge_patch_leads_to_the_target(old: Tree, new: Tree) -> None:
    before = copy.deepcopy((old, new))
    assert patch.merge_patch(old, patch.create_merge_patch(old, new)) == new
    assert before == (old, new)


def _operations(old: Any, new: Any, path: str = "") -> list[Tree]:
    """A JSON patch from one object to another."""
    if isinstance(old, dict) and isinstance(new, dict):
        out: list[Tree] = []
        for key in old.keys() | new.keys():
            at = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            if key not in new:
                out += [{"op": "test", "path": at, "value": old[key]}, {"op": "remove", "path": at}]
            elif key not in old:
                out.append({"op": "add", "path": at, "value": new[key]})
            else:
                out += _operations(old[key], new[key], at)
        return out
    return [{"op": "replace", "path": path, "value": new}]


@given(OBJECTS, OBJECTS)
def test_a_computed_json_patch_leads_to_the_target(old: Tree, new: Tree) -> None:
    before = copy.deepcopy((old, new))
    assert patch.json_patch(old, _operations(old, new)) == new
    assert before == (old, new)


def _strategic(old: Tree, new: Tree) -> Tree:
    """What ``kubectl`` would send: changed items, deletions and the order."""
    spec: Tree = {}
    left, right = old["spec"].get("containers", []), new["spec"].get("containers", [])
    if right:
        gone = {c["name"] for c in left} - {c["name"] for c in right}
        items = [
            {"$retainKeys": sorted(c), **c, "env": [{"$patch": "replace"}, *c["env"]]}
            if "env" in c
            else {"$retainKeys": sorted(c), **c}
            for c in right
            if c["name"] in {x["name"] for x in left}
        ]
        items += [c for c in right if c["name"] not in {x["name"] for x in left}]
        order = {c["name"]: i for i, c in enumerate(right)}
        items.sort(key=lambda c: order[c["name"]])
        spec["containers"] = items + [{"$patch": "delete", "name": name} for name in sorted(gone)]
        spec["$setElementOrder/containers"] = [{"name": c["name"]} for c in right]
    elif left:
        spec["containers"] = None
    spec["hostNetwork"] = new["spec"].get("hostNetwork")
    labels = {**dict.fromkeys(old["metadata"].get("labels", {})), **new["metadata"].get("labels", {})}
    meta = {"labels": labels if "labels" in new["metadata"] else None}
    return {"metadata": meta, "spec": spec}


@given(PODS, PODS)
def test_a_computed_strategic_patch_leads_to_the_target(old: Tree, new: Tree) -> None:
    change = _strategic(old, new)
    before = copy.deepcopy((old, change))
    assert patch.strategic_merge(old, change, schema.for_kind(kinds.POD)) == new
    assert before == (old, change)


@given(PODS, PODS, PODS)
@settings(max_examples=60)
def test_applying_twice_is_applying_once(first: Tree, other: Tree, config: Tree) -> None:
    live = patch.apply(None, first, kinds.POD, "m", TIME)
    live = patch.apply(live, other, kinds.POD, "n", TIME, force=True)
    once = patch.apply(live, config, kinds.POD, "m", TIME, force=True)
    twice = patch.apply(once, config, kinds.POD, "m", "2027-01-01T00:00:00Z")
    assert twice == once


@given(PODS, PODS)
@settings(max_examples=60)
def test_a_single_applier_gets_exactly_what_it_states(first: Tree, second: Tree) -> None:
    live = patch.apply(None, first, kinds.POD, "m", TIME)
    out = patch.apply(live, second, kinds.POD, "m", TIME)
    assert out["spec"].get("hostNetwork") == second["spec"].get("hostNetwork")
    assert out["metadata"].get("labels", {}) == second["metadata"].get("labels", {})
    stated = {c["name"]: c for c in second["spec"].get("containers", [])}
    assert {c["name"]: c.get("env", []) for c in out["spec"].get("containers", [])} == {
        name: c.get("env", []) for name, c in stated.items()
    }


@given(PODS, st.lists(st.tuples(st.sampled_from(["m", "n", "u"]), PODS), max_size=4))
@settings(max_examples=60)
def test_a_field_in_conflict_has_one_owner(first: Tree, writes: list[tuple[str, Tree]]) -> None:
    """After any writes no two managers own a field unless both applied the same value."""
    live = patch.update_managed_fields(None, first, kinds.POD, "u", TIME)
    for manager, tree in writes:
        if manager == "u":
            entries = live["metadata"].get("managedFields")
            new = {
                **tree,
                "metadata": {**tree["metadata"], "uid": "1", **({"managedFields": entries} if entries else {})},
            }
            live = patch.update_managed_fields(live, new, kinds.POD, "u", TIME)
        else:
            try:
                live = patch.apply(live, tree, kinds.POD, manager, TIME)
            except ApiError as err:
                assert err.code == 409
                live = patch.apply(live, tree, kinds.POD, manager, TIME, force=True)
        for entry in live["metadata"].get("managedFields", []):
            assert fs.canonical(entry["fieldsV1"]) == entry["fieldsV1"]
            assert list(entry["fieldsV1"]) == list(fs.canonical(entry["fieldsV1"]))


SETS = st.recursive(
    st.just({}), lambda inner: st.dictionaries(st.sampled_from(["f:a", "f:b", "f:c"]), inner, max_size=3), max_leaves=8
).flatmap(lambda t: st.booleans().map(lambda own: _marked(t, own)))


def _marked(tree: Tree, own: bool) -> Tree:
    out = {k: _marked(v, not own) for k, v in tree.items()}
    if own and out:
        out["."] = {}
    return out


def _members(fields: Tree) -> set[tuple[str, ...]]:
    return set(fs.paths({k: v for k, v in fields.items() if k != "."}))


@given(SETS, SETS)
def test_set_algebra_is_that_of_the_paths(a: Tree, b: Tree) -> None:
    a.pop(".", None)
    b.pop(".", None)
    before = copy.deepcopy((a, b))
    assert _members(fs.union(a, b)) == _members(a) | _members(b)
    assert _members(fs.intersection(a, b)) == _members(a) & _members(b)
    assert _members(fs.difference(a, b)) == _members(a) - _members(b)
    gone = _members(b)
    kept = {p for p in _members(a) if not any(p[: i + 1] in gone for i in range(len(p)))}
    assert _members(fs.without_trees(a, b)) == kept
    assert before == (a, b)
