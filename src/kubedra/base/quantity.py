"""Kubernetes quantities: exact fixed-point amounts such as ``80Gi``, ``100m`` or ``1e3``.

Capacities, consumed capacity, counters and quota are compared and added all over the house, and CEL selectors can
look at them; all of that must give upstream's answer to the last digit, so no float ever takes part. Every quantity
that can be written is a multiple of one nano (finer input is rounded away from zero), hence an amount is one Python
integer of nanos: comparing and adding cost one integer operation.

Upstream keeps two representations, a scaled int64 and a big decimal, and which one holds a value is visible:
``asInteger()`` in CEL fails for every value in the second form ("1.5Gi" even though it is whole) and for a negative
scale ("1000m"). The form is therefore kept beside the amount as ``_scale`` (None = big decimal).

Upstream counterpart: k8s.io/apimachinery/pkg/api/resource (quantity.go, amount.go, suffix.go). Not copied: the
silent wrap-around of Value() and MilliValue() beyond int64; they return the exact integer here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

ERR_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
ERR_NUMERIC: Final = "unable to parse numeric part of quantity"
ERR_SUFFIX: Final = "unable to parse quantity's suffix"

_NANO: Final = 9
_ONE: Final = 10**_NANO
_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -(2**63)
_INT64_DIGITS: Final = 18
# Upstream would try to build 10^(2^31); amounts beyond these bounds are refused instead of eating the memory.
_MAX_EXPONENT: Final = 4096
_MAX_DIGITS: Final = 4096

_DECIMAL: Final[dict[str, int]] = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY: Final[dict[str, int]] = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIX_CHARS: Final = frozenset("eEinumkKMGTP")
_DIGITS: Final = frozenset("0123456789")


class QuantityError(ValueError):
    """A text that is not a quantity; the message is upstream's."""


class Quantity:
    """An immutable exact amount that remembers the family of its suffix."""

    __slots__ = ("_scale", "_text", "format", "nano")

    nano: int
    format: Format
    _scale: int | None
    _text: str | None

    def __init__(self, nano: int, format: Format = "DecimalSI", scale: int | None = None, text: str | None = None):
        """Build from nanos; most callers want ``parse``, ``of`` or ``of_milli``."""
        set_ = object.__setattr__
        set_(self, "nano", nano)
        set_(self, "format", format)
        set_(self, "_scale", scale)
        set_(self, "_text", text)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Quantity is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Quantity is immutable")

    @staticmethod
    def parse(value: str | int | float) -> Quantity:
        """Parse a quantity as ParseQuantity does (no blanks are stripped); numbers are read as their JSON text."""
        if isinstance(value, str):
            return _parse(value)
        if isinstance(value, bool):
            raise QuantityError(ERR_FORMAT)
        return _parse(repr(value))

    @staticmethod
    def of(value: int, format: Format = "DecimalSI") -> Quantity:
        """A whole amount."""
        return Quantity(value * _ONE, format, 0 if _INT64_MIN <= value <= _INT64_MAX else None)

    @staticmethod
    def of_milli(value: int, format: Format = "DecimalSI") -> Quantity:
        """An amount of thousandths."""
        return Quantity(value * 10**6, format, -3 if _INT64_MIN <= value <= _INT64_MAX else None)

    def value(self) -> int:
        """The amount in units, rounded up (away from zero, as upstream does for ordinary values)."""
        return self._scaled(_ONE)

    def milli_value(self) -> int:
        """The amount in thousandths, rounded up."""
        return self._scaled(10**6)

    def _scaled(self, unit: int) -> int:
        nano = self.nano
        if nano < 0 and self._scale is not None:
            return nano // unit
        return -(-nano // unit)

    def as_int64(self) -> int | None:
        """The amount as int64 if upstream's fast form holds it as a whole number, else None."""
        scale = self._scale
        if scale is None or scale < 0:
            return None
        value = self.nano // _ONE
        return value if _INT64_MIN <= value <= _INT64_MAX else None

    def approximate_float(self) -> float:
        """The amount as a float (may lose precision)."""
        scale = -_NANO if self._scale is None else self._scale
        try:
            base = float(self.nano // 10 ** (_NANO + scale))
            return base if scale == 0 else base * 10.0**scale
        except OverflowError:
            return float("inf") if self.nano > 0 else float("-inf")

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nano > 0) - (self.nano < 0)

    @property
    def is_whole(self) -> bool:
        """Whether the amount has no fractional part."""
        return self.nano % _ONE == 0

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1, as Cmp."""
        return (self.nano > other.nano) - (self.nano < other.nano)

    def __add__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return _sum(self, other, other.nano)

    def __sub__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return _sum(self, other, -other.nano)

    def __mul__(self, factor: int) -> Quantity:
        if not isinstance(factor, int):
            return NotImplemented
        nano = self.nano * factor
        return Quantity(nano, self.format, _fitting(nano, self._scale))

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format, _fitting(-self.nano, self._scale))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano

    def __ge__(self, other: Quantity) -> bool:
        return self.nano >= other.nano

    def __bool__(self) -> bool:
        return self.nano != 0

    def __str__(self) -> str:
        text = self._text
        if text is None:
            text = _canonical(self.nano, self.format)
            object.__setattr__(self, "_text", text)
        return text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (Quantity, (self.nano, self.format, self._scale, self._text))


def _fitting(nano: int, scale: int | None) -> int | None:
    """The scale if the amount still fits int64 there, else None (upstream changes to its big form)."""
    if scale is None:
        return None
    return scale if _INT64_MIN <= nano // 10 ** (_NANO + scale) <= _INT64_MAX else None


def _sum(left: Quantity, right: Quantity, addend: int) -> Quantity:
    # A zero takes over the suffix family of what is added to it, as upstream.
    format = left.format if left.nano else right.format
    nano = left.nano + addend
    a, b = left._scale, right._scale
    if a is None or b is None:
        return Quantity(nano, format, None)
    if not addend:
        return Quantity(nano, format, a)
    if not left.nano:
        return Quantity(nano, format, _fitting(nano, b))
    scale = min(a, b)
    # The operand with the larger scale must fit int64 after rescaling, too.
    if _fitting(left.nano, scale) is None or _fitting(addend, scale) is None:
        return Quantity(nano, format, None)
    return Quantity(nano, format, _fitting(nano, scale))


def _canonical(nano: int, format: Format) -> str:
    if nano == 0:
        return "0"
    if format == "BinarySI" and abs(nano) >= 1024 * _ONE and nano % _ONE == 0:
        value, power = nano // _ONE, 0
        while power < 6 and value % 1024 == 0:
            value //= 1024
            power += 1
        return f"{value}{_BINARY_SUFFIX[power]}"
    mantissa, exponent = nano, -_NANO
    while mantissa % 1000 == 0:
        mantissa //= 1000
        exponent += 3
    if format != "DecimalExponent" and exponent in _DECIMAL_SUFFIX:
        return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"
    return f"{mantissa}e{exponent}" if exponent else str(mantissa)


def _split(text: str) -> tuple[bool, str, str, str, str]:
    """Sign, value text, numerator, denominator and suffix; upstream's permissive scanner, kept as permissive."""
    end = len(text)
    pos = 1 if text[0] in "+-" else 0
    positive = text[0] != "-"
    while pos < end and text[pos] == "0":
        pos += 1
    if pos >= end:
        return positive, "0", "0", "", ""
    start = pos
    while pos < end and text[pos] in _DIGITS:
        pos += 1
    numerator = text[start:pos] or "0"
    if pos >= end:
        return positive, text, numerator, "", ""
    denominator = ""
    if text[pos] == ".":
        pos += 1
        start = pos
        while pos < end and text[pos] in _DIGITS:
            pos += 1
        denominator = text[start:pos]
        if pos >= end:
            return positive, text, numerator, denominator, ""
    value = text[:pos]
    start = pos
    while pos < end and text[pos] in _SUFFIX_CHARS:
        pos += 1
    if pos < end and text[pos] in "+-":
        pos += 1
    while pos < end and text[pos] in _DIGITS:
        pos += 1
    if pos < end:
        raise QuantityError(ERR_FORMAT)
    return positive, value, numerator, denominator, text[start:]


def _suffix(suffix: str) -> tuple[int, int, Format]:
    """Base, exponent and family of a suffix."""
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], "DecimalSI"
    if suffix in _BINARY:
        return 2, _BINARY[suffix], "BinarySI"
    if len(suffix) > 1 and suffix[0] in "eE":
        digits = suffix[1:]
        if digits.lstrip("+-").isdecimal() and len(digits) - len(digits.lstrip("+-")) <= 1 and len(digits) <= 20:
            exponent = int(digits)
            if abs(exponent) > _MAX_EXPONENT:
                raise QuantityError(ERR_NUMERIC)
            return 10, exponent, "DecimalExponent"
    raise QuantityError(ERR_SUFFIX)


