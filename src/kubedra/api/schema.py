"""The schema table: facts about every field of every built-in kind of Kubernetes 1.37.

The server decodes, prunes, patches and applies by this table; nothing in it was written by hand
(``tools/generate_api.py``). It is read on first use.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources
from typing import Any

import msgspec


class Field(msgspec.Struct, frozen=True):
    """What is known of a field, an item of a list, or a value of a map.

    ``type`` is one of string, integer, number, boolean, object, array, any, quantity, intorstring, time, microtime.
    """

    type: str = msgspec.field(name="t", default="any")
    format: str = msgspec.field(name="f", default="")
    ref: str = msgspec.field(name="r", default="")
    items: Field | None = msgspec.field(name="i", default=None)
    values: Field | None = msgspec.field(name="m", default=None)
    list_type: str = msgspec.field(name="lt", default="")
    list_map_keys: tuple[str, ...] = msgspec.field(name="lk", default=())
    map_type: str = msgspec.field(name="mt", default="")
    patch_strategy: str = msgspec.field(name="ps", default="")
    patch_merge_key: str = msgspec.field(name="mk", default="")


class Definition(msgspec.Struct, frozen=True):
    """A struct of the API: its fields by JSON name, which are required, and whether it is one unit for apply."""

    name: str
    fields: dict[str, Field]
    required: frozenset[str]
    map_type: str
    gvk: tuple[tuple[str, str, str], ...]


@lru_cache(maxsize=1)
def _rows() -> dict[str, msgspec.Raw]:
    data = resources.files("kubedra.api").joinpath("schema_data.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, msgspec.Raw])


class _Row(msgspec.Struct, frozen=True):
    fields: dict[str, Field]
    required: tuple[str, ...] = ()
    mt: str = ""
    gvk: tuple[tuple[str, str, str], ...] = ()


_decode_row = msgspec.json.Decoder(_Row).decode


@cache
def definition(name: str) -> Definition:
    """The definition of that full name (``io.k8s.api.core.v1.Pod``); KeyError when there is none."""
    row = _decode_row(_rows()[name])
    return Definition(name, row.fields, frozenset(row.required), row.mt, row.gvk)


def names() -> tuple[str, ...]:
    """The full names of all definitions, sorted."""
    return tuple(_rows())


def resolve(field: Field) -> Definition | None:
    """The definition a field refers to, or None for scalars, maps, lists and free-form values."""
    return definition(field.ref) if field.ref else None


def for_kind(kind: Any) -> Definition:
    """The definition of a :class:`kubedra.api.kinds.Kind`."""
    return definition(kind.definition)
