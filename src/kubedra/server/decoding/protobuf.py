"""Protobuf bodies: Go clients (kubectl's typed commands, controllers, drivers) send built-in kinds in this form.

Only requests are decoded; answers are JSON, which every client accepts beside. The numbers are facts from the struct
tags of k8s.io/api, written by tools/import_protobuf_numbers.py. Go's encoder writes every field that is not a
pointer, zero or not; zeros of these are left out here, as Go's JSON encoder does.

Upstream counterpart: apimachinery/pkg/runtime/serializer/protobuf.
"""

from __future__ import annotations

import base64
import json
import struct
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib import resources
from typing import Any

Tree = dict[str, Any]
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Nested as deep as this is no object of the API.
_MAX_DEPTH = 100


class ProtobufError(ValueError):
    """The bytes are not such a message."""


class _Field:
    __slots__ = ("code", "name", "pointer", "reference", "shape")

    def __init__(self, text: str) -> None:
        self.name, _, kind = text.partition(" ")
        self.pointer = False
        self.shape = ""
        while kind and kind[0] in "*[{":
            if kind[0] == "*":
                self.pointer = True
            elif not self.shape:
                self.shape = kind[0]
            kind = kind[1:]
        self.code = kind[:1]
        self.reference = kind[1:] if self.code == ":" else ""


@lru_cache(maxsize=1)
def _numbers() -> dict[str, dict[str, str]]:
    data = resources.files("kubedra.server.decoding").joinpath("protobuf_numbers.json").read_bytes()
    found: dict[str, dict[str, str]] = json.loads(data)
    return found


@cache
def _fields(definition: str) -> dict[int, _Field]:
    return {int(number): _Field(text) for number, text in _numbers().get(definition, {}).items()}


def known(definition: str) -> bool:
    """Whether messages of this definition can be read."""
    return definition in _numbers()


def envelope(body: bytes) -> tuple[str, str, bytes]:
    """apiVersion, kind and the message inside of Kubernetes' envelope. Raises `ProtobufError`."""
    if not body.startswith(MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix 6b 38 73 00")
    api_version = kind = ""
    raw = b""
    for number, value in _scan(memoryview(body)[4:]):
        if number == 1:
            for inner, text in _scan(_bytes(value)):
                if inner == 1:
                    api_version = _text(text)
                elif inner == 2:
                    kind = _text(text)
        elif number == 2:
            raw = bytes(_bytes(value))
    return api_version, kind, raw


def decode(raw: bytes, definition: str) -> Tree:
    """The JSON tree of a message. Raises `ProtobufError`."""
    return _message(memoryview(raw), definition, 0)


def _scan(data: memoryview) -> list[tuple[int, int | memoryview]]:
    """The fields of a message in order: varints as numbers, everything else as bytes."""
    found: list[tuple[int, int | memoryview]] = []
    at, end = 0, len(data)
    try:
        while at < end:
            key, at = _varint(data, at)
            number, wire = key >> 3, key & 7
            if wire == 0:
                value, at = _varint(data, at)
                found.append((number, value))
                continue
            if wire == 2:
                size, at = _varint(data, at)
            elif wire == 1:
                size = 8
            elif wire == 5:
                size = 4
            else:
                raise ProtobufError(f"unknown wire type {wire}")
            if at + size > end:
                raise ProtobufError("unexpected EOF")
            found.append((number, data[at : at + size]))
            at += size
    except IndexError as error:
        raise ProtobufError("unexpected EOF") from error
    return found


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ProtobufError("integer overflow")


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ProtobufError("wrong wire type")
    return value


def _text(value: int | memoryview) -> str:
    try:
        return str(_bytes(value), "utf-8")
    except UnicodeDecodeError as error:
        raise ProtobufError("invalid UTF-8") from error


def _signed(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise ProtobufError("wrong wire type")
    return value - (1 << 64) if value >= 1 << 63 else value


def _message(data: memoryview, definition: str, depth: int) -> Tree:
    if depth > _MAX_DEPTH:
        raise ProtobufError("exceeded max depth")
    fields = _fields(definition)
    tree: Tree = {}
    for number, value in _scan(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.shape == "[":
            if field.code in "ib" and not isinstance(value, int):
                tree.setdefault(field.name, []).extend(_packed(value, field))
            else:
                tree.setdefault(field.name, []).append(_value(value, field, depth))
        elif field.shape == "{":
            key, item = _entry(_bytes(value), field, depth)
            tree.setdefault(field.name, {})[key] = item
        else:
            decoded = _value(value, field, depth)
            if not field.name:
                tree.update(decoded)
            elif decoded is not None and (field.pointer or field.code == ":" or decoded not in ("", 0, False)):
                tree[field.name] = decoded
    return tree


def _packed(value: memoryview, field: _Field) -> list[Any]:
    found: list[Any] = []
    at = 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(bool(number) if field.code == "b" else _signed(number))
    return found


def _entry(data: memoryview, field: _Field, depth: int) -> tuple[str, Any]:
    key, item = "", None
    for number, value in _scan(data):
        if number == 1:
            key = _text(value)
        elif number == 2:
            item = _value(value, field, depth)
    if item is None:
        item = {":": {}, "L": [], "i": 0, "b": False}.get(field.code, "")
    return key, item


def _value(value: int | memoryview, field: _Field, depth: int) -> Any:
    code = field.code
    if code == "s":
        return _text(value)
    if code == ":":
        return _message(_bytes(value), field.reference, depth + 1)
    if code == "i":
        return _signed(value)
    if code == "b":
        return bool(value)
    if code == "y":
        return base64.b64encode(_bytes(value)).decode()
    if code == "d":
        return struct.unpack("<d", _bytes(value))[0]
    return _special(code, _bytes(value))


def _special(code: str, data: memoryview) -> Any:
    parts = _scan(data)
    if code == "L":
        return [_text(value) for number, value in parts if number == 1]
    members = dict(parts)
    if code in "TU":
        if not members:
            return None
        nanos = _signed(members.get(2, 0))
        moment = _EPOCH + timedelta(seconds=_signed(members.get(1, 0)), microseconds=nanos // 1000)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ" if code == "T" else "%Y-%m-%dT%H:%M:%S.%fZ")
    if code == "Q":
        return _text(members[1]) if 1 in members else "0"
    if code == "I":
        return _text(members.get(3, memoryview(b""))) if members.get(1) else _signed(members.get(2, 0))
    if code == "D":
        return f"{_signed(members.get(1, 0)) / 1e9:g}s"
    if code in "RF":
        raw = bytes(_bytes(members.get(1, memoryview(b""))))
        try:
            return json.loads(raw) if raw else None
        except ValueError as error:
            raise ProtobufError("embedded object is not JSON") from error
    raise ProtobufError("this field can't be read")
