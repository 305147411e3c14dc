"""What changed between two objects, as three sets of fields: added, modified, removed.

This runs on every write of the server. It walks only where the two trees differ: parts that are the same object, or
equal, are passed over in one C-level comparison.

Upstream counterpart: structured-merge-diff ``typed/compare.go``.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kubedra.server.patch.apply.elements import by_element
from kubedra.server.patch.apply.fieldset import MEMBER, SELF, FieldSet, union, without_trees
from kubedra.server.patch.apply.types import LIST, STRUCT, List, Struct, Type


class Comparison(NamedTuple):
    """The fields that differ between an old and a new object."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def changed(self) -> FieldSet:
        """Fields that have a new value."""
        return union(self.modified, self.added)

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)

    def without(self, trees: FieldSet) -> Comparison:
        """The comparison without these fields and what is below them."""
        return Comparison(*(without_trees(part, trees) for part in self)) if trees else self


_SAME: Final = Comparison({}, {}, {})
_ABSENT: Final = object()
_Nodes = tuple["FieldSet | None", "FieldSet | None", "FieldSet | None"]
_MODIFIED: Final[_Nodes] = (None, MEMBER, None)
_NOTHING: Final[_Nodes] = (None, None, None)


def compare(root: Struct, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """The fields that differ; ``root`` is an ownership type of the objects' kind."""
    added, modified, removed = _compare_maps(root, old, new)
    if added is modified is removed is None:
        return _SAME
    return Comparison(added or {}, modified or {}, removed or {})


def _compare(type_: Type, old: Any, new: Any) -> _Nodes:
    """Both values are there and not equal."""
    if type_.shape is STRUCT:
        if not old and not new:
            return _MODIFIED  # null against an empty map
        if (old is None or isinstance(old, dict)) and (new is None or isinstance(new, dict)):
            assert isinstance(type_, Struct)
            return _compare_maps(type_, old or {}, new or {})
    elif type_.shape is LIST:
        if not old and not new:
            return _MODIFIED
        if (old is None or isinstance(old, list)) and (new is None or isinstance(new, list)):
            assert isinstance(type_, List)
            return _compare_lists(type_, old or [], new or [])
    return _MODIFIED


def _compare_maps(type_: Struct, old: dict[str, Any], new: dict[str, Any]) -> _Nodes:
    added: FieldSet | None = None
    modified: FieldSet | None = None
    removed: FieldSet | None = None
    fields, element, left_out, by_value = type_.fields, type_.element, type_.left_out, type_.by_value
    for name, value in new.items():
        before = old.get(name, _ABSENT)
        if before is value or (left_out and name in left_out):
            continue
        child = fields.get(name, element)
        if not value and _is_left_out(child, value):
            # Upstream's objects don't have empty lists and maps: this one is as good as gone.
            if before is not _ABSENT and before:
                if removed is None:
                    removed = {}
                removed["f:" + name] = MEMBER if child is None else subtree(child, before)
            continue
        if before is _ABSENT:
            if name not in by_value:
                if added is None:
                    added = {}
                added["f:" + name] = MEMBER if child is None else subtree(child, value)
                continue
            before = [] if isinstance(value, list) else {}
        if before == value and (value.__class__ is before.__class__):
            continue
        a, m, r = _MODIFIED if child is None else _compare(child, before, value)
        if a is not None:
            if added is None:
                added = {}
            added["f:" + name] = a
        if m is not None:
            if modified is None:
                modified = {}
            modified["f:" + name] = m
        if r is not None:
            if removed is None:
                removed = {}
            removed["f:" + name] = r
    if not old.keys() <= new.keys():
        for name, before in old.items():
            if name in new or name in left_out:
                continue
            child = fields.get(name, element)
            node: FieldSet | None = MEMBER if child is None else subtree(child, before)
            if name in by_value and before is not None:
                # The field itself stays, only what was in it goes.
                node = {k: v for k, v in node.items() if k != SELF} if node else None
            if node is not None:
                if removed is None:
                    removed = {}
                removed["f:" + name] = node
    if added is modified is removed is None:
        return _NOTHING
    return added, modified, removed


def _is_left_out(type_: Type | None, value: Any) -> bool:
    """Whether an empty value is one that upstream's encoder leaves out: a list, or a map that is no struct."""
    if value.__class__ is list:
        return True
    return value.__class__ is dict and isinstance(type_, Struct) and not type_.definition


def subtree(type_: Type, value: Any) -> FieldSet:
    """All paths of a value that is new or gone, with the value's own."""
    if not value:
        return MEMBER
    if type_.shape is STRUCT:
        if not isinstance(value, dict):
            return MEMBER
        assert isinstance(type_, Struct)
        out: FieldSet = {SELF: MEMBER}
        fields, element = type_.fields, type_.element
        for name, item in value.items():
            if name in type_.left_out:
                continue
            child = fields.get(name, element)
            if item or not _is_left_out(child, item):
                out["f:" + name] = MEMBER if child is None else subtree(child, item)
        for name in type_.by_value:
            out.setdefault("f:" + name, MEMBER)
        return out
    if type_.shape is LIST:
        if not isinstance(value, list):
            return MEMBER
        assert isinstance(type_, List)
        out = {SELF: MEMBER}
        for path_element, items in by_element(type_, value).items():
            out[path_element] = subtree(type_.item, items[0]) if len(items) == 1 else MEMBER
        return out
    return MEMBER


def _compare_lists(type_: List, old: list[Any], new: list[Any]) -> _Nodes:
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    lefts, rights = by_element(type_, old), by_element(type_, new)
    for path_element in lefts | rights:
        left, right = lefts.get(path_element, []), rights.get(path_element, [])
        a: FieldSet | None = None
        m: FieldSet | None = None
        r: FieldSet | None = None
        if len(left) < 2 and len(right) < 2:
            if not left:
                a = subtree(type_.item, right[0])
            elif not right:
                r = subtree(type_.item, left[0])
            elif left[0] != right[0]:
                a, m, r = _compare(type_.item, left[0], right[0])
        elif len(left) >= 2 and len(right) >= 2:
            m = MEMBER if left != right else None
        elif len(left) >= 2:
            r = MEMBER
            a = subtree(type_.item, right[0]) if right else None
        else:
            a = MEMBER
            r = subtree(type_.item, left[0]) if left else None
        if a is not None:
            added[path_element] = a
        if m is not None:
            modified[path_element] = m
        if r is not None:
            removed[path_element] = r
    return added or None, modified or None, removed or None
