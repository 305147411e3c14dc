"""The field manager of an endpoint: tracks on each write who set which field, and applies.

One per kind, version and subresource, kept for the life of the process. What it does beyond the rules of ownership:
objects without managed fields stay without until somebody applies (then all that is there belongs to
``before-first-apply``); a client may rewrite ``managedFields``, or clear it with ``[{}]``, and rubbish in it is
ignored; ``kubectl`` may take over what its own last-applied annotation states.

Upstream counterpart: apimachinery ``pkg/util/managedfields`` (the chain of managers in ``internal``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol

import msgspec

from kubedra.api import kinds
from kubedra.api.conversion import convert
from kubedra.api.errors import ApiError
from kubedra.api.kinds import Kind
from kubedra.server.patch.apply.comparing import compare
from kubedra.server.patch.apply.entries import Entry, Managed, ManagerId, applier, cap_updaters, decode, encode, updater
from kubedra.server.patch.apply.fieldset import BadFieldSet, FieldSet, difference, path_text, union
from kubedra.server.patch.apply.resets import reset_fields, reset_paths
from kubedra.server.patch.apply.types import DEDUCED, Struct, Type, of_definition, ownership
from kubedra.server.patch.apply.updating import Applied, Conflicts, Versions, apply_tree, hand_over
from kubedra.server.patch.apply.walking import faults, field_set, without_nulls

Tree = dict[str, Any]
# Turns an object into another apiVersion of its group; None when that version isn't served.
Convert = Callable[[Tree, str], "Tree | None"]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_ANNOTATIONS: Final = 256 * 1024
_KUBECTL: Final = "kubectl"
_STRIPPED: Final[FieldSet] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        "f:name": {},
        "f:namespace": {},
        "f:creationTimestamp": {},
        "f:selfLink": {},
        "f:uid": {},
        "f:clusterName": {},
        "f:generation": {},
        "f:managedFields": {},
        "f:resourceVersion": {},
    },
}


def other_version(tree: Tree, api_version: str) -> Tree | None:
    """The object in another version of its kind; None when that version isn't served."""
    if tree.get("apiVersion") == api_version:
        return tree
    if kinds.by_api_version(api_version, str(tree.get("kind") or "")) is None:
        return None
    return convert({**tree, "apiVersion": api_version}, str(tree.get("apiVersion") or ""), api_version)


class Owned(Protocol):
    """What a field manager must know of a kind."""

    @property
    def definition(self) -> str: ...

    @property
    def api_version(self) -> str: ...

    @property
    def kind(self) -> str: ...


