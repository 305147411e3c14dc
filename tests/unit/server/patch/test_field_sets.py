from __future__ import annotations

from typing import Any

import pytest

from kubedra.server.patch.apply import fieldset as fs

A: dict[str, Any] = {"f:a": {}, "f:b": {".": {}, "f:c": {}}, "f:d": {"f:e": {}}}


def test_a_set_is_what_managed_fields_show() -> None:
    assert set(fs.paths(A)) == {("f:a",), ("f:b",), ("f:b", "f:c"), ("f:d", "f:e")}
    assert fs.has(A, ("f:b",))
    assert not fs.has(A, ("f:d",))


def test_union_joins_members_and_children() -> None:
    assert fs.union({"f:b": {}}, {"f:b": {"f:c": {}}}) == {"f:b": {".": {}, "f:c": {}}}
    assert fs.union({"f:b": {"f:c": {}}}, {"f:b": {}}) == {"f:b": {".": {}, "f:c": {}}}
    assert fs.union(A, {"f:a": {}}) is A


def test_difference_keeps_children_of_what_goes() -> None:
    assert fs.difference(A, {"f:b": {}}) == {"f:a": {}, "f:b": {"f:c": {}}, "f:d": {"f:e": {}}}
    assert fs.difference(A, {"f:b": {"f:c": {}}}) == {"f:a": {}, "f:b": {}, "f:d": {"f:e": {}}}
    assert fs.difference(A, {"f:d": {}}) is A
    assert fs.difference(A, A) == {}


def test_taking_trees_away_takes_the_children_too() -> None:
    assert fs.without_trees(A, {"f:b": {}, "f:d": {}}) == {"f:a": {}}
    assert fs.without_trees(A, {"f:b": {"f:c": {}}}) == {"f:a": {}, "f:b": {}, "f:d": {"f:e": {}}}


def test_intersection() -> None:
    assert fs.intersection(A, {"f:b": {"f:c": {}, "f:x": {}}, "f:a": {"f:y": {}}}) == {"f:b": {"f:c": {}}}
    assert fs.intersection(A, {"f:b": {}}) == {"f:b": {}}


def test_the_order_is_upstreams() -> None:
    mixed = {
        'k:{"containerPort":443,"protocol":"TCP"}': {},
        "f:z": {},
        'k:{"containerPort":80,"protocol":"TCP"}': {},
        "f:a": {"f:b": {}, ".": {}},
        "i:10": {},
        "i:9": {},
        'v:"x"': {},
        "v:2": {},
    }
    assert list(fs.canonical(mixed)) == [
        "f:a",
        "f:z",
        'k:{"containerPort":80,"protocol":"TCP"}',
        'k:{"containerPort":443,"protocol":"TCP"}',
        "v:2",
        'v:"x"',
        "i:9",
        "i:10",
    ]
    assert list(fs.canonical(mixed)["f:a"]) == [".", "f:b"]


def test_keys_are_sorted_and_compact() -> None:
    assert fs.key_element(("containerPort", "protocol"), 80, "TCP") == 'k:{"containerPort":80,"protocol":"TCP"}'
    assert fs.parse({'k:{"b": 1, "a": "x"}': {}}) == {'k:{"a":"x","b":1}': {}}


def test_paths_read_as_in_error_messages() -> None:
    path = ("f:spec", 'k:{"name":"c","port":80}', 'v:"x"', "i:3")
    assert fs.path_text(path) == '.spec[name="c",port=80][="x"][3]'


@pytest.mark.parametrize("bad", [{"x": {}}, {"k:1": {}}, {"i:x": {}}, {"v:{": {}}, [], {"f:a": 1}])
def test_rubbish_is_no_set(bad: Any) -> None:
    with pytest.raises(fs.BadFieldSet):
        fs.parse(bad)
