"""``matches``, ``find``, ``findAll``: RE2 syntax and RE2's linear time, nothing else.

A backtracking engine on a user's pattern could stop a scheduler; look-around and back-references are errors.
Compiled patterns are kept in a bounded cache, each within RE2's memory bound.

Upstream counterpart: Go's regexp, k8s.io/apiserver/pkg/cel/library/regex.go.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

from kubedra.cel.environment import Function, Library, Overload
from kubedra.cel.errors import EvaluationError
from kubedra.cel.library.operators import overload_error
from kubedra.cel.types import BOOL, INT, STRING, list_of
from kubedra.cel.values import Value

_MAX_PATTERN: Final = 20_000
_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 8 << 20
# Only the whole match is ever asked for.
_OPTIONS.never_capture = True
# RE2 names the fault first; Go's wording differs in few words.
_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid character class range": "invalid character class range",
    "invalid escape sequence": "invalid escape sequence",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "bad perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


class PatternError(ValueError):
    """The pattern is no RE2 expression; the message is Go's."""


class Pattern:
    """A compiled pattern that searches UTF-8 bytes."""

    __slots__ = ("_native", "_public")

    def __init__(self, compiled: Any) -> None:
        self._public = compiled
        # The wrapper maps every offset back to characters, which takes longer than matching; nobody here needs it.
        native = getattr(compiled, "_regexp", None)
        anchors = getattr(re2, "_Anchor", None)
        self._native: Any = None if native is None or anchors is None else (native.Match, anchors.UNANCHORED)

    def span(self, data: bytes, start: int = 0) -> tuple[int, int]:
        """First match at or behind ``start``; (-1, -1) if there is none."""
        if self._native is not None:
            match, unanchored = self._native
            first: tuple[int, int] = match(unanchored, data, start, len(data))[0]
            return first
        found = self._public.search(data, start)
        return (-1, -1) if found is None else found.span()


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Pattern:
    """A compiled pattern; raises PatternError."""
    if len(pattern) > _MAX_PATTERN:
        raise PatternError("error parsing regexp: expression too large")
    try:
        return Pattern(re2.compile(pattern, options=_OPTIONS))
    except re2.error as error:
        raise PatternError(f"error parsing regexp: {_reason(error)}") from None
    except UnicodeEncodeError:
        raise PatternError(f"error parsing regexp: invalid UTF-8: `{pattern!a}`") from None


def _reason(error: Exception) -> str:
    text = error.args[0] if error.args else ""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    reason, separator, rest = str(text).partition(": ")
    reason = _WORDS.get(reason, reason)
    return f"{reason}: `{rest}`" if separator else reason


def _compiled(pattern: Value, prefix: str) -> Pattern:
    if pattern.__class__ is not str:
        raise overload_error()
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise EvaluationError(f"{prefix}{error}") from None


def _bytes(value: Value, name: str = "") -> bytes:
    if value.__class__ is not str:
        raise overload_error(name)
    text: str = value
    return text.encode("utf-8", "replace")


def matches(value: Value, pattern: Value) -> bool:
    """``text.matches(pattern)``: anywhere in the text."""
    data = _bytes(value, "matches")
    return _compiled(pattern, "").span(data)[0] >= 0


def find(value: Value, pattern: Value) -> str:
    """``text.find(pattern)``: the first match or the empty string."""
    data = _bytes(value)
    start, end = _compiled(pattern, "Illegal regex: ").span(data)
    return data[start:end].decode("utf-8", "replace") if start >= 0 else ""


def find_all(value: Value, pattern: Value, limit: Value = -1) -> list[str]:
    """``text.findAll(pattern, limit)``."""
    data = _bytes(value)
    compiled = _compiled(pattern, "Illegal regex: ")
    if limit.__class__ is not int:
        raise overload_error()
    found: list[str] = []
    position, last = 0, -1
    while position <= len(data) and not 0 <= limit <= len(found):
        start, end = compiled.span(data, position)
        if start < 0:
            break
        # As Go: no empty match right behind the match before.
        if start != end or start != last:
            found.append(data[start:end].decode("utf-8", "replace"))
            last = end
        position = end if end > position else _next_character(data, end)
    return found


def _next_character(data: bytes, position: int) -> int:
    position += 1
    while position < len(data) and data[position] & 0xC0 == 0x80:
        position += 1
    return position


LIBRARY: Final = Library(
    functions=(
        Function(
            "matches",
            (
                Overload("matches", (STRING, STRING), BOOL),
                Overload("matches_string", (STRING, STRING), BOOL, member=True),
            ),
            matches,
        ),
    ),
    patterns={"matches": 1},
)
KUBERNETES: Final = Library(
    functions=(
        Function("find", (Overload("string_find_string", (STRING, STRING), STRING, True, find),), find),
        Function(
            "findAll",
            (
                Overload("string_find_all_string", (STRING, STRING), list_of(STRING), True, find_all),
                Overload("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), True, find_all),
            ),
            find_all,
        ),
    ),
    patterns={"find": 1, "findAll": 1},
)
