"""Merges an applied object into a live one: maps by field, lists by item, atoms whole.

Items keep the applied order among themselves; items that only the live list has keep their place as well as they can.

Upstream counterpart: structured-merge-diff ``typed/merge.go``.
"""

from __future__ import annotations

from typing import Any

from kubedra.server.patch.apply.elements import item_element
from kubedra.server.patch.apply.types import LIST, STRUCT, List, Struct, Type


def merge(type_: Type, live: Any, applied: Any) -> Any:
    """The live value with the applied one laid over it; both are there."""
    if type_.shape is STRUCT:
        if (not live and not applied) or not isinstance(applied, dict | None):
            return applied
        assert isinstance(type_, Struct)
        out = dict(live) if isinstance(live, dict) else {}
        for name, value in (applied or {}).items():
            child = type_.fields.get(name, type_.element)
            out[name] = value if child is None or name not in out else merge(child, out[name], value)
        return out
    if type_.shape is LIST:
        if (not live and not applied) or not isinstance(applied, list | None):
            return applied
        assert isinstance(type_, List)
        return _merge_lists(type_, live if isinstance(live, list) else [], applied or [])
    return applied


def _merge_lists(type_: List, live: list[Any], applied: list[Any]) -> list[Any]:
    lefts = [item_element(type_, item) for item in live]
    rights = [item_element(type_, item) for item in applied]
    left_of: dict[str, Any] = {}
    for element, item in zip(lefts, live, strict=True):
        # Duplicates of a live list are not merged with anything.
        left_of[element] = None if element in left_of else item
    right_of = dict(zip(rights, applied, strict=True))
    shared = [element for element in rights if element in left_of]
    out: list[Any] = []
    taken: set[str] = set()
    next_shared = 0
    i = j = 0

    def take(element: str) -> None:
        nonlocal next_shared
        taken.add(element)
        before = left_of.get(element)
        out.append(right_of[element] if before is None else merge(type_.item, before, right_of[element]))
        if next_shared < len(shared) and shared[next_shared] == element:
            next_shared += 1

    while i < len(lefts) or j < len(rights):
        if i < len(lefts) and j < len(rights):
            if lefts[i] == rights[j]:
                take(lefts[i])
                i += 1
                j += 1
                continue
            if lefts[i] in right_of and next_shared < len(shared) and shared[next_shared] != lefts[i]:
                i += 1  # shared, but not the one whose turn it is
                continue
        if i < len(lefts):
            if lefts[i] not in right_of:
                out.append(live[i])
                i += 1
                continue
            if lefts[i] in taken:
                i += 1
        if j < len(rights):
            take(rights[j])
            j += 1
    return out
