"""The closures that device selectors are made of, fused, and the loops' and literals' common parts.

One closure for ``device.attributes["d"].id == "x"`` instead of five is what makes a selector cost well under a
microsecond. Each handles the expected class inline and leaves everything else to the general rules.

Upstream has no counterpart; cel-go folds constants only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubedra.base.semver import Semver
from kubedra.cel import values
from kubedra.cel.errors import CostLimitError, EvaluationError
from kubedra.cel.library import operators
from kubedra.cel.library.operators import overload_error
from kubedra.cel.program import Membership
from kubedra.cel.values import UInt, Value, equal

Frame = list[Any]
Closure = Callable[[Frame], Value]


def iterate(source: Value, two: bool) -> list[tuple[Value, Value]]:
    """What a loop visits: (element, element) or (key, key); with two variables (index, element) or (key, value)."""
    kind = source.__class__
    if kind is list:
        return list(enumerate(source)) if two else [(item, item) for item in source]
    if kind is dict or kind is values.DefaultMap:
        if two:
            return [(key, values.find(source, key)[0]) for key in values.keys(source)]
        return [(key, key) for key in values.keys(source)]
    if two:
        raise EvaluationError(f"unsupported comprehension range type: {values.go_name(source)}")
    raise EvaluationError(f"got '{values.go_name(source)}', expected iterable type")


def reader(slot: int, first: str, last: str) -> Closure:
    def read(frame: Frame) -> Value:
        try:
            return frame[slot][first][last]
        except KeyError:
            raise EvaluationError(f"no such key: {last}") from None

    return read


def read_equals(slot: int, first: str, last: str, text: str) -> Closure:
    def run(frame: Frame) -> Value:
        try:
            value = frame[slot][first][last]
        except KeyError:
            raise EvaluationError(f"no such key: {last}") from None
        if value.__class__ is str:
            return value == text
        return equal(value, text)

    return run


def equals_text(operand: Closure, text: str, negated: bool) -> Closure:
    def same(frame: Frame) -> Value:
        value = operand(frame)
        return value == text if value.__class__ is str else equal(value, text)

    def other(frame: Frame) -> Value:
        value = operand(frame)
        return value != text if value.__class__ is str else not values.safely_equal(value, text)

    return other if negated else same


def equals_int(operand: Closure, number: int, negated: bool) -> Closure:
    def same(frame: Frame) -> Value:
        value = operand(frame)
        return value == number if value.__class__ is int else equal(value, number)

    def other(frame: Frame) -> Value:
        value = operand(frame)
        return value != number if value.__class__ is int else not values.safely_equal(value, number)

    return other if negated else same


def equals_object(operand: Closure, fixed: Value, negated: bool) -> Closure:
    if negated:
        return lambda frame: not values.safely_equal(operand(frame), fixed)
    return lambda frame: equal(operand(frame), fixed)


def member_of(item: Closure, members: Membership) -> Closure:
    strings, numbers, truths, has_null = members.strings, members.numbers, members.truths, members.has_null

    def run(frame: Frame) -> Value:
        value = item(frame)
        kind = value.__class__
        if kind is str:
            return value in strings
        return _member_slow(value, kind, numbers, truths, has_null)

    return run


def _member_slow(value: Value, kind: type, numbers: frozenset[Any], truths: frozenset[bool], has_null: bool) -> bool:
    if kind is int or kind is UInt or kind is float:
        return value in numbers
    if kind is bool:
        return value in truths
    if value is None:
        return has_null
    if kind is Semver or kind is bytes:
        raise values.unhashable(value)
    return False


def is_member(value: Value, members: Membership) -> bool:
    """``value in [constants]``."""
    if value.__class__ is str:
        return value in members.strings
    return _member_slow(value, value.__class__, members.numbers, members.truths, members.has_null)


def all_of(terms: tuple[Closure, ...]) -> Closure:
    def run(frame: Frame) -> Value:
        failure: EvaluationError | None = None
        for term in terms:
            try:
                value = term(frame)
            except CostLimitError:
                raise
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is False:
                return False
            if value is not True:
                failure = failure or overload_error()
        if failure is not None:
            raise failure
        return True

    return run


def any_of(terms: tuple[Closure, ...]) -> Closure:
    def run(frame: Frame) -> Value:
        failure: EvaluationError | None = None
        for term in terms:
            try:
                value = term(frame)
            except CostLimitError:
                raise
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is True:
                return True
            if value is not False:
                failure = failure or overload_error()
        if failure is not None:
            raise failure
        return False

    return run


def apply(function: Callable[..., Value], operands: list[Closure]) -> Closure:
    if len(operands) == 1:
        only = operands[0]
        return lambda frame: function(only(frame))
    if len(operands) == 2:
        one, two = operands
        return lambda frame: function(one(frame), two(frame))
    if not operands:
        return lambda frame: function()
    return lambda frame: function(*[operand(frame) for operand in operands])


def _is_greater(value: Any, other: Any) -> bool:
    return bool(value > other)


def _is_less(value: Any, other: Any) -> bool:
    return bool(value < other)


def _compare(value: Any, other: Any) -> int:
    return int(value.compare(other))


MEMBER_COMPARISONS: Final[dict[str, Callable[[Any, Any], Value]]] = {
    "isGreaterThan": _is_greater,
    "isLessThan": _is_less,
    "compareTo": _compare,
}
RELATIONS: Final[dict[str, tuple[Callable[[Value, Value], bool], Callable[[int, int], bool]]]] = {
    "_<_": (operators.less, int.__lt__),
    "_<=_": (operators.less_equals, int.__le__),
    "_>_": (operators.greater, int.__gt__),
    "_>=_": (operators.greater_equals, int.__ge__),
}
