"""Optional values and the map builder behind the two-variable loops.

``or`` and ``orValue`` evaluate their right side only when needed; the evaluators do that themselves.

Upstream counterpart: cel-go cel/library.go (OptionalTypes), ext/comprehensions.go.
"""

from __future__ import annotations

from typing import Any, Final

from kubedra.cel import values
from kubedra.cel.environment import Function, Library, Overload
from kubedra.cel.errors import EvaluationError
from kubedra.cel.library.operators import bounded, overload_error
from kubedra.cel.macros import BINDINGS, OPTIONALS, STANDARD, TWO_VARIABLES
from kubedra.cel.types import BOOL, DYN, INT, STRING, list_of, map_of, optional_of, param
from kubedra.cel.values import NONE, Optional, Value, is_zero

_K: Final = param("K")
_V: Final = param("V")
_OPTIONAL: Final = optional_of(_V)
_LIST: Final = list_of(_V)
_MAP: Final = map_of(_K, _V)


def value_of(optional: Optional) -> Value:
    """``o.value()``."""
    if optional is NONE:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _unwrap(items: list[Value]) -> list[Value]:
    for item in items:
        if item.__class__ is not Optional:
            raise EvaluationError(f"value {item} is not optional")
    return [item.value for item in items if item is not NONE]


def insert(target: dict[Any, Any], *parts: Value) -> dict[Any, Any]:
    """``cel.@mapInsert(map, key, value)`` and ``cel.@mapInsert(map, map)``."""
    if len(parts) == 2:
        return _insert_one(target, parts[0], parts[1])
    for key in values.keys(parts[0]):
        target = _insert_one(target, key, values.find(parts[0], key)[0])
    return target


def _insert_one(target: dict[Any, Any], key: Value, value: Value) -> dict[Any, Any]:
    stored = values.hashable_key(key)
    if stored in target:
        raise EvaluationError(f"insert failed: key {key} already exists")
    bounded(len(target))
    return {**target, stored: value}


def _dispatched_elsewhere(*args: Value) -> Value:
    raise overload_error()


LIBRARY: Final = Library(
    functions=(
        Function("optional.of", (Overload("optional_of", (_V,), _OPTIONAL, False, Optional),)),
        Function(
            "optional.ofNonZeroValue",
            (
                Overload(
                    "optional_ofNonZeroValue",
                    (_V,),
                    _OPTIONAL,
                    False,
                    lambda value: NONE if is_zero(value) else Optional(value),
                ),
            ),
        ),
        Function("optional.none", (Overload("optional_none", (), _OPTIONAL, False, lambda: NONE),)),
        Function("value", (Overload("optional_value", (_OPTIONAL,), _V, True, value_of),)),
        Function(
            "hasValue",
            (Overload("optional_hasValue", (_OPTIONAL,), BOOL, True, lambda optional: optional is not NONE),),
        ),
        Function(
            "or",
            (Overload("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, True),),
            _dispatched_elsewhere,
        ),
        Function("orValue", (Overload("optional_orValue_value", (_OPTIONAL, _V), _V, True),), _dispatched_elsewhere),
        Function("_?._", (Overload("select_optional_field", (DYN, STRING), _OPTIONAL),), _dispatched_elsewhere),
        Function(
            "_[?_]",
            (
                Overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
                Overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL),
                Overload("map_optindex_optional_value", (_MAP, _K), _OPTIONAL),
                Overload("optional_map_optindex_optional_value", (optional_of(_MAP), _K), _OPTIONAL),
            ),
            _dispatched_elsewhere,
        ),
        Function(
            "_[_]",
            (
                Overload("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL),
                Overload("optional_map_index_value", (optional_of(_MAP), _K), _OPTIONAL),
            ),
        ),
        Function(
            "first",
            (Overload("list_first", (_LIST,), _OPTIONAL, True, lambda items: Optional(items[0]) if items else NONE),),
        ),
        Function(
            "last",
            (Overload("list_last", (_LIST,), _OPTIONAL, True, lambda items: Optional(items[-1]) if items else NONE),),
        ),
        Function("optional.unwrap", (Overload("optional_unwrap", (list_of(_OPTIONAL),), _LIST, False, _unwrap),)),
        Function("unwrapOpt", (Overload("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, True, _unwrap),)),
    ),
    types={"optional_type": _OPTIONAL},
    macros=OPTIONALS,
)
MACROS: Final = Library(macros=STANDARD)
BIND: Final = Library(macros=BINDINGS)
COMPREHENSIONS: Final = Library(
    functions=(
        Function(
            "cel.@mapInsert",
            (
                Overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, False, insert),
                Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, False, insert),
            ),
        ),
    ),
    macros=TWO_VARIABLES,
)
