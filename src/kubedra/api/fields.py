"""Field errors and field paths, rendered as upstream renders them.

Counterpart: k8s.io/apimachinery ``pkg/util/validation/field``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

# The reasons as they stand in a Status cause, and the text upstream starts each with.
REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
TYPE_INVALID = "FieldValueTypeInvalid"
NOT_FOUND = "FieldValueNotFound"
DUPLICATE = "FieldValueDuplicate"
NOT_SUPPORTED = "FieldValueNotSupported"
FORBIDDEN = "FieldValueForbidden"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
INTERNAL = "InternalError"

_TITLES = {
    REQUIRED: "Required value",
    INVALID: "Invalid value",
    TYPE_INVALID: "Invalid value",
    NOT_FOUND: "Not found",
    DUPLICATE: "Duplicate value",
    NOT_SUPPORTED: "Unsupported value",
    FORBIDDEN: "Forbidden",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
    INTERNAL: "Internal error",
}
_WITHOUT_VALUE = {REQUIRED, FORBIDDEN, TOO_LONG, INTERNAL}


class FieldPath:
    """An immutable path to a field: ``FieldPath("spec").child("devices").index(0).key("a")``."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def child(self, *names: str) -> FieldPath:
        """The path of a member (of a member …)."""
        return FieldPath(".".join((self._text, *names)) if self._text else ".".join(names))

    def index(self, position: int) -> FieldPath:
        """The path of a list item."""
        return FieldPath(f"{self._text}[{position}]")

    def key(self, key: str) -> FieldPath:
        """The path of a map value."""
        return FieldPath(f"{self._text}[{key}]")

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault of an object: what kind, where, which value, and why."""

    type: str
    field: str
    value: Any = None
    detail: str = ""
    origin: str = ""

    def error_body(self) -> str:
        """The text after ``field: ``."""
        title = _TITLES[self.type]
        if self.type in _WITHOUT_VALUE:
            head = title
        else:
            head = f"{title}: {go_value(self.value)}"
        return f"{head}: {self.detail}" if self.detail else head

    def __str__(self) -> str:
        return f"{self.field}: {self.error_body()}"


def go_value(value: Any) -> str:
    """A value as Go's field errors print it: strings quoted, booleans and numbers bare, the rest as JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return msgspec.json.encode(value).decode()
    return msgspec.json.encode(value).decode()


def required(path: FieldPath | str, detail: str = "") -> FieldError:
    """A value must be there and is not."""
    return FieldError(REQUIRED, str(path), "", detail)


def invalid(path: FieldPath | str, value: Any, detail: str, origin: str = "") -> FieldError:
    """The value is of the wrong form."""
    return FieldError(INVALID, str(path), value, detail, origin)


def not_found(path: FieldPath | str, value: Any, detail: str = "") -> FieldError:
    """The value names something that is not there."""
    return FieldError(NOT_FOUND, str(path), value, detail)


def duplicate(path: FieldPath | str, value: Any, detail: str = "") -> FieldError:
    """The value stands twice where it may stand once."""
    return FieldError(DUPLICATE, str(path), value, detail)


def not_supported(path: FieldPath | str, value: Any, supported: Sequence[str]) -> FieldError:
    """The value is none of those that are possible; they are named in the order given (upstream's differs by field)."""
    quoted = ", ".join(f'"{s}"' for s in supported)
    return FieldError(NOT_SUPPORTED, str(path), value, f"supported values: {quoted}" if supported else "")


def forbidden(path: FieldPath | str, detail: str) -> FieldError:
    """The field may not be set (here, or by this user)."""
    return FieldError(FORBIDDEN, str(path), "", detail)


def too_long(path: FieldPath | str, limit: int, value: Any = "") -> FieldError:
    """The string has more than ``limit`` bytes."""
    return FieldError(TOO_LONG, str(path), value, f"may not be more than {limit} bytes", "maxLength")


def too_many(path: FieldPath | str, count: int, limit: int) -> FieldError:
    """The list has more than ``limit`` items."""
    return FieldError(TOO_MANY, str(path), count, f"must have at most {limit} items", "maxItems")


def internal(path: FieldPath | str, detail: str) -> FieldError:
    """Something went wrong that is not the user's fault."""
    return FieldError(INTERNAL, str(path), None, detail)
