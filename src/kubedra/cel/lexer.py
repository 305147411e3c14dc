"""Splits an expression into tokens, as the CEL grammar's lexer rules do.

Never fails: what is no token becomes an issue ("token recognition error"), and scanning goes on behind it, as
upstream's generated lexer does, so that one stray character does not hide later errors. Runs in linear time on any
input; strings are scanned by hand because the place where one breaks off is part of the message.

Upstream counterpart: cel-go parser/gen/CEL.g4 (lexer rules).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kubedra.cel.errors import Issue


class Token(NamedTuple):
    """``kind`` is the text of operators and keywords, else INT, UINT, FLOAT, STRING, BYTES, IDENT, ESC or EOF."""

    kind: str
    text: str
    offset: int


_PATTERN: Final = re.compile(
    r"""(?P<SKIP>[\t \r\n\f]+|//[^\n]*)
  | (?P<FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
  | (?P<INT>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<QUOTE>(?:[bB]?[rR]?)(?=["']))
  | (?P<IDENT>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<OP>==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>])
  | (?P<ESC>`[A-Za-z0-9_.\-/ ]+`)""",
    re.VERBOSE,
)
KEYWORDS: Final = frozenset(("in", "true", "false", "null"))
_SIMPLE_ESCAPES: Final = frozenset("abfnrtv\"'\\?`")
_HEX: Final = frozenset("0123456789abcdefABCDEF")


def tokenize(source: str) -> tuple[list[Token], list[Issue]]:
    """Tokens (the last one is EOF) and what could not be read."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    position, end = 0, len(source)
    match_at = _PATTERN.match
    while position < end:
        match = match_at(source, position)
        if match is None:
            # "&x" and "=x": the character that broke the token is swallowed with it.
            length = 2 if source[position] in "&|=" else 1
            if source[position] == "`":
                length = _escape_failure(source, position)
            issues.append(_unrecognized(source, position, position + length))
            position += length
            continue
        kind = match.lastgroup
        if kind == "SKIP":
            position = match.end()
        elif kind == "QUOTE":
            stop, ok = _scan_string(source, match.end(), raw="r" in match.group().lower())
            if ok:
                text = source[position:stop]
                tokens.append(Token("BYTES" if text[0] in "bB" else "STRING", text, position))
            else:
                issues.append(_unrecognized(source, position, stop))
            position = stop
        else:
            text = match.group()
            if kind == "OP" or (kind == "IDENT" and text in KEYWORDS):
                kind = text
            tokens.append(Token(kind or "", text, position))
            position = match.end()
    tokens.append(Token("EOF", "<EOF>", end))
    return tokens, issues


def _unrecognized(source: str, start: int, stop: int) -> Issue:
    text = source[start:stop].replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return Issue(start, f"Syntax error: token recognition error at: '{text}'")


def _escape_failure(source: str, start: int) -> int:
    match = re.compile(r"`[A-Za-z0-9_.\-/ ]*.?", re.DOTALL).match(source, start)
    return match.end() - start if match else 1


def _scan_string(source: str, start: int, raw: bool) -> tuple[int, bool]:
    """End of the string whose quote stands at ``start``, or the end of what is no string."""
    quote = source[start]
    if source.startswith(quote * 3, start):
        stop, ok = _scan_triple(source, start + 3, quote * 3, raw)
        # An unfinished triple quote still begins with an empty string.
        return (stop, True) if ok else (start + 2, True)
    position, end = start + 1, len(source)
    while position < end:
        character = source[position]
        if character == quote:
            return position + 1, True
        if character in "\n\r":
            return position + 1, False
        if character == "\\" and not raw:
            length = _escape_length(source, position)
            if length < 0:
                return min(position - length, end), False
            position += length
        else:
            position += 1
    return end, False


def _scan_triple(source: str, start: int, quotes: str, raw: bool) -> tuple[int, bool]:
    if raw:
        stop = source.find(quotes, start)
        return (stop + 3, True) if stop >= 0 else (len(source), False)
    position, end = start, len(source)
    while position < end:
        if source.startswith(quotes, position):
            return position + 3, True
        if source[position] == "\\":
            length = _escape_length(source, position)
            if length < 0:
                return min(position - length, end), False
            position += length
        else:
            position += 1
    return end, False


def _escape_length(source: str, start: int) -> int:
    """Length of the escape at ``start``; negative: how many characters up to and with the one that broke it."""
    kind = source[start + 1 : start + 2]
    if kind in _SIMPLE_ESCAPES and kind:
        return 2
    digits: frozenset[str]
    if kind in ("x", "X"):
        count, digits = 2, _HEX
    elif kind == "u":
        count, digits = 4, _HEX
    elif kind == "U":
        count, digits = 8, _HEX
    elif kind and kind in "0123":
        count, digits = 2, frozenset("01234567")
    else:
        return -2
    for index in range(start + 2, start + 2 + count):
        if source[index : index + 1] not in digits:
            return -(index - start + 1)
    return 2 + count
