from __future__ import annotations

import copy
from typing import Any

import pytest

from kubedra.api import kinds, schema
from kubedra.api.errors import ApiError
from kubedra.server.patch.strategic_merge import strategic_merge

POD: dict[str, Any] = {
    "metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x/1", "x/2", "x/3"]},
    "spec": {
        "containers": [
            {"name": "a", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"name": "b", "image": "i"},
        ],
        "tolerations": [{"key": "x", "operator": "Exists"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}


def merged(patch: dict[str, Any]) -> dict[str, Any]:
    before = (copy.deepcopy(POD), copy.deepcopy(patch))
    out = strategic_merge(POD, patch, schema.for_kind(kinds.POD))
    assert before == (POD, patch)
    return out


def names(items: list[dict[str, Any]]) -> list[str]:
    return [item["name"] for item in items]


def test_items_merge_by_key_and_new_ones_come_first() -> None:
    out = merged({"spec": {"containers": [{"name": "c", "image": "j"}, {"name": "b", "image": "k"}]}})
    assert names(out["spec"]["containers"]) == ["c", "a", "b"]
    assert out["spec"]["containers"][2]["image"] == "k"


def test_lists_without_merge_strategy_are_replaced() -> None:
    out = merged({"spec": {"tolerations": [{"key": "y", "operator": "Exists"}]}})
    assert out["spec"]["tolerations"] == [{"key": "y", "operator": "Exists"}]


def test_null_deletes_a_member() -> None:
    assert merged({"metadata": {"labels": {"a": None}}})["metadata"]["labels"] == {"b": "2"}
    assert "volumes" not in merged({"spec": {"volumes": None}})["spec"]


def test_scalars_merge_as_a_set() -> None:
    out = merged({"metadata": {"finalizers": ["x/4", "x/2"]}})
    assert sorted(out["metadata"]["finalizers"]) == ["x/1", "x/2", "x/3", "x/4"]


def test_scalars_are_deleted_by_a_parallel_list() -> None:
    out = merged({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/1", "x/3"]}})
    assert out["metadata"]["finalizers"] == ["x/2"]


def test_patch_delete_takes_an_item_away() -> None:
    out = merged({"spec": {"containers": [{"$patch": "delete", "name": "a"}]}})
    assert names(out["spec"]["containers"]) == ["b"]


def test_patch_replace_replaces_a_list_and_a_map() -> None:
    out = merged({"spec": {"containers": [{"$patch": "replace"}, {"name": "z", "image": "z"}]}})
    assert names(out["spec"]["containers"]) == ["z"]
    out = merged({"metadata": {"labels": {"$patch": "replace", "z": "9"}}})
    assert out["metadata"]["labels"] == {"z": "9"}


def test_patch_delete_of_a_map_empties_it() -> None:
    assert merged({"$patch": "delete"}) == {}
    assert merged({"metadata": {"labels": {"$patch": "delete"}}})["metadata"]["labels"] == {}


def test_retain_keys_drops_the_other_source() -> None:
    volume = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    out = merged({"spec": {"volumes": [volume]}})
    assert out["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_the_element_order_is_followed() -> None:
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}],
            "containers": [{"name": "c", "image": "j"}],
        }
    }
    assert names(merged(patch)["spec"]["containers"]) == ["c", "b", "a"]


def test_items_that_the_order_does_not_name_keep_their_place() -> None:
    patch = {"spec": {"$setElementOrder/containers": [{"name": "b"}]}}
    assert names(merged(patch)["spec"]["containers"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        (
            {"spec": {"containers": [{"image": "j"}]}},
            500,
            "map: map[image:j] does not contain declared merge key: name",
        ),
        ({"spec": {"containers": [{"$patch": "zap", "name": "a"}]}}, 500, "unknown patch type: zap"),
        ({"spec": {"containers": [{"$patch": "merge"}]}}, 500, "merging lists cannot yet be specified in the patch"),
        ({"metadata": {"labels": {"$patch": "zap"}}}, 500, "unknown patch type: zap in map: map[$patch:zap]"),
        ({"spec": {"$retainKeys": ["containers"], "volumes": []}}, 400, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
        ({"metadata": {"$deleteFromPrimitiveListX": []}}, 400, "invalid patch format of primitive list"),
        ({"metadata": {"$setElementOrder": []}}, 400, "invalid patch format of setElementOrder list"),
        (
            {"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}},
            500,
            "The order in patch list:",
        ),
        ({"metadata": {"finalizers": ["a", {"b": 1}]}}, 500, "list element types are not identical"),
        ({"metadata": {"finalizers": [["a"], "b"]}}, 500, "list element types are not identical"),
    ],
)
def test_a_malformed_patch_is_refused_in_upstream_words(patch: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        merged(patch)
    assert refused.value.code == code
    assert refused.value.message.startswith(message)


def test_kinds_without_a_schema_have_no_strategic_merge() -> None:
    with pytest.raises(ApiError) as refused:
        strategic_merge({}, {}, None)
    assert refused.value.message == "strategic merge patch format is not supported"
