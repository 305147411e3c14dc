"""List functions: Kubernetes' own (sum, min, max, …, includes), cel-go's list extension version 3, sets.

Upstream counterparts: k8s.io/apiserver/pkg/cel/library/lists.go, cel-go ext/lists.go, ext/sets.go, and includes() of
k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cmp_to_key
from typing import Final

from kubedra.cel import values
from kubedra.cel.environment import Function, Library, Overload
from kubedra.cel.errors import EvaluationError
from kubedra.cel.library import operators
from kubedra.cel.library.operators import bounded, overload_error
from kubedra.cel.macros import SORTING
from kubedra.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    param,
)
from kubedra.cel.values import Duration, UInt, Value, compare, safely_equal

MAX_INCLUDES: Final = 48
_COMPARABLE: Final[dict[str, Type]] = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}
_ZEROES: Final[dict[str, Value]] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}


def _order(left: Value, right: Value) -> int | None:
    try:
        return compare(left, right)
    except EvaluationError:
        return None


def is_sorted(items: list[Value]) -> bool:
    """``list.isSorted()``."""
    for item in items:
        if item.__class__ not in values.COMPARABLE:
            raise overload_error()
    return all(_order(one, two) != 1 for one, two in itertools.pairwise(items))


def _sum(zero: Value) -> Callable[[list[Value]], Value]:
    def total(items: list[Value]) -> Value:
        result = zero
        for item in items:
            result = operators.add(result, item)
        return result

    return total


def _extreme(name: str, replace_when: int) -> Callable[[list[Value]], Value]:
    def pick(items: list[Value]) -> Value:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        result: Value = None
        for index, item in enumerate(items):
            if item.__class__ not in values.COMPARABLE:
                raise overload_error()
            if index == 0 or _order(result, item) == replace_when:
                result = item
        return result

    return pick


def index_of(items: list[Value], wanted: Value) -> int:
    """``list.indexOf(item)``."""
    return next((index for index, item in enumerate(items) if safely_equal(item, wanted)), -1)


def last_index_of(items: list[Value], wanted: Value) -> int:
    """``list.lastIndexOf(item)``."""
    return next((index for index in range(len(items) - 1, -1, -1) if safely_equal(items[index], wanted)), -1)


def includes(target: Value, wanted: Value) -> bool:
    """``target.includes(item)`` for a list or a scalar; never fails."""
    if target.__class__ is list:
        return any(safely_equal(item, wanted) for item in target)
    return safely_equal(target, wanted)


def bounded_includes(target: Value, wanted: Value) -> bool:
    """The 1.36 form of ``includes``, which refuses to look past 48 elements."""
    if target.__class__ is not list:
        return safely_equal(target, wanted)
    for index, item in enumerate(target):
        if index >= MAX_INCLUDES:
            raise EvaluationError(f"'includes' function cannot be applied to lists longer than {MAX_INCLUDES} values")
        if safely_equal(item, wanted):
            return True
    return False


def cut(items: list[Value], start: int, end: int) -> list[Value]:
    """``list.slice(start, end)``."""
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def flatten(items: list[Value], depth: Value = 1) -> list[Value]:
    """``list.flatten(depth)``."""
    if items.__class__ is not list or depth.__class__ is not int:
        raise overload_error(f"{values.type_of(items)}.flatten()")
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    result: list[Value] = []
    _flatten(items, depth, result)
    return result


def _flatten(items: list[Value], depth: int, result: list[Value]) -> None:
    for item in items:
        if item.__class__ is list and depth > 0:
            _flatten(item, depth - 1, result)
        else:
            result.append(item)
            bounded(len(result))


def sort_by_keys(items: list[Value], keys: list[Value]) -> list[Value]:
    """``list.sort()`` and ``list.sortBy(x, key)``."""
    if len(items) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    kind = keys[0].__class__
    if kind not in values.COMPARABLE:
        raise EvaluationError("list elements must be comparable")
    if any(key.__class__ is not kind for key in keys):
        raise EvaluationError("list elements must have the same type")

    # Stable, where upstream's order of equal keys is unspecified.
    def order(one: int, two: int) -> int:
        return _order(keys[one], keys[two]) or 0

    return [items[index] for index in sorted(range(len(items)), key=cmp_to_key(order))]


def _sort(items: Value) -> list[Value]:
    if items.__class__ is not list:
        raise overload_error("sort")
    return sort_by_keys(items, items)


def _sort_by(items: Value, keys: Value) -> list[Value]:
    if items.__class__ is not list:
        raise overload_error("@sortByAssociatedKeys")
    return sort_by_keys(items, keys)


def make_range(count: int) -> list[int]:
    """``lists.range(n)``."""
    bounded(count)
    return list(range(count))


def distinct(items: list[Value]) -> list[Value]:
    """``list.distinct()``; the first of equal elements stays."""
    if len(items) > 1000:
        # Quadratic for values that cannot be hashed; upstream charges 2·n² for it.
        bounded(len(items) * len(items))
    result: list[Value] = []
    for item in items:
        if not any(safely_equal(item, other) for other in result):
            result.append(item)
    return result


def _sets_contains(items: list[Value], sub: list[Value]) -> bool:
    _bound_sets(items, sub)
    return all(operators.contains(item, items) for item in sub)


def _sets_equivalent(items: list[Value], other: list[Value]) -> bool:
    return _sets_contains(items, other) and _sets_contains(other, items)


def _sets_intersects(items: list[Value], other: list[Value]) -> bool:
    _bound_sets(items, other)
    return any(operators.contains(item, other) for item in items)


def _bound_sets(one: list[Value], two: list[Value]) -> None:
    bounded(len(one) * len(two))


def _templated(
    name: str, id_: str, kinds: dict[str, Type], result: Type | None, impl: Callable[..., Value]
) -> Function:
    return Function(
        name,
        tuple(Overload(id_.format(word), (list_of(kind),), result or kind, True, impl) for word, kind in kinds.items()),
    )


_A: Final = param("A")
_T: Final = param("T")
_LIST_T: Final = list_of(_T)


def _sums() -> Function:
    return Function(
        "sum",
        tuple(
            Overload(f"list_{word}_sum_{word}", (list_of(_COMPARABLE[word]),), _COMPARABLE[word], True, _sum(zero))
            for word, zero in _ZEROES.items()
        ),
    )


KUBERNETES: Final = Library(
    functions=(
        _templated("isSorted", "list_{0}_is_sorted_bool", _COMPARABLE, BOOL, is_sorted),
        _sums(),
        _templated("max", "list_{0}_max_{0}", _COMPARABLE, None, _extreme("max", -1)),
        _templated("min", "list_{0}_min_{0}", _COMPARABLE, None, _extreme("min", 1)),
        Function("indexOf", (Overload("list_a_index_of_int", (list_of(_A), _A), INT, True, index_of),)),
        Function("lastIndexOf", (Overload("list_a_last_index_of_int", (list_of(_A), _A), INT, True, last_index_of),)),
    )
)
INCLUDES: Final = Library(
    functions=(Function("includes", (Overload("list_includes_dyn_dyn", (DYN, DYN), BOOL, True, includes),)),)
)
BOUNDED_INCLUDES: Final = Library(
    functions=(Function("includes", (Overload("dra_includes_dyn_dyn", (DYN, DYN), BOOL, True, bounded_includes),)),)
)
EXTENSION: Final = Library(
    functions=(
        Function("slice", (Overload("list_slice", (_LIST_T, INT, INT), _LIST_T, True, cut),)),
        Function(
            "flatten",
            (
                Overload("list_flatten", (list_of(_LIST_T),), _LIST_T, True, flatten),
                Overload("list_flatten_int", (list_of(DYN), INT), list_of(DYN), True, flatten),
            ),
            flatten,
        ),
        Function(
            "sort",
            tuple(
                Overload(f"list_{kind.name}_sort", (list_of(kind),), list_of(kind), True)
                for kind in _COMPARABLE.values()
            ),
            _sort,
        ),
        Function(
            "@sortByAssociatedKeys",
            tuple(
                Overload(f"list_{kind.name}_sortByAssociatedKeys", (_LIST_T, list_of(kind)), _LIST_T, True)
                for kind in _COMPARABLE.values()
            ),
            _sort_by,
        ),
        Function("lists.range", (Overload("lists_range", (INT,), list_of(INT), False, make_range),)),
        Function("reverse", (Overload("list_reverse", (_LIST_T,), _LIST_T, True, lambda items: items[::-1]),)),
        Function("distinct", (Overload("list_distinct", (_LIST_T,), _LIST_T, True, distinct),)),
    ),
    macros=SORTING,
)
SETS: Final = Library(
    functions=(
        Function(
            "sets.contains", (Overload("list_sets_contains_list", (_LIST_T, _LIST_T), BOOL, False, _sets_contains),)
        ),
        Function(
            "sets.equivalent",
            (Overload("list_sets_equivalent_list", (_LIST_T, _LIST_T), BOOL, False, _sets_equivalent),),
        ),
        Function(
            "sets.intersects",
            (Overload("list_sets_intersects_list", (_LIST_T, _LIST_T), BOOL, False, _sets_intersects),),
        ),
    )
)
SORTABLE: Final = tuple(_COMPARABLE.values())
