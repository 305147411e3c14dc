"""Kinds decoded to less than they hold: whoever watches thousands of objects keeps what it needs of each."""

from __future__ import annotations

from typing import Any

from kubedra.api.kinds import Kind


class _LeanKind(Kind[Any]):
    def __init__(self, kind: Kind[Any], type: type[Any]) -> None:
        self.__dict__.update(vars(kind))
        self.__dict__["type"] = type


def decoded_as(kind: Kind[Any], type: type[Any]) -> Kind[Any]:
    """Return ``kind`` with another class for its objects; unknown fields are skipped while decoding."""
    return _LeanKind(kind, type)
