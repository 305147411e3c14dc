"""Bytes to structs and back.

Structs are for reading. What is written is a plain tree or a patch, so that fields of a newer API server survive
(design, decision 7).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


@lru_cache(maxsize=256)
def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(dict[str, Any] if kind is dict else kind)


def decode(kind: type[T], data: bytes | memoryview | msgspec.Raw) -> T:
    """Decode an object; unknown fields are skipped, ``null`` counts as absent (as Go reads it).

    Raises ``msgspec.DecodeError`` when the bytes are not such an object.
    """
    try:
        return cast("T", _decoder(cast("Any", kind)).decode(data))
    except msgspec.ValidationError:
        return from_tree(kind, msgspec.json.decode(data))


def from_tree(kind: type[T], tree: Any) -> T:
    """Turn a JSON tree into a struct; ``null`` counts as absent. Raises ``msgspec.ValidationError``."""
    if kind is dict:
        return cast("T", tree)
    return msgspec.convert(without_nulls(tree), kind)


def without_nulls(tree: Any) -> Any:
    """The tree without members that are ``null``; the input is not changed."""
    if isinstance(tree, dict):
        return {k: without_nulls(v) for k, v in tree.items() if v is not None}
    if isinstance(tree, list):
        return [without_nulls(v) for v in tree]
    return tree


def encode(obj: Any) -> bytes:
    """JSON bytes of a struct or a tree; members of a struct that have their default are left out."""
    return _encoder.encode(obj)


def to_tree(obj: Any) -> dict[str, Any]:
    """The JSON tree of a struct (a copy; a tree comes back as it is)."""
    if isinstance(obj, dict):
        return obj
    return cast("dict[str, Any]", msgspec.json.decode(_encoder.encode(obj)))
