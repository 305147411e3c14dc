"""``quantity(…)`` and ``semver(…)`` with their members.

Upstream counterpart: k8s.io/apiserver/pkg/cel/library/quantity.go and semverlib.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubedra.base.quantity import Quantity, QuantityError
from kubedra.base.semver import Semver, SemverError, normalise
from kubedra.cel.environment import Function, Library, Overload
from kubedra.cel.errors import EvaluationError
from kubedra.cel.types import BOOL, DOUBLE, INT, QUANTITY, SEMVER, STRING
from kubedra.cel.values import PointerQuantity, Value


def to_quantity(text: str) -> Quantity:
    """``quantity(text)``."""
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def is_quantity(text: str) -> bool:
    """``isQuantity(text)``."""
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def as_integer(quantity: Quantity) -> int:
    """``q.asInteger()``."""
    value = quantity.as_int64()
    if value is None:
        raise EvaluationError("cannot convert value to integer")
    return value


def _result(quantity: Quantity) -> PointerQuantity:
    return PointerQuantity(quantity.nano, quantity.format, quantity._scale)


def _add(one: Quantity, two: Quantity) -> PointerQuantity:
    return _result(one + two)


def _sub(one: Quantity, two: Quantity) -> PointerQuantity:
    return _result(one - two)


def to_semver(text: str, loose: bool = False) -> Semver:
    """``semver(text)`` and ``semver(text, true)``."""
    try:
        return Semver.parse(normalise(text) if loose else text)
    except SemverError as error:
        raise EvaluationError(str(error)) from None


def is_semver(text: str, loose: bool = False) -> bool:
    """``isSemver(text)`` and ``isSemver(text, true)``."""
    try:
        Semver.parse(normalise(text) if loose else text)
    except SemverError:
        return False
    return True


_QS: Final = (QUANTITY, QUANTITY)
_VS: Final = (SEMVER, SEMVER)


def _greater(one: Value, two: Value) -> bool:
    return bool(one.compare(two) > 0)


def _less(one: Value, two: Value) -> bool:
    return bool(one.compare(two) < 0)


def _compare(one: Value, two: Value) -> int:
    return int(one.compare(two))


def _add_int(quantity: Quantity, amount: int) -> PointerQuantity:
    return _add(quantity, Quantity.of(amount, quantity.format))


def _sub_int(quantity: Quantity, amount: int) -> PointerQuantity:
    return _sub(quantity, Quantity.of(amount, quantity.format))


def _part(name: str) -> Callable[[Semver], int]:
    def get(version: Semver) -> int:
        value = int(getattr(version, name))
        # Upstream casts uint64 to int64.
        return value if value < 2**63 else value - 2**64

    return get


QUANTITIES: Final = Library(
    functions=(
        Function("quantity", (Overload("string_to_quantity", (STRING,), QUANTITY, False, to_quantity),)),
        Function("isQuantity", (Overload("is_quantity_string", (STRING,), BOOL, False, is_quantity),)),
        Function("sign", (Overload("quantity_sign", (QUANTITY,), INT, False, lambda quantity: quantity.sign),)),
        Function("isGreaterThan", (Overload("quantity_is_greater_than", _QS, BOOL, True, _greater),)),
        Function("isLessThan", (Overload("quantity_is_less_than", _QS, BOOL, True, _less),)),
        Function("compareTo", (Overload("quantity_compare_to", _QS, INT, True, _compare),)),
        Function(
            "asApproximateFloat",
            (Overload("quantity_get_float", (QUANTITY,), DOUBLE, True, Quantity.approximate_float),),
        ),
        Function("asInteger", (Overload("quantity_get_int", (QUANTITY,), INT, True, as_integer),)),
        Function(
            "isInteger",
            (
                Overload(
                    "quantity_is_integer", (QUANTITY,), BOOL, True, lambda quantity: quantity.as_int64() is not None
                ),
            ),
        ),
        Function(
            "add",
            (
                Overload("quantity_add", _QS, QUANTITY, True, _add),
                Overload("quantity_add_int", (QUANTITY, INT), QUANTITY, True, _add_int),
            ),
        ),
        Function(
            "sub",
            (
                Overload("quantity_sub", _QS, QUANTITY, True, _sub),
                Overload("quantity_sub_int", (QUANTITY, INT), QUANTITY, True, _sub_int),
            ),
        ),
    )
)
_LOOSE: Final = (STRING, BOOL)
SEMVERS_STRICT: Final = Library(
    functions=(
        Function("semver", (Overload("string_to_semver", (STRING,), SEMVER, False, to_semver),)),
        Function("isSemver", (Overload("is_semver_string", (STRING,), BOOL, False, is_semver),)),
        Function("isGreaterThan", (Overload("semver_is_greater_than", _VS, BOOL, True, _greater),)),
        Function("isLessThan", (Overload("semver_is_less_than", _VS, BOOL, True, _less),)),
        Function("compareTo", (Overload("semver_compare_to", _VS, INT, True, _compare),)),
        Function("major", (Overload("semver_major", (SEMVER,), INT, True, _part("major")),)),
        Function("minor", (Overload("semver_minor", (SEMVER,), INT, True, _part("minor")),)),
        Function("patch", (Overload("semver_patch", (SEMVER,), INT, True, _part("patch")),)),
    )
)
SEMVERS_LOOSE: Final = Library(
    functions=(
        Function("semver", (Overload("string_bool_to_semver", _LOOSE, SEMVER, False, to_semver),)),
        Function("isSemver", (Overload("is_semver_string_bool", _LOOSE, BOOL, False, is_semver),)),
    )
)