class FieldManager:
    """Ownership of the fields of one kind in one version through one endpoint."""

    def __init__(self, kind: Owned, subresource: str = "", converter: Convert = other_version) -> None:
        self._kind = kind
        self._subresource = subresource
        reset = reset_paths(kind.definition, subresource)
        self._reset = reset_fields(reset)
        self._owned: Struct = ownership(kind.definition, reset)
        self._type: Type = of_definition(kind.definition) if kind.definition else DEDUCED

        def definition(api_version: str) -> str | None:
            other = kind if api_version == kind.api_version else kinds.by_api_version(api_version, kind.kind)
            return None if other is None else other.definition

        def full(api_version: str) -> Type | None:
            name = definition(api_version)
            return None if name is None else of_definition(name) if name else DEDUCED

        def owned(api_version: str) -> Struct | None:
            name = definition(api_version)
            return None if name is None else ownership(name, reset)

        def converted(tree: Tree, api_version: str) -> Tree | None:
            return tree if tree.get("apiVersion") == api_version else converter(tree, api_version)

        self._versions = Versions(full, owned, converted)

    def update(self, live: Tree | None, new: Tree, manager: str, now: str) -> Tree:
        """The new object with its managed fields brought up to date after a create, update or patch.

        ``live`` is None for a create. Neither input is changed; where nothing changed hands, the live object's own
        list is passed on.
        """
        metadata = new.get("metadata") or {}
        before = ((live or {}).get("metadata") or {}).get("managedFields") or []
        managed, entries = self._current(before, metadata)
        if managed or live is None or not (live.get("metadata") or {}).get("uid"):
            managed, entries = self._track(live or {}, new, managed, entries, manager, now)
        if metadata.get("managedFields") is entries:
            return new
        return _with_entries(new, entries)

    def _current(self, before: list[Any], metadata: Tree) -> tuple[Managed, list[Any]]:
        """The entries to go on from: the client's, if it sent any that can be read, else the live ones."""
        sent = metadata.get("managedFields")
        if sent is None or sent is before or self._subresource or sent == before:
            return decode(before, trusted=True), before
        if sent == [] or sent == [{}]:
            return {}, []
        try:
            managed = decode(sent, trusted=False)
        except (BadFieldSet, TypeError, KeyError):
            return decode(before, trusted=True), before
        return managed, encode(managed)

    def _track(
        self, live: Tree, new: Tree, managed: Managed, entries: list[Any], manager: str, now: str
    ) -> tuple[Managed, list[Any]]:
        comparison = compare(self._owned, live, new)
        if not comparison:
            return managed, entries
        version = self._kind.api_version
        key = updater(manager, version, self._subresource)
        managed = hand_over(comparison, live, new, version, managed, self._versions, key, force=True)
        changed = comparison.changed
        previous = managed.get(key)
        if changed and previous is not None:
            fields = union(previous.fields, changed)
            managed[key] = Entry(fields, version, now, None, previous.ordered and fields is previous.fields)
        elif changed:
            managed[key] = Entry(changed, version, now)
        elif previous is not None and not previous.fields:
            del managed[key]
        return managed, encode(cap_updaters(managed))

    def apply(self, live: Tree | None, config: Tree, manager: str, now: str, *, force: bool = False) -> Tree:
        """The object that applying ``config`` gives, with its managed fields.

        ``live`` is None when the object does not exist. Raises ``ApiError``: 400 for another kind or version or
        given managed fields, 409 with a cause per field in conflict, 500 where the config does not fit the schema.
        """
        self._check(config)
        whole = live or {}
        entries = (whole.get("metadata") or {}).get("managedFields") or []
        base = _with_entries(whole, []) if live is not None else {}
        managed = decode(entries, trusted=True)
        version = self._kind.api_version
        if not managed and live is not None:
            there = compare(self._owned, {}, base).changed
            if there:
                managed[updater("before-first-apply", version, self._subresource)] = Entry(there, version, now)
        key = applier(manager, self._subresource)
        last = managed.get(key)
        applied = self._settle(base, config, managed, key, force)
        managed = dict(applied.managed)
        own = managed.get(key)
        if own is not None:
            fields = difference(own.fields, _STRIPPED)
            if not fields:
                del managed[key]
            elif applied.tree is not None:
                managed[key] = Entry(fields, version, now)
            elif last is not None and last.fields == fields and last.api_version == version:
                managed[key] = last
            else:
                managed[key] = Entry(fields, version, own.time)
        tree = base if applied.tree is None else without_nulls(self._type, applied.tree)
        tree = _with_entries(tree, encode(cap_updaters(managed)))
        return _refresh_last_applied(tree, config) if manager == _KUBECTL else tree

    def _check(self, config: Tree) -> None:
        api_version, kind = str(config.get("apiVersion") or ""), str(config.get("kind") or "")
        group, _, version = api_version.rpartition("/")
        if api_version != self._kind.api_version or kind != self._kind.kind:
            text = f"invalid object type: {group}/{version}, Kind={kind}"
            raise ApiError(400, "BadRequest", text)
        metadata = config.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        if metadata.get("managedFields") is not None:
            raise ApiError(400, "BadRequest", "metadata.managedFields must be nil")
        wrong = faults(self._type, config)
        if wrong:
            text = wrong[0] if len(wrong) == 1 else "\n".join(["errors:", *("  " + w for w in wrong)])
            where = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
            what = f"{where}; {group}/{version}, Kind={kind}"
            raise ApiError(500, "", f"failed to create typed patch object ({what}): {text}")

    def _settle(self, base: Tree, config: Tree, managed: Managed, key: ManagerId, force: bool) -> Applied:
        version = self._kind.api_version

        def run(forced: bool) -> Applied:
            return apply_tree(base, config, version, managed, key, self._versions, self._reset, forced)

        try:
            return run(force)
        except Conflicts as err:
            conflicts = err
        if key.manager == _KUBECTL:
            allowed = self._last_applied(base)
            if allowed is not None:
                if not difference(conflicts.fields(), allowed):
                    return run(True)
                kept = [(who, path) for who, path in conflicts.conflicts if not _in(path, allowed)]
                conflicts = Conflicts(kept)
        raise _conflict_error(conflicts)

    def _last_applied(self, live: Tree) -> FieldSet | None:
        """Fields that client-side apply set and nobody changed since; None when there was no such apply."""
        text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
        if not text:
            return None
        try:
            last = json.loads(text)
        except ValueError:
            return None
        if not isinstance(last, dict) or last.get("apiVersion") != self._kind.api_version or faults(self._type, last):
            return None
        comparison = compare(self._owned, last, live)
        fields = difference(difference(field_set(self._type, last), comparison.modified), comparison.added)
        return difference(fields, comparison.removed)


