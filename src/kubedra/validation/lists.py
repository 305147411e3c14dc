"""How lists, sets and maps are checked: the size first, then the items, then duplicates.

A list that is too long gets one fault and its items none, so that a hostile list of a million items costs nothing.

Upstream counterpart: validateSlice, validateSet and validateMap of pkg/apis/resource/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError

Check = Callable[[Any, str], list[FieldError]]

# The shortest length to which a key in a path is cut.
_SHORTEST_KEY = 16


def check_list(value: Any, limit: int | None, check: Check, path: str) -> list[FieldError]:
    """Check the length of a list and each item (`check` gets the item and its path)."""
    items = value or ()
    if limit is not None and len(items) > limit:
        return [fields.too_many(path, len(items), limit)]
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        errors.extend(check(item, f"{path}[{index}]"))
    return errors


def check_set(
    value: Any,
    limit: int | None,
    check: Check,
    path: str,
    key: Callable[[Any], Hashable] = lambda item: item,
    shown: Callable[[Any], Any] | None = None,
) -> list[FieldError]:
    """Check a list whose items must differ by `key`; a repeated item is reported at the item itself."""
    items = value or ()
    if limit is not None and len(items) > limit:
        return [fields.too_many(path, len(items), limit)]
    errors = check_list(items, None, check, path)
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        identity = key(item)
        if identity in seen:
            errors.append(fields.duplicate(f"{path}[{index}]", identity if shown is None else shown(item)))
        seen.add(identity)
    return errors


def check_map(
    value: Any, limit: int | None, longest_key: int, check_key: Check, check_value: Check, path: str
) -> list[FieldError]:
    """Check the size of a map, its keys (reported at the map) and its values (reported at the key)."""
    items: dict[str, Any] = value or {}
    if limit is not None and len(items) > limit:
        return [fields.too_many(path, len(items), limit)]
    errors: list[FieldError] = []
    for name, item in items.items():
        errors.extend(check_key(name, path))
        errors.extend(check_value(item, f"{path}[{shorten(name, longest_key)}]"))
    return errors


def shorten(text: str, limit: int) -> str:
    """Cut a long key in the middle so that a path stays readable."""
    limit = max(limit, _SHORTEST_KEY)
    if len(text) <= limit:
        return text
    rest = limit - 3
    return text[: (rest + 1) // 2] + "..." + text[len(text) - rest // 2 :]
