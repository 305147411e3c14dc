"""Type conversions: ``int``, ``uint``, ``double``, ``string``, ``bytes``, ``bool``, ``duration``, ``timestamp``, …

Each accepts what upstream's conversion of the value's own type accepts, so a dynamic value of a wrong kind gets its
"type conversion error".

Upstream counterpart: ConvertToType in cel-go common/types.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from kubedra.cel import types, values
from kubedra.cel.environment import Function, Overload
from kubedra.cel.errors import EvaluationError
from kubedra.cel.library.operators import MAX_TIME, MIN_TIME, A, checked_int, checked_uint
from kubedra.cel.library.times import parse_duration, parse_timestamp, show_duration, show_timestamp
from kubedra.cel.literals import INT_MAX, INT_MIN, UINT_MAX
from kubedra.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, Type
from kubedra.cel.values import Cidr, Duration, Timestamp, UInt, Value

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,64}")
_UNSIGNED: Final = re.compile(r"[0-9]{1,64}")
_FLOAT: Final = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity)|nan", re.IGNORECASE
)
_BOOLS: Final = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)
_MAX_NUMBER_TEXT: Final = 1024


def conversion_error(value: Value, target: Type) -> EvaluationError:
    """The value's type has no such conversion."""
    return EvaluationError(f"type conversion error from '{values.type_of(value)}' to '{target}'")


def to_int(value: Value) -> Value:
    """``int(value)``."""
    kind = value.__class__
    if kind is int:
        return value
    if kind is UInt:
        return checked_int(int(value))
    if kind is float:
        if math.isfinite(value) and -(2.0**63) < value < 2.0**63:
            return int(value)
        raise EvaluationError("integer overflow")
    if kind is str and _INTEGER.fullmatch(value):
        number = int(value)
        if INT_MIN <= number <= INT_MAX:
            return number
    if kind is Timestamp:
        return int(value) // 10**9
    if kind is Duration:
        return int(value)
    raise conversion_error(value, INT)


def to_uint(value: Value) -> Value:
    """``uint(value)``."""
    kind = value.__class__
    if kind is UInt:
        return value
    if kind is int:
        return checked_uint(value)
    if kind is float:
        if math.isfinite(value) and 0 <= value < 2.0**64:
            return UInt(int(value))
        raise EvaluationError("unsigned integer overflow")
    if kind is str and _UNSIGNED.fullmatch(value):
        number = int(value)
        if number <= UINT_MAX:
            return UInt(number)
    raise conversion_error(value, UINT)


def to_double(value: Value) -> Value:
    """``double(value)``."""
    kind = value.__class__
    if kind is float:
        return value
    if kind is int or kind is UInt:
        return float(value)
    if kind is str and len(value) <= _MAX_NUMBER_TEXT and _FLOAT.fullmatch(value):
        number = float(value)
        # Go refuses what only overflow makes infinite.
        if math.isfinite(number) or not any(digit in value for digit in "0123456789"):
            return number
    raise conversion_error(value, DOUBLE)


def plain_decimal(number: float) -> str:
    """A float without exponent and with the fewest digits that read back the same."""
    if not math.isfinite(number):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(str(number), "NaN")
    text = format(Decimal(repr(number)), "f")
    return text.removesuffix(".0") if text.endswith(".0") else text


def show_double(number: float) -> str:
    """Go's %g."""
    if not math.isfinite(number):
        return plain_decimal(number)
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    if not number:
        return "-0" if math.copysign(1, number) < 0 else "0"
    text = "".join(str(digit) for digit in digits)
    power = len(text) + exponent - 1
    if -4 <= power < 21:
        return plain_decimal(number)
    mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def to_string(value: Value) -> Value:
    """``string(value)``."""
    kind = value.__class__
    if kind is str:
        return value
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is UInt:
        return str(int(value))
    if kind is float:
        return show_double(value)
    if kind is bytes:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if kind is Duration:
        return show_duration(int(value))
    if kind is Timestamp:
        return show_timestamp(int(value))
    if kind is Type:
        return str(value)
    if kind is Cidr:
        return f"{value.address}/{value.length}"
    if values.type_of(value) == types.IP:
        return str(value)
    raise conversion_error(value, STRING)


def to_bytes(value: Value) -> Value:
    """``bytes(value)``."""
    if value.__class__ is bytes:
        return value
    if value.__class__ is str:
        return value.encode("utf-8", "surrogatepass")
    raise conversion_error(value, BYTES)


def to_bool(value: Value) -> Value:
    """``bool(value)``."""
    if value.__class__ is bool:
        return value
    if value.__class__ is str and value in _BOOLS:
        return _BOOLS[value]
    raise conversion_error(value, BOOL)


def to_duration(value: Value) -> Value:
    """``duration(value)``."""
    if value.__class__ is Duration:
        return value
    if value.__class__ is str:
        parsed = parse_duration(value)
        if parsed is not None:
            return parsed
    raise conversion_error(value, DURATION)


def to_timestamp(value: Value) -> Value:
    """``timestamp(value)``."""
    kind = value.__class__
    if kind is Timestamp:
        return value
    if kind is str:
        parsed = parse_timestamp(value)
        if parsed is not None:
            return parsed
    if kind is int:
        if MIN_TIME <= value * 10**9 <= MAX_TIME:
            return Timestamp(value * 10**9)
        raise EvaluationError("timestamp overflow")
    raise conversion_error(value, TIMESTAMP)


def identity(value: Value) -> Value:
    """``dyn(value)``."""
    return value


def _convert(
    name: str, result: Type, impl: Callable[[Value], Value], sources: tuple[tuple[str, Type], ...]
) -> Function:
    overloads = tuple(Overload(f"{word}_to_{name}", (kind,), result) for word, kind in sources)
    return Function(name, overloads, impl)


CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)


def functions() -> tuple[Function, ...]:
    """All conversions."""
    return (
        Function("type", (Overload("type", (A,), types.type_of(A)),), values.type_of),
        Function("dyn", (Overload("to_dyn", (A,), DYN),), identity),
        _convert("bool", BOOL, to_bool, (("bool", BOOL), ("string", STRING))),
        _convert("bytes", BYTES, to_bytes, (("bytes", BYTES), ("string", STRING))),
        _convert(
            "double", DOUBLE, to_double, (("double", DOUBLE), ("int64", INT), ("string", STRING), ("uint64", UINT))
        ),
        _convert("duration", DURATION, to_duration, (("duration", DURATION), ("string", STRING))),
        Function(
            "int",
            tuple(
                Overload(f"{word}_to_int64", (kind,), INT)
                for word, kind in (
                    ("int64", INT),
                    ("double", DOUBLE),
                    ("duration", DURATION),
                    ("string", STRING),
                    ("timestamp", TIMESTAMP),
                    ("uint64", UINT),
                )
            ),
            to_int,
        ),
        _convert(
            "string",
            STRING,
            to_string,
            (
                ("string", STRING),
                ("bool", BOOL),
                ("bytes", BYTES),
                ("double", DOUBLE),
                ("duration", DURATION),
                ("int64", INT),
                ("timestamp", TIMESTAMP),
                ("uint64", UINT),
            ),
        ),
        _convert("timestamp", TIMESTAMP, to_timestamp, (("timestamp", TIMESTAMP), ("int64", INT), ("string", STRING))),
        Function(
            "uint",
            tuple(
                Overload(f"{word}_to_uint64", (kind,), UINT)
                for word, kind in (("uint64", UINT), ("double", DOUBLE), ("int64", INT), ("string", STRING))
            ),
            to_uint,
        ),
    )
