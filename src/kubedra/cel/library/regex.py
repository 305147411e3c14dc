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


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """A compiled pattern; raises PatternError."""
    if len(pattern) > _MAX_PATTERN:
        raise PatternError("error parsing regexp: expression too large")
    try:
        return re2.compile(pattern, options=_OPTIONS)
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


def _compiled(pattern: Value, prefix: str) -> Any:
    if pattern.__class__ is not str:
        raise overload_error()
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise EvaluationError(f"{prefix}{error}") from None


def _text(value: Value, name: str = "") -> str:
    if value.__class__ is not str:
        raise overload_error(name)
    return str(value)


def matches(value: Value, pattern: Value) -> bool:
    """``text.matches(pattern)``: anywhere in the text."""
    text = _text(value, "matches")
    return _compiled(pattern, "").search(text) is not None


def find(value: Value, pattern: Value) -> str:
    """``text.find(pattern)``: the first match or the empty string."""
    text = _text(value)
    found = _compiled(pattern, "Illegal regex: ").search(text)
    return str(found.group(0)) if found is not None else ""


def find_all(value: Value, pattern: Value, limit: Value = -1) -> list[str]:
    """``text.findAll(pattern, limit)``."""
    text = _text(value)
    compiled = _compiled(pattern, "Illegal regex: ")
    if limit.__class__ is not int:
        raise overload_error()
    found: list[str] = []
    last = -1
    for match in compiled.finditer(text):
        if 0 <= limit <= len(found):
            break
        start, end = match.span()
        # As Go: no empty match right behind the match before.
        if start == end == last:
            continue
        found.append(match.group(0))
        last = end
    return found


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