@cache
def field_manager(kind: Kind[Any], subresource: str = "", converter: Convert = other_version) -> FieldManager:
    """The field manager of an endpoint; the same one for the same arguments."""
    return FieldManager(kind, subresource, converter)


def without_time_changes(old: Tree, new: Tree) -> Tree:
    """The new object; if it differs from the old one in nothing but times of managed fields, with the old list.

    The caller then sees that nothing changed and need not write.
    """
    before = (old.get("metadata") or {}).get("managedFields") or []
    after = (new.get("metadata") or {}).get("managedFields") or []
    if after is before or len(after) != len(before):
        return new
    for left, right in zip(before, after, strict=True):
        if left is not right and {**left, "time": ""} != {**right, "time": ""}:
            return new
    return _with_entries(new, before)


def _with_entries(tree: Tree, entries: list[Any]) -> Tree:
    metadata = {k: v for k, v in (tree.get("metadata") or {}).items() if k != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**tree, "metadata": metadata}


def _in(path: tuple[str, ...], fields: FieldSet) -> bool:
    node = fields
    for element in path:
        found = node.get(element)
        if found is None:
            return False
        node = found
    return not node or "." in node


def _conflict_error(conflicts: Conflicts) -> ApiError:
    items = sorted(conflicts.conflicts, key=lambda item: item[0])
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who.text()}", "field": path_text(path)}
        for who, path in items
    ]
    if len(items) == 1:
        who, path = items[0]
        text = f"Apply failed with 1 conflict: conflict with {who.text()}: {path_text(path)}"
    else:
        lines: list[str] = []
        last: ManagerId | None = None
        for who, path in items:
            if who != last:
                lines.append(f"conflicts with {who.text()}:")
                last = who
            lines.append(f"- {path_text(path)}")
        text = f"Apply failed with {len(items)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", text, {"causes": causes})


def _refresh_last_applied(tree: Tree, config: Tree) -> Tree:
    """Keep kubectl's annotation true for those who go on with client-side apply."""
    metadata = tree["metadata"]
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return tree
    meta = dict(config.get("metadata") or {})
    if isinstance(meta.get("annotations"), dict):
        meta["annotations"] = {k: v for k, v in meta["annotations"].items() if k != LAST_APPLIED}
        if not meta["annotations"]:
            del meta["annotations"]
    text = msgspec.json.encode({**config, "metadata": meta}, order="sorted").decode() + "\n"
    annotations = {**annotations, LAST_APPLIED: text}
    if sum(len(k) + len(str(v)) for k, v in annotations.items()) > _MAX_ANNOTATIONS:
        del annotations[LAST_APPLIED]
    return {**tree, "metadata": {**metadata, "annotations": annotations}}