@lru_cache(maxsize=8192)
def _parse(text: str) -> Quantity:
    if not text:
        raise QuantityError(ERR_FORMAT)
    if text == "0":
        return Quantity(0, "DecimalSI", 0, "0")
    positive, value, numerator, denominator, suffix = _split(text)
    base, exponent, format = _suffix(suffix)
    if len(numerator) + len(denominator) > _MAX_DIGITS:
        raise QuantityError(ERR_NUMERIC)
    digits = numerator + denominator
    if base == 10:
        scale, precision, mantissa = exponent, _INT64_DIGITS - len(digits), 1
    elif denominator:
        scale, precision, mantissa = 0, -1, 1
    else:
        scale, precision, mantissa = 0, 15 - len(numerator) - exponent * 3 // 10 - 1, 1 << exponent
    if precision >= 0:
        scale -= len(denominator)
        if scale >= -_NANO:
            amount = int(digits) * mantissa
            if amount <= _INT64_MAX:
                nano = (amount if positive else -amount) * 10 ** (_NANO + scale)
                if base == 2:
                    keep = int(digits) & 0x07 != 0
                else:
                    keep = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
                return Quantity(nano, format, scale, text if keep else None)
    # The slow form reads the value's own text: a lone point or sign is not a number there.
    if not value.strip("+-."):
        raise QuantityError(ERR_NUMERIC)
    shift = _NANO - len(denominator) + (exponent if base == 10 else 0)
    unscaled = int(digits) << (exponent if base == 2 else 0)
    nano = unscaled * 10**shift if shift >= 0 else -(-unscaled // 10**-shift)
    if format == "BinarySI":
        nano = min(nano, _INT64_MAX * _ONE)
        if 0 < nano < _ONE:
            format = "DecimalSI"
    return Quantity(nano if positive else -nano, format, None)
