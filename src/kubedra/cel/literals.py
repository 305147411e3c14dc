"""Values of literal tokens: numbers with their limits, strings and bytes with their escapes.

Upstream counterpart: cel-go parser/unescape.go and the literal visitors of parser/parser.go.
"""

from __future__ import annotations

from typing import Final

INT_MAX: Final = 2**63 - 1
INT_MIN: Final = -(2**63)
UINT_MAX: Final = 2**64 - 1

_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
# No literal that fits 64 bits is longer than this; longer ones must not cost quadratic time to convert.
_MAX_DIGITS: Final = 400


class LiteralError(ValueError):
    """A token that has no value; the message is upstream's."""


def parse_int(text: str, negative: bool) -> int:
    """Value of an INT token."""
    value = _digits(text, "invalid int literal")
    value = -value if negative else value
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def parse_uint(text: str) -> int:
    """Value of a UINT token."""
    value = _digits(text[:-1], "invalid uint literal")
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return value


def _digits(text: str, message: str) -> int:
    base = 10
    if text.startswith("0x"):
        base, text = 16, text[2:]
    text = text.lstrip("0") or "0"
    if len(text) > _MAX_DIGITS:
        raise LiteralError(message)
    return int(text, base)


def parse_double(text: str, negative: bool) -> float:
    """Value of a FLOAT token; upstream refuses what overflows."""
    value = float(text)
    if value == float("inf"):
        raise LiteralError("invalid double literal")
    return -value if negative else value


def unquote(text: str, is_bytes: bool) -> str | bytes:
    """Value of a STRING token, or of a BYTES token (with its prefix)."""
    if is_bytes:
        text = text[1:]
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    body = text[3:-3] if len(text) >= 6 and text[:3] in ('"""', "'''") else text[1:-1]
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass") if is_bytes else body
    return _unescape_bytes(body) if is_bytes else _unescape_string(body)


def _unescape_string(body: str) -> str:
    out: list[str] = []
    position, end = 0, len(body)
    while position < end:
        slash = body.find("\\", position)
        if slash < 0:
            out.append(body[position:])
            break
        out.append(body[position:slash])
        kind = body[slash + 1 : slash + 2]
        simple = _ESCAPES.get(kind)
        if simple is not None:
            out.append(simple)
            position = slash + 2
            continue
        code, position = _numeric(body, slash, kind)
        if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
            raise LiteralError("invalid unicode code point")
        out.append(chr(code))
    return "".join(out)


def _unescape_bytes(body: str) -> bytes:
    out = bytearray()
    position, end = 0, len(body)
    while position < end:
        character = body[position]
        if character != "\\":
            out += character.encode("utf-8", "surrogatepass")
            position += 1
            continue
        kind = body[position + 1 : position + 2]
        simple = _ESCAPES.get(kind)
        if simple is not None:
            out += simple.encode()
            position += 2
            continue
        if kind in ("u", "U"):
            raise LiteralError("unable to unescape string")
        code, position = _numeric(body, position, kind)
        out.append(code & 0xFF)
    return bytes(out)


def _numeric(body: str, slash: int, kind: str) -> tuple[int, int]:
    if kind in ("x", "X"):
        length, base = 2, 16
    elif kind == "u":
        length, base = 4, 16
    elif kind == "U":
        length, base = 8, 16
    else:
        return int(body[slash + 1 : slash + 4], 8), slash + 4
    start = slash + 2
    return int(body[start : start + length], base), start + length
