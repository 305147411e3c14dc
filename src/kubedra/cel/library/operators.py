"""Operators: arithmetic with overflow checks, comparison, indexing, ``in``, logic.

The functions here get values and raise EvaluationError; which of them a call reaches is the evaluator's business.
"No such overload" comes in two wordings upstream: bare when the left operand could do the operation but not with
that right operand, with the operator's name when it could not do it at all.

Upstream counterpart: cel-go common/stdlib/standard.go and common/types/{int,uint,double,string,list,map,duration,
timestamp,overflow}.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from kubedra.cel import types, values
from kubedra.cel.environment import Function, Overload
from kubedra.cel.errors import CostLimitError, EvaluationError
from kubedra.cel.limits import MAX_RESULT_SIZE
from kubedra.cel.literals import INT_MAX, INT_MIN, UINT_MAX
from kubedra.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Type, list_of, map_of, param
from kubedra.cel.values import NO_SUCH_OVERLOAD, Duration, Timestamp, UInt, Value, compare

A: Final = param("A")
B: Final = param("B")
MIN_TIME: Final = -62135596800 * 10**9
MAX_TIME: Final = 253402300799 * 10**9 + 999_999_999
_TIME_OVERFLOW: Final = "timestamp overflow"


def overload_error(name: str = "") -> EvaluationError:
    """No such overload, with the operator's name if the left operand has none of its kind."""
    return EvaluationError(f"{NO_SUCH_OVERLOAD}: {name}" if name else NO_SUCH_OVERLOAD)


def bounded(size: int) -> None:
    """Refuse to build a result that only a runaway expression wants."""
    if size > MAX_RESULT_SIZE:
        raise CostLimitError


