"""Who owns which fields after a change: the rules of server-side apply over plain trees.

Every version of an object is looked at in its own schema: an owner's set is compared in the version in which it was
written. ``Versions`` says which types and conversions there are; a version that is no longer served costs its owners
their entries, as upstream has it.

Upstream counterpart: structured-merge-diff ``merge/update.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kubedra.server.patch.apply.comparing import Comparison, compare
from kubedra.server.patch.apply.entries import Entry, Managed, ManagerId
from kubedra.server.patch.apply.fieldset import (
    FieldSet,
    difference,
    intersection,
    of_path,
    paths,
    union,
    without_trees,
)
from kubedra.server.patch.apply.merging import merge
from kubedra.server.patch.apply.types import Struct, Type
from kubedra.server.patch.apply.walking import ensure_named, field_set, remove

Tree = dict[str, Any]
Path = tuple[str, ...]


class Versions(NamedTuple):
    """The versions of a kind: full type, ownership type, conversion; None stands for a version that isn't served."""

    full: Callable[[str], Type | None]
    owned: Callable[[str], Struct | None]
    convert: Callable[[Tree, str], Tree | None]


class Conflicts(Exception):
    """Fields that somebody else owns with another value."""

    def __init__(self, conflicts: list[tuple[ManagerId, Path]]) -> None:
        super().__init__("conflicts")
        self.conflicts = conflicts

    def fields(self) -> FieldSet:
        """All fields in conflict as one set."""
        out: FieldSet = {}
        for _, path in self.conflicts:
            out = union(out, of_path(path))
        return out


def hand_over(
    comparison: Comparison,
    old: Tree,
    new: Tree,
    version: str,
    managed: Managed,
    versions: Versions,
    workflow: ManagerId,
    force: bool,
) -> Managed:
    """Take what changed away from everybody but ``workflow``, who made the change, and what was removed from all.

    Raises :class:`Conflicts` unless forced.
    """
    by_version: dict[str, Comparison | None] = {version: comparison}
    out: Managed = {}
    conflicts: list[tuple[ManagerId, Path]] = []
    for key, entry in managed.items():
        if entry.api_version not in by_version:
            by_version[entry.api_version] = _compare_at(entry.api_version, old, new, versions)
        seen = by_version[entry.api_version]
        if seen is None:
            continue
        if not seen:
            out[key] = entry
            continue
        if key == workflow:
            # An applier's set was just made: what the change removed is not in it.
            own = entry.fields if key.operation == "Apply" else difference(entry.fields, seen.removed)
            out[key] = entry.owning(own)
            continue
        changed = seen.changed
        if not force:
            conflicts += [(key, path) for path in paths(intersection(entry.fields, changed))]
        left = difference(difference(entry.fields, changed), seen.removed)
        if left:
            out[key] = entry.owning(left)
    if conflicts:
        raise Conflicts(conflicts)
    return out


def _compare_at(version: str, old: Tree, new: Tree, versions: Versions) -> Comparison | None:
    type_ = versions.owned(version)
    before, after = versions.convert(old, version), versions.convert(new, version)
    if type_ is None or before is None or after is None:
        return None
    return compare(type_, before, after)


class Applied(NamedTuple):
    """What an apply comes to: the new object (None when nothing changed) and the owners."""

    tree: Tree | None
    managed: Managed


def apply_tree(
    live: Tree,
    config: Tree,
    version: str,
    managed: Managed,
    manager: ManagerId,
    versions: Versions,
    reset: FieldSet,
    force: bool,
) -> Applied:
    """Lay ``config`` over ``live``, drop what the manager no longer states, settle the owners.

    Raises :class:`Conflicts`.
    """
    type_, owned = versions.full(version), versions.owned(version)
    assert type_ is not None and owned is not None
    new = merge(type_, live, config)
    last = managed.get(manager)
    stated = without_trees(field_set(type_, config), reset)
    managed = {**managed, manager: Entry(stated, version, last.time if last else "")}
    if last is not None and last.fields:
        new = _prune(new, managed, last, version, versions)
    managed = hand_over(compare(owned, live, new), live, new, version, managed, versions, manager, force)
    return Applied(None if new == live else new, managed)


def _prune(merged: Tree, managed: Managed, last: Entry, version: str, versions: Versions) -> Tree:
    """Remove what the applier stated last time and nobody states now."""
    type_ = versions.full(last.api_version)
    at_last = versions.convert(merged, last.api_version)
    if type_ is None or at_last is None:
        return merged
    pruned: Tree = remove(type_, at_last, ensure_named(last.fields, type_)) or {}
    pruned_version = last.api_version
    owned: dict[str, FieldSet] = {}
    for entry in managed.values():
        owned[entry.api_version] = union(owned.get(entry.api_version, {}), entry.fields)
    # At the version of the last apply first: later conversions may need what it gives back.
    for at in sorted(owned, key=lambda v: (v != last.api_version, v)):
        type_ = versions.full(at)
        whole, part = versions.convert(merged, at), versions.convert(pruned, at)
        if type_ is None or whole is None or part is None:
            continue
        keep = union(ensure_named(field_set(type_, part), type_), ensure_named(owned[at], type_))
        gone = difference(ensure_named(field_set(type_, whole), type_), keep)
        pruned = remove(type_, whole, gone) or {}
        pruned_version = at
    # Only what this applier owned may go; fields without an owner come back.
    type_ = versions.full(last.api_version)
    part = versions.convert(pruned, last.api_version) if pruned_version != last.api_version else pruned
    if type_ is None or part is None:
        return merged
    gone = difference(ensure_named(field_set(type_, at_last), type_), ensure_named(field_set(type_, part), type_))
    gone = intersection(gone, ensure_named(last.fields, type_))
    out = remove(type_, at_last, gone) or {}
    return versions.convert(out, version) or {} if version != last.api_version else out
