"""Reads the body of a PATCH: which of the patch types it is, and what a body that can't be read is answered.

Upstream counterpart: apiserver ``endpoints/handlers/patch.go``.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, Literal, NamedTuple

import msgspec

from kubedra.api.errors import ApiError
from kubedra.base.yaml import YamlError, load_all

PatchType = Literal["json", "merge", "strategic", "apply"]

PATCH_TYPES: Final[dict[str, PatchType]] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}

# What stands behind the name of a member; text that only looks like it makes the count too high, never too low.
_MEMBER: Final = re.compile(rb'"\s*:')
_decode_json: Final = msgspec.json.Decoder().decode
_GO_KINDS: Final = {str: "string", bool: "bool", list: "array", dict: "object", int: "number", float: "number"}


class PatchDocument(NamedTuple):
    """A patch as read: its value, and the paths of members that came twice."""

    value: Any
    duplicates: tuple[str, ...] = ()


def patch_type(content_type: str) -> PatchType:
    """The patch type that a Content-Type names. Raises ``ApiError`` 415."""
    found = PATCH_TYPES.get(content_type.partition(";")[0].strip().lower())
    if found is None:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    return found


def read_json_patch(body: bytes) -> PatchDocument:
    """The operations of a JSON patch. Raises ``ApiError`` 400."""
    document = _read(body, "error decoding patch: ")
    if document.value is None:
        return PatchDocument([])
    if not isinstance(document.value, list):
        raise _wrong_type(document.value, "[]interface {}", "error decoding patch: ")
    for operation in document.value:
        if not isinstance(operation, dict | None):
            raise _wrong_type(operation, "jsonpatch.Operation", "")
    return document


def read_merge_patch(body: bytes) -> PatchDocument:
    """A merge patch, which must be an object. Raises ``ApiError`` 400."""
    document = _read(body, "error decoding patch: ")
    if document.value is None:
        raise ApiError(400, "BadRequest", "Invalid JSON Patch")
    if not isinstance(document.value, dict):
        raise _wrong_type(document.value, "map[string]interface {}", "error decoding patch: ")
    return document


def read_strategic_patch(body: bytes) -> PatchDocument:
    """A strategic merge patch, which must be an object (null is an empty one). Raises ``ApiError`` 400."""
    document = _read(body, "")
    if document.value is None:
        return PatchDocument({})
    if not isinstance(document.value, dict):
        raise _wrong_type(document.value, "map[string]interface {}", "")
    return document


def read_apply_config(body: bytes) -> PatchDocument:
    """The object of an apply, as YAML or JSON. Raises ``ApiError`` 400."""
    prefix = "error decoding YAML: "
    if body.lstrip()[:1] == b"{":
        try:
            return _read(body, "")
        except ApiError:  # YAML's flow style is not always JSON
            pass
    try:
        documents = load_all(body.decode("utf-8", "replace"), "body")
    except YamlError as err:
        # "body:1: not valid YAML: what": only the parser's words are upstream's.
        what = str(err).rpartition("not valid YAML: ")[2]
        raise ApiError(400, "BadRequest", f"{prefix}error converting YAML to JSON: yaml: {what}") from err
    value = documents[0].value if documents else None
    if value is None:
        return PatchDocument({})
    if not isinstance(value, dict):
        raise _wrong_type(value, "map[string]interface {}", f"{prefix}error unmarshaling JSON: while decoding JSON: ")
    return PatchDocument(value)


def _wrong_type(value: Any, wanted: str, prefix: str) -> ApiError:
    kind = _GO_KINDS[type(value)]
    return ApiError(400, "BadRequest", f"{prefix}json: cannot unmarshal {kind} into Go value of type {wanted}")


def _read(body: bytes, prefix: str) -> PatchDocument:
    """The value of a JSON text: at once where it is plain, member by member where one may come twice."""
    try:
        plain = _decode_json(body)
    except msgspec.DecodeError:
        return _read_members(body, prefix)
    if _count_members(plain) == len(_MEMBER.findall(body)):
        return PatchDocument(plain)
    return _read_members(body, prefix)


def _count_members(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_count_members, value.values()))
    return sum(map(_count_members, value)) if isinstance(value, list) else 0


def _read_members(body: bytes, prefix: str) -> PatchDocument:
    duplicates: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, value in pairs:
            if name in out:
                duplicates.append(name)
            out[name] = value
        return out

    try:
        text = body.decode("utf-8", "replace")
        value = json.loads(text, object_pairs_hook=members, parse_constant=_no_constant)
    except RecursionError as err:
        raise ApiError(400, "BadRequest", f"{prefix}exceeded max depth") from err
    except ValueError as err:
        raise ApiError(400, "BadRequest", prefix + _go_json_fault(text, err)) from err
    return PatchDocument(value, tuple(dict.fromkeys(duplicates)))


def _no_constant(name: str) -> Any:
    raise ValueError(f"invalid character {name[0]!r} looking for beginning of value")


def _go_json_fault(text: str, err: ValueError) -> str:
    if not isinstance(err, json.JSONDecodeError):
        return str(err)
    at = err.pos
    if err.msg.startswith("Unterminated string") or not text[at:].strip():
        return "unexpected end of JSON input"
    while text[at : at + 1].isspace():
        at += 1
    place = {
        "Expecting value": "looking for beginning of value",
        "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
        "Expecting ':' delimiter": "after object key",
        "Expecting ',' delimiter": "after array element",
        "Extra data": "after top-level value",
    }.get(err.msg, "in JSON")
    return f"invalid character '{text[at]}' {place}"
