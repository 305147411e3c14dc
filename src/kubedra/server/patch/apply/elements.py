"""Path elements of list items: which item of one list is which item of another."""

from __future__ import annotations

from typing import Any

from kubedra.server.patch.apply.fieldset import key_element, value_element
from kubedra.server.patch.apply.types import List


class BadItem(ValueError):
    """A list item that can't be told from the others; the text is upstream's."""


def item_element(type_: List, item: Any) -> str:
    """The path element of an item. Raises :class:`BadItem`."""
    if not type_.keys:
        if isinstance(item, str):
            return value_element(item)
        if isinstance(item, dict):
            raise BadItem("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise BadItem("not supported: associative list with lists as elements")
        if item is None:
            raise BadItem("associative list without keys has an element that's an explicit null")
        return value_element(item)
    if item is None:
        raise BadItem("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise BadItem("associative list with keys may not have non-map elements")
    names = type_.keys
    if len(names) == 1:
        name = names[0]
        value = item.get(name, type_.defaults.get(name))
        if isinstance(value, str):
            return key_element(names, value)
        if value is not None:
            return _key(names, [value])
    present = [name for name in names if name in item or name in type_.defaults]
    if not present:
        listed = " ".join(f'"{name}"' for name in type_.declared_keys)
        raise BadItem(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return _key(tuple(present), [item[name] if name in item else type_.defaults[name] for name in present])


def _key(names: tuple[str, ...], values: list[Any]) -> str:
    try:
        return key_element(names, *values)
    except TypeError:  # an unhashable key value, in an object that validation will refuse
        return key_element(names, *map(repr, values))


def by_element(type_: List, items: list[Any]) -> dict[str, list[Any]]:
    """The items under their path elements, in order of first appearance; items without one are left out."""
    out: dict[str, list[Any]] = {}
    for item in items:
        try:
            element = item_element(type_, item)
        except BadItem:
            continue
        out.setdefault(element, []).append(item)
    return out