def checked_int(value: int) -> int:
    """An int result within 64 bits."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def checked_uint(value: int) -> UInt:
    """A uint result within 64 bits."""
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")


def _checked_duration(value: int) -> Duration:
    if INT_MIN <= value <= INT_MAX:
        return Duration(value)
    raise EvaluationError("duration overflow")


def _checked_time(value: int) -> Timestamp:
    if MIN_TIME <= value <= MAX_TIME:
        return Timestamp(value)
    raise EvaluationError(_TIME_OVERFLOW)


_ADDERS: Final = frozenset((int, UInt, float, str, bytes, list, Duration, Timestamp))
_SUBTRACTORS: Final = frozenset((int, UInt, float, Duration, Timestamp))
_MULTIPLIERS: Final = frozenset((int, UInt, float))
_MODDERS: Final = frozenset((int, UInt))


def add(left: Value, right: Value) -> Value:
    """``left + right``."""
    one, two = left.__class__, right.__class__
    if one is two:
        if one is int:
            return checked_int(left + right)
        if one is float:
            return left + right
        if one is str or one is bytes or one is list:
            bounded(len(left) + len(right))
            return left + right
        if one is UInt:
            return checked_uint(int(left) + int(right))
        if one is Duration:
            return _checked_duration(int(left) + int(right))
    if (one is Timestamp and two is Duration) or (one is Duration and two is Timestamp):
        return _checked_time(int(left) + int(right))
    raise overload_error("" if one in _ADDERS else "_+_")


def subtract(left: Value, right: Value) -> Value:
    """``left - right``."""
    one, two = left.__class__, right.__class__
    if one is two:
        if one is int:
            return checked_int(left - right)
        if one is float:
            return left - right
        if one is UInt:
            return checked_uint(int(left) - int(right))
        if one is Duration:
            return _checked_duration(int(left) - int(right))
        if one is Timestamp:
            return _checked_duration(int(left) - int(right))
    if one is Timestamp and two is Duration:
        return _checked_time(int(left) - int(right))
    raise overload_error("" if one in _SUBTRACTORS else "_-_")


def multiply(left: Value, right: Value) -> Value:
    """``left * right``."""
    one = left.__class__
    if one is right.__class__:
        if one is int:
            return checked_int(left * right)
        if one is float:
            return left * right
        if one is UInt:
            return checked_uint(int(left) * int(right))
    raise overload_error("" if one in _MULTIPLIERS else "_*_")


def divide(left: Value, right: Value) -> Value:
    """``left / right``; integers truncate toward zero."""
    one = left.__class__
    if one is right.__class__:
        if one is float:
            return _divide_floats(left, right)
        if one is int or one is UInt:
            if not right:
                raise EvaluationError("division by zero")
            quotient = abs(int(left)) // abs(int(right))
            if one is UInt:
                return UInt(quotient)
            return checked_int(quotient if (left < 0) == (right < 0) else -quotient)
    raise overload_error("" if one in _MULTIPLIERS else "_/_")


def _divide_floats(left: float, right: float) -> float:
    if right:
        return left / right
    if math.isnan(left) or not left:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo(left: Value, right: Value) -> Value:
    """``left % right`` with the sign of the left operand."""
    one = left.__class__
    if one is right.__class__ and one in _MODDERS:
        if not right:
            raise EvaluationError("modulus by zero")
        remainder = abs(int(left)) % abs(int(right))
        if one is UInt:
            return UInt(remainder)
        if left == INT_MIN and right == -1:
            raise EvaluationError("integer overflow")
        return remainder if left >= 0 else -remainder
    raise overload_error("" if one in _MODDERS else "_%_")


def negate(value: Value) -> Value:
    """``-value``."""
    kind = value.__class__
    if kind is int:
        return checked_int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return _checked_duration(-int(value))
    raise overload_error("" if kind is bool else "-_")


def logical_not(value: Value) -> Value:
    """``!value``."""
    if value is True:
        return False
    if value is False:
        return True
    raise overload_error()


def not_strictly_false(value: Value) -> Value:
    """Whether a loop goes on: everything but false does."""
    return value is not False


def _relation(name: str, accept: Callable[[int], bool]) -> Callable[[Value, Value], bool]:
    def relate(left: Value, right: Value) -> bool:
        if left.__class__ not in values.COMPARABLE:
            raise overload_error(name)
        order = compare(left, right)
        return order is not None and accept(order)

    return relate


less = _relation("_<_", lambda order: order < 0)
less_equals = _relation("_<=_", lambda order: order <= 0)
greater = _relation("_>_", lambda order: order > 0)
greater_equals = _relation("_>=_", lambda order: order >= 0)


def index_of(key: Value) -> int:
    """A list index from an int, uint or whole double."""
    kind = key.__class__
    if kind is int or kind is UInt:
        return int(key)
    if kind is float:
        if key == math.trunc(key) if math.isfinite(key) else False:
            return int(key)
        raise EvaluationError(f"unsupported index value {key} in list")
    raise EvaluationError(f"unsupported index type '{values.type_of(key)}' in list")


def contains(item: Value, container: Value) -> bool:
    """``item in container``."""
    kind = container.__class__
    if kind is list:
        return any(values.safely_equal(item, element) for element in container)
    if kind is dict or kind is values.DefaultMap:
        return values.contains_key(container, item)
    raise overload_error()


def size(value: Value) -> int:
    """``size(value)``."""
    if value.__class__ in (str, bytes, list, dict, values.DefaultMap):
        return len(value)
    raise overload_error("size")


def _never(*args: Value) -> Value:
    raise overload_error()


def _same(kinds: dict[str, Type], result: Type | None = None) -> list[Overload]:
    return [Overload(name, (kind, kind), result or kind) for name, kind in kinds.items()]


def _relations(word: str, impl: Callable[[Value, Value], bool], name: str) -> Function:
    kinds: list[tuple[str, Type, Type]] = [("bool", BOOL, BOOL), ("int64", INT, INT), ("int64_double", INT, DOUBLE)]
    kinds += [("int64_uint64", INT, UINT), ("uint64", UINT, UINT), ("uint64_double", UINT, DOUBLE)]
    kinds += [("uint64_int64", UINT, INT), ("double", DOUBLE, DOUBLE), ("double_int64", DOUBLE, INT)]
    kinds += [("double_uint64", DOUBLE, UINT), ("string", STRING, STRING), ("bytes", BYTES, BYTES)]
    kinds += [("timestamp", TIMESTAMP, TIMESTAMP), ("duration", DURATION, DURATION)]
    overloads = tuple(Overload(f"{word}_{suffix}", (one, two), BOOL) for suffix, one, two in kinds)
    return Function(name, overloads, impl)


_LIST_A: Final = list_of(A)
_MAP_AB: Final = map_of(A, B)


def functions() -> tuple[Function, ...]:
    """Every operator and ``size``."""
    sizes = (("bytes", BYTES), ("list", _LIST_A), ("map", _MAP_AB), ("string", STRING))
    size_overloads: list[Overload] = []
    for word, kind in sizes:
        size_overloads.append(Overload(f"size_{word}", (kind,), INT))
        size_overloads.append(Overload(f"{word}_size", (kind,), INT, member=True))
    added = {"add_bytes": BYTES, "add_double": DOUBLE, "add_duration_duration": DURATION}
    moved = [
        Overload("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
        Overload("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
    ]
    more = {"add_int64": INT, "add_list": _LIST_A, "add_string": STRING, "add_uint64": UINT}
    taken = [
        Overload("subtract_double", (DOUBLE, DOUBLE), DOUBLE),
        Overload("subtract_duration_duration", (DURATION, DURATION), DURATION),
        Overload("subtract_int64", (INT, INT), INT),
        Overload("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        Overload("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
        Overload("subtract_uint64", (UINT, UINT), UINT),
    ]
    numbers = {"double": DOUBLE, "int64": INT, "uint64": UINT}
    return (
        Function("_?_:_", (Overload("conditional", (BOOL, A, A), A),), _never),
        Function("_&&_", (Overload("logical_and", (BOOL, BOOL), BOOL),), _never),
        Function("_||_", (Overload("logical_or", (BOOL, BOOL), BOOL),), _never),
        Function("!_", (Overload("logical_not", (BOOL,), BOOL),), logical_not),
        Function("@not_strictly_false", (Overload("not_strictly_false", (BOOL,), BOOL),), not_strictly_false),
        Function("_==_", (Overload("equals", (A, A), BOOL),), _never),
        Function("_!=_", (Overload("not_equals", (A, A), BOOL),), _never),
        Function("_+_", (*_same(added), *moved, *_same(more)), add),
        Function("_-_", tuple(taken), subtract),
        Function("_*_", tuple(_same({f"multiply_{word}": kind for word, kind in numbers.items()})), multiply),
        Function("_/_", tuple(_same({f"divide_{word}": kind for word, kind in numbers.items()})), divide),
        Function("_%_", tuple(_same({"modulo_int64": INT, "modulo_uint64": UINT})), modulo),
        Function("-_", (Overload("negate_double", (DOUBLE,), DOUBLE), Overload("negate_int64", (INT,), INT)), negate),
        _relations("less", less, "_<_"),
        _relations("less_equals", less_equals, "_<=_"),
        _relations("greater", greater, "_>_"),
        _relations("greater_equals", greater_equals, "_>=_"),
        Function("_[_]", (Overload("index_list", (_LIST_A, INT), A), Overload("index_map", (_MAP_AB, A), B)), _never),
        Function("@in", (Overload("in_list", (A, _LIST_A), BOOL), Overload("in_map", (A, _MAP_AB), BOOL)), contains),
        Function("size", tuple(size_overloads), size),
    )


TYPES: Final[dict[str, Type]] = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "google.protobuf.Duration": DURATION,
    "int": INT,
    "list": list_of(A),
    "map": map_of(A, B),
    "null_type": types.NULL,
    "string": STRING,
    "google.protobuf.Timestamp": TIMESTAMP,
    "type": types.TYPE,
    "uint": UINT,
}
