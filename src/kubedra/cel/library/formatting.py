"""``"%s is %d".format([…])``: clauses, their checks at run time and, for constant formats, at compile time.

Upstream counterpart: cel-go ext/formatting.go (version 2 of the string extension, locale en_US).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Final

from kubedra.cel import types, values
from kubedra.cel.ast import Call, ListLiteral, Literal, MapLiteral, Node, walk
from kubedra.cel.errors import EvaluationError, Issue
from kubedra.cel.library.conversions import to_string
from kubedra.cel.library.operators import bounded
from kubedra.cel.values import DefaultMap, Duration, Timestamp, UInt, Value, type_of

_MAX_PRECISION: Final = 1000


class _FormatError(Exception):
    pass


def _clauses(text: str) -> Iterator[tuple[str, str, int | None]]:
    """("text", part, None) and (clause letter, "", precision)."""
    position, end = 0, len(text)
    while position < end:
        percent = text.find("%", position)
        if percent < 0:
            yield "text", text[position:], None
            return
        if percent > position:
            yield "text", text[position:percent], None
        position = percent + 1
        if position >= end:
            raise _FormatError("unexpected end of string")
        if text[position] == "%":
            yield "text", "%", None
            position += 1
            continue
        precision: int | None = None
        if text[position] == ".":
            start = position + 1
            position = start
            while position < end and text[position].isascii() and text[position].isdigit():
                position += 1
            if position >= end:
                raise _FormatError("could not find end of precision specifier")
            digits = text[start:position]
            if not digits:
                raise _FormatError(
                    "error while parsing precision: error while converting precision to integer: "
                    'strconv.Atoi: parsing "": invalid syntax'
                )
            precision = int(digits[:6])
            if precision > _MAX_PRECISION:
                raise _FormatError(f"precision {precision} exceeds the limit")
        letter = text[position]
        if letter not in "sdfebxXo":
            raise _FormatError(f"could not parse formatting clause: unrecognized formatting clause {_go_quote(letter)}")
        yield letter, "", precision
        position += 1


def format_string(text: str, args: list[Value]) -> str:
    """The formatted text."""
    parts: list[str] = []
    used = 0
    try:
        for letter, literal, precision in _clauses(text):
            if letter == "text":
                parts.append(literal)
                continue
            if used >= len(args):
                raise _FormatError(f"index {used} out of range")
            try:
                parts.append(_FORMATTERS[letter](args[used], precision))
            except _FormatError as error:
                raise _FormatError(f"error during formatting: {error}") from None
            used += 1
            bounded(sum(map(len, parts)))
    except _FormatError as error:
        raise EvaluationError(str(error)) from None
    return "".join(parts)


def _type_name(value: Value) -> str:
    return str(type_of(value))


def _format_s(value: Value, precision: int | None = None) -> str:
    kind = value.__class__
    if kind is list:
        return "[" + ", ".join(_nested(item) for item in value) + "]"
    if kind is dict or kind is DefaultMap:
        return _format_map(value)
    if value is None:
        return "null"
    if kind in (int, UInt, float, bool, str, bytes, Timestamp, Duration, types.Type):
        try:
            return str(to_string(value))
        except EvaluationError as error:
            raise _FormatError(error.message) from None
    raise _FormatError(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
        f"and timestamps, was given {_type_name(value)}"
    )


def _nested(value: Value) -> str:
    kind = value.__class__
    if kind is str:
        return _go_quote(value)
    if kind is bytes:
        return "b" + _go_quote(_format_s(value))
    if kind is float:
        if not math.isfinite(value):
            return _go_quote(_fixed(value, 6))
        return _fixed(value, 6)
    if kind is Timestamp:
        return f"timestamp({_go_quote(to_string(value))})"
    if kind is Duration:
        return f"duration({_go_quote(to_string(value))})"
    return _format_s(value)


def _format_map(mapping: dict[Value, Value]) -> str:
    pairs: list[tuple[str, str]] = []
    for key in values.keys(mapping):
        if key.__class__ not in (str, bool, int, UInt):
            raise _FormatError(f"no formatting function for map key of type {_type_name(key)}")
        pairs.append((_nested(key), _nested(values.find(mapping, key)[0])))
    pairs.sort(key=lambda pair: pair[0])
    return "{" + ", ".join(f"{key}:{value}" for key, value in pairs) + "}"


def _go_quote(text: str) -> str:
    out = ['"']
    simple = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    simple |= {"\\": "\\\\", '"': '\\"'}
    for character in text:
        if character in simple:
            out.append(simple[character])
        elif character.isprintable():
            out.append(character)
        elif character < "\x80":
            out.append(f"\\x{ord(character):02x}")
        elif character < "\U00010000":
            out.append(f"\\u{ord(character):04x}")
        else:
            out.append(f"\\U{ord(character):08x}")
    return "".join(out) + '"'


def _format_d(value: Value, precision: int | None = None) -> str:
    if value.__class__ in (int, UInt):
        return str(int(value))
    raise _FormatError(f"decimal clause can only be used on integers, was given {_type_name(value)}")


def _fixed(number: float, precision: int) -> str:
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else ("∞" if number > 0 else "-∞")
    return f"{Decimal(number):.{precision}f}"


def _number(value: Value, clause: str) -> float:
    if value.__class__ is float:
        return float(value)
    if value.__class__ is str and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise _FormatError(f"{clause} clause can only be used on doubles, was given {_type_name(value)}")


def _format_f(value: Value, precision: int | None) -> str:
    number = _number(value, "fixed-point")
    text = _fixed(number, 6 if precision is None else precision)
    if not math.isfinite(number):
        return text
    whole, dot, fraction = text.partition(".")
    # The locale en_US groups digits.
    return f"{int(whole):,}" + dot + fraction if not whole.startswith("-0") else text


def _format_e(value: Value, precision: int | None) -> str:
    number = _number(value, "scientific")
    if not math.isfinite(number):
        return _fixed(number, 6)
    mantissa, _, exponent = f"{number:.{6 if precision is None else precision}e}".partition("e")
    return f"{mantissa}\u202f×\u202f10{_superscript(int(exponent))}"


def _superscript(power: int) -> str:
    digits = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
    sign = "⁻" if power < 0 else ""
    return sign + f"{abs(power):02d}".translate(digits)


def _format_b(value: Value, precision: int | None = None) -> str:
    kind = value.__class__
    if kind in (int, UInt):
        return f"{int(value):b}"
    if kind is bool:
        return "1" if value else "0"
    raise _FormatError(f"only integers and bools can be formatted as binary, was given {_type_name(value)}")


def _hex(upper: bool) -> Callable[[Value, int | None], str]:
    def convert(value: Value, precision: int | None = None) -> str:
        kind = value.__class__
        if kind in (int, UInt):
            text = f"{int(value):x}"
        elif kind is str:
            text = value.encode("utf-8", "surrogatepass").hex()
        elif kind is bytes:
            text = value.hex()
        else:
            raise _FormatError(
                f"only integers, byte buffers, and strings can be formatted as hex, was given {_type_name(value)}"
            )
        return text.upper() if upper else text

    return convert


def _format_o(value: Value, precision: int | None = None) -> str:
    if value.__class__ in (int, UInt):
        return f"{int(value):o}"
    raise _FormatError(f"octal clause can only be used on integers, was given {_type_name(value)}")


_FORMATTERS: Final[dict[str, Callable[[Value, int | None], str]]] = {
    "s": _format_s,
    "d": _format_d,
    "f": _format_f,
    "e": _format_e,
    "b": _format_b,
    "x": _hex(upper=False),
    "X": _hex(upper=True),
    "o": _format_o,
}
# Not "any": upstream's check only lets dyn pass, so attributes of 1.36 without list support are refused.
_DYNAMIC: Final = frozenset(("dyn", "error", "type_param"))
_ACCEPTED: Final[dict[str, tuple[frozenset[str], str]]] = {
    "d": (frozenset(("int", "uint")), "decimal clause can only be used on integers, was given {}"),
    "f": (frozenset(("double", "string")), "fixed-point clause can only be used on doubles, was given {}"),
    "e": (frozenset(("double", "string")), "scientific clause can only be used on doubles, was given {}"),
    "b": (
        frozenset(("int", "uint", "bool")),
        "only integers and bools can be formatted as binary, was given {}",
    ),
    "x": (
        frozenset(("int", "uint", "string", "bytes")),
        "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    ),
    "o": (frozenset(("int", "uint")), "octal clause can only be used on integers, was given {}"),
}
_ACCEPTED["X"] = _ACCEPTED["x"]
_PRINTABLE: Final = frozenset(
    ("int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null", "list", "map")
)


def format_issues(root: Node) -> list[Issue]:
    """What is wrong with calls of format that have a constant text and a list literal."""
    issues: list[Issue] = []
    for node in walk(root):
        if not (isinstance(node, Call) and node.function == "format" and len(node.args) == 1):
            continue
        args = node.args[0]
        if not (isinstance(node.target, Literal) and node.target.kind == "string" and isinstance(args, ListLiteral)):
            continue
        used = 0
        try:
            for letter, _, _ in _clauses(str(node.target.value)):
                if letter == "text":
                    continue
                if used >= len(args.elements):
                    raise _FormatError(f"index {used} out of range")
                wrong = _static_fault(letter, args.elements[used])
                used += 1
                if wrong is not None:
                    issues.append(wrong)
                    break
            else:
                if len(args.elements) > used:
                    issues.append(
                        Issue(
                            node.offset,
                            f"too many arguments supplied to string.format (expected {used}, got {len(args.elements)})",
                        )
                    )
        except _FormatError as error:
            issues.append(Issue(node.offset, str(error)))
    return issues


def _static_fault(letter: str, node: Node) -> Issue | None:
    if node.type is None or node.type.kind in _DYNAMIC:
        return None
    if letter == "s":
        if isinstance(node, (ListLiteral, MapLiteral)):
            return next((fault for fault in map(_unprintable, walk(node)) if fault is not None), None)
        return _unprintable(node)
    accepted, message = _ACCEPTED[letter]
    if node.type.kind in accepted:
        return None
    return Issue(node.offset, f"error during formatting: {message.format(node.type.name)}")


def _unprintable(node: Node) -> Issue | None:
    if node.type is None or node.type.kind in _DYNAMIC or node.type.kind in _PRINTABLE:
        return None
    return Issue(
        node.offset,
        "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
        f"types, durations, and timestamps, was given {node.type.name}",
    )
