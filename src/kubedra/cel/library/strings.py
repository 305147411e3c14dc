"""String functions: those of the standard library and the string extension, version 2.

Indexes count code points, as everything in CEL does.

Upstream counterpart: cel-go common/types/string.go, ext/strings.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubedra.cel.environment import Function, Library, Overload
from kubedra.cel.errors import EvaluationError
from kubedra.cel.library.formatting import format_string
from kubedra.cel.library.operators import bounded, overload_error
from kubedra.cel.types import BOOL, DYN, INT, STRING, Type, list_of
from kubedra.cel.values import Value

# What Go's strings.TrimSpace takes for space; Python's strip knows four more.
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_UPPER: Final = {ord(letter): ord(letter) - 32 for letter in "abcdefghijklmnopqrstuvwxyz"}
_LOWER: Final = {ord(letter): ord(letter) + 32 for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def _strings(*items: Value) -> None:
    for item in items:
        if item.__class__ is not str:
            raise overload_error()


def starts_with(text: Value, prefix: Value) -> bool:
    """``text.startsWith(prefix)``."""
    _strings(text, prefix)
    return bool(text.startswith(prefix))


def ends_with(text: Value, suffix: Value) -> bool:
    """``text.endsWith(suffix)``."""
    _strings(text, suffix)
    return bool(text.endswith(suffix))


def contains(text: Value, part: Value) -> bool:
    """``text.contains(part)``."""
    _strings(text, part)
    return part in text


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def char_at(text: str, index: int) -> str:
    """``text.charAt(index)``; the end is the empty string."""
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def index_of(text: str, part: str, offset: int = 0) -> int:
    """``text.indexOf(part, offset)``."""
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset)


def last_index_of(text: str, part: str, offset: int | None = None) -> int:
    """``text.lastIndexOf(part, offset)``: the last match that begins at or before the offset."""
    if offset is None:
        if not part:
            return len(text)
        if len(text) < len(part):
            return -1
        offset = len(text) - 1
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    """``text.replace(old, new, count)``; a negative count means all."""
    occurrences = text.count(old)
    if count >= 0:
        occurrences = min(occurrences, count)
    bounded(len(text) + occurrences * max(len(new) - len(old), 0))
    return text.replace(old, new, count if count >= 0 else -1)


def split(text: str, separator: str, count: int = -1) -> list[str]:
    """``text.split(separator, count)``."""
    if count == 0:
        return []
    if not separator:
        if count < 0 or count >= len(text):
            return list(text)
        return [*text[: count - 1], text[count - 1 :]]
    return text.split(separator, count - 1 if count > 0 else -1)


def substring(text: str, start: int, end: int | None = None) -> str:
    """``text.substring(start, end)``."""
    if end is None:
        if not 0 <= start <= len(text):
            raise _out_of_range(start)
        return text[start:]
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if not 0 <= end <= len(text):
        raise _out_of_range(end)
    return text[start:end]


def join(items: list[Value], separator: str = "") -> str:
    """``list.join(separator)``."""
    for item in items:
        if item.__class__ is not str:
            raise EvaluationError(f"join: invalid input: {item}")
    bounded(sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def quote(text: str) -> str:
    """``strings.quote(text)``."""
    return '"' + text.translate(_QUOTED) + '"'


def reverse(text: str) -> str:
    """``text.reverse()`` (extension version 3, not in Kubernetes)."""
    return text[::-1]


def _test(name: str, impl: Callable[..., Value]) -> Function:
    return Function(name, (Overload(_ids(name), (STRING, STRING), BOOL, True, impl),), impl)


def _ids(name: str) -> str:
    return {"contains": "contains_string", "startsWith": "starts_with_string", "endsWith": "ends_with_string"}[name]


def _member(name: str, *forms: tuple[str, tuple[Type, ...], Type, Callable[..., Value]]) -> Function:
    return Function(name, tuple(Overload(id_, args, result, True, impl) for id_, args, result, impl in forms))


STANDARD: Final = Library(
    functions=(_test("contains", contains), _test("startsWith", starts_with), _test("endsWith", ends_with))
)
_S: Final = STRING
_TEXTS: Final = list_of(STRING)
EXTENSION: Final = Library(
    functions=(
        _member("charAt", ("string_char_at_int", (_S, INT), _S, char_at)),
        _member(
            "indexOf",
            ("string_index_of_string", (_S, _S), INT, index_of),
            ("string_index_of_string_int", (_S, _S, INT), INT, index_of),
        ),
        _member(
            "lastIndexOf",
            ("string_last_index_of_string", (_S, _S), INT, last_index_of),
            ("string_last_index_of_string_int", (_S, _S, INT), INT, last_index_of),
        ),
        _member("lowerAscii", ("string_lower_ascii", (_S,), _S, lambda text: text.translate(_LOWER))),
        _member("upperAscii", ("string_upper_ascii", (_S,), _S, lambda text: text.translate(_UPPER))),
        _member(
            "replace",
            ("string_replace_string_string", (_S, _S, _S), _S, replace),
            ("string_replace_string_string_int", (_S, _S, _S, INT), _S, replace),
        ),
        _member(
            "split",
            ("string_split_string", (_S, _S), _TEXTS, split),
            ("string_split_string_int", (_S, _S, INT), _TEXTS, split),
        ),
        _member(
            "substring",
            ("string_substring_int", (_S, INT), _S, substring),
            ("string_substring_int_int", (_S, INT, INT), _S, substring),
        ),
        _member("trim", ("string_trim", (_S,), _S, lambda text: text.strip(_SPACE))),
        _member("format", ("string_format", (_S, list_of(DYN)), _S, format_string)),
        Function("strings.quote", (Overload("strings_quote", (_S,), _S, False, quote),)),
        _member("join", ("list_join", (_TEXTS,), _S, join), ("list_join_string", (_TEXTS, _S), _S, join)),
    )
)
REVERSE: Final = Library(functions=(_member("reverse", ("string_reverse", (_S,), _S, reverse)),))
