from __future__ import annotations

import copy
from typing import Any

import pytest

from kubedra.api.errors import ApiError
from kubedra.server.patch.json_patch import MAX_OPERATIONS, json_patch

TREE: dict[str, Any] = {"a": {"b": 1, "c": [1, 2, 3]}, "n": None, "t": True}


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "add", "path": "/x", "value": 1}, {**TREE, "x": 1}),
        ({"op": "add", "path": "/x"}, {**TREE, "x": None}),
        ({"op": "add", "path": "/a/c/-", "value": 4}, {**TREE, "a": {"b": 1, "c": [1, 2, 3, 4]}}),
        ({"op": "add", "path": "/a/c/-1", "value": 4}, {**TREE, "a": {"b": 1, "c": [1, 2, 3, 4]}}),
        ({"op": "add", "path": "/a/c/0", "value": 0}, {**TREE, "a": {"b": 1, "c": [0, 1, 2, 3]}}),
        ({"op": "add", "path": "/e~1f~0g", "value": 1}, {**TREE, "e/f~g": 1}),
        ({"op": "replace", "path": "/absent", "value": 1}, {**TREE, "absent": 1}),
        ({"op": "replace", "path": "/a/c/-1", "value": 9}, {**TREE, "a": {"b": 1, "c": [1, 2, 9]}}),
        ({"op": "replace", "path": "", "value": {}}, {}),
        ({"op": "remove", "path": "/a/c/-3"}, {**TREE, "a": {"b": 1, "c": [2, 3]}}),
        ({"op": "move", "from": "/a/b", "path": "/b"}, {**TREE, "a": {"c": [1, 2, 3]}, "b": 1}),
        ({"op": "copy", "from": "/absent", "path": "/b"}, {**TREE, "b": None}),
        ({"op": "test", "path": "/absent", "value": None}, TREE),
        ({"op": "test", "path": "/n"}, TREE),
        ({"op": "test", "path": "", "value": TREE}, TREE),
    ],
)
def test_an_operation_does_what_upstream_does(operation: dict[str, Any], result: Any) -> None:
    before = copy.deepcopy(TREE)
    assert json_patch(TREE, [operation]) == result
    assert before == TREE


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "add", "path": "/a/c/5", "value": 1},
        {"op": "add", "path": "/a/c/x", "value": 1},
        {"op": "add", "path": "/n/x", "value": 1},
        {"op": "remove", "path": "/absent"},
        {"op": "remove", "path": "/a/c/3"},
        {"op": "replace", "path": "/a/c/3", "value": 1},
        {"op": "move", "from": "/absent", "path": "/x"},
        {"op": "test", "path": "/t", "value": 1},
        {"op": "test", "path": "/a/b", "value": 1.0},
        {"op": "frobnicate", "path": "/a"},
        {},
        None,
    ],
)
def test_what_does_not_apply_is_refused(operation: Any) -> None:
    with pytest.raises(ApiError) as refused:
        json_patch(TREE, [operation])
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")


def test_a_failing_operation_leaves_nothing_behind() -> None:
    before = copy.deepcopy(TREE)
    with pytest.raises(ApiError):
        json_patch(TREE, [{"op": "add", "path": "/a/x", "value": 1}, {"op": "remove", "path": "/absent"}])
    assert before == TREE


def test_a_copied_value_lives_its_own_life() -> None:
    patch = [{"op": "copy", "from": "/a", "path": "/d"}, {"op": "add", "path": "/d/c/-", "value": 4}]
    out = json_patch(TREE, patch)
    assert (out["a"]["c"], out["d"]["c"]) == ([1, 2, 3], [1, 2, 3, 4])


def test_a_value_of_the_patch_is_not_changed_by_later_operations() -> None:
    value: dict[str, Any] = {"x": {}}
    patch = [{"op": "add", "path": "/v", "value": value}, {"op": "add", "path": "/v/x/y", "value": 1}]
    assert json_patch({}, patch) == {"v": {"x": {"y": 1}}}
    assert value == {"x": {}}


def test_the_number_of_operations_is_bounded() -> None:
    with pytest.raises(ApiError) as refused:
        json_patch({}, [{"op": "test", "path": "/a", "value": None}] * (MAX_OPERATIONS + 1))
    assert refused.value.code == 413
    assert "The allowed maximum operations in a JSON patch is 10000, got 10001" in refused.value.message


def test_copies_are_bounded() -> None:
    tree = {"a": "x" * 1_100_000}
    with pytest.raises(ApiError):
        json_patch(tree, [{"op": "copy", "from": "/a", "path": f"/b{i}"} for i in range(3)])
