from __future__ import annotations

from collections.abc import Callable

import pytest

from kubedra.api.errors import ApiError
from kubedra.server.patch import documents
from kubedra.server.patch.documents import PatchDocument

Reader = Callable[[bytes], PatchDocument]


@pytest.mark.parametrize(
    ("read", "body", "message"),
    [
        (documents.read_json_patch, b"[{", "error decoding patch: unexpected end of JSON input"),
        (documents.read_merge_patch, b'{"a"', "error decoding patch: unexpected end of JSON input"),
        (
            documents.read_merge_patch,
            b'"x"',
            "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
        (documents.read_merge_patch, b"null", "Invalid JSON Patch"),
        (
            documents.read_strategic_patch,
            b"[]",
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            documents.read_apply_config,
            b"a: b: c",
            "error decoding YAML: error converting YAML to JSON: yaml: mapping values are not allowed in this context",
        ),
        (
            documents.read_apply_config,
            b"[]",
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
    ],
)
def test_a_body_that_is_no_patch_is_a_bad_request(read: Reader, body: bytes, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        read(body)
    assert (refused.value.code, refused.value.message) == (400, message)


def test_members_that_come_twice_are_told() -> None:
    document = documents.read_merge_patch(b'{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}')
    assert document.value == {"a": 3, "b": {"c": 2}}
    assert set(document.duplicates) == {"a", "c"}


def test_the_content_type_names_the_kind_of_patch() -> None:
    assert documents.patch_type("application/apply-patch+yaml; charset=utf-8") == "apply"
    with pytest.raises(ApiError) as refused:
        documents.patch_type("application/json")
    assert refused.value.code == 415


def test_an_apply_may_be_json_or_yaml() -> None:
    assert documents.read_apply_config(b'{"kind": "Pod"}').value == {"kind": "Pod"}
    assert documents.read_apply_config(b"kind: Pod\nlabels: {a: '1'}\n").value == {"kind": "Pod", "labels": {"a": "1"}}
    assert documents.read_apply_config(b"{kind: Pod}").value == {"kind": "Pod"}
