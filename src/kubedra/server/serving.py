"""The served resources: for every kind of the schema table where its objects are stored and how versions convert.

A kind costs a row: everything here is derived from the table. Versions of one resource share one storage resource;
objects are stored in the storage version and converted when another one is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from kubedra.api import kinds
from kubedra.api.kinds import Kind
from kubedra.server.decoding.structure import Plan, plan
from kubedra.server.registry.conversion import convert
from kubedra.server.registry.strategies import strategy_for
from kubedra.server.registry.strategy import Strategy
from kubedra.server.store import Record

Tree = dict[str, Any]
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_LEVEL = {None: 2, "beta": 1, "alpha": 0}
encode = msgspec.json.Encoder().encode


def version_rank(version: str) -> tuple[int, int, int]:
    """Sorts versions by preference: GA before beta before alpha, then by number."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0)
    return (_LEVEL[match[2]], int(match[1]), int(match[3] or 0))


class Served:
    """A kind in one version, as the server serves it."""

    def __init__(self, kind: Kind[Any], storage_kind: Kind[Any], storage: str) -> None:
        self.kind = kind
        self.storage_kind = storage_kind
        self.storage = storage
        # Stored bytes always begin like this, so list items can lose it and other versions replace it.
        self.stored_prefix = encode({"apiVersion": storage_kind.api_version, "kind": storage_kind.kind})[:-1] + b","
        self.own_prefix = encode({"apiVersion": kind.api_version, "kind": kind.kind})[:-1] + b","
        self.list_kind = kind.kind + "List"
        self.stored_as_served = kind is storage_kind
        self._convertible = kind.group == "resource.k8s.io" or storage_kind.group != kind.group
        self.has_status = "status" in kind.subresources

    @cached_property
    def plan(self) -> Plan:
        """The walk plan of the kind."""
        return plan(self.kind.definition)

    @cached_property
    def strategy(self) -> Strategy:
        """What is particular to the kind."""
        return strategy_for(self.storage_kind)

    def to_storage(self, tree: Tree) -> Tree:
        """A tree of this version in the stored version; may change and return its argument."""
        if not self.stored_as_served:
            if self._convertible:
                tree = convert(tree, self.kind, self.storage_kind)
            tree["apiVersion"] = self.storage_kind.api_version
        return tree

    def from_storage(self, tree: Tree) -> Tree:
        """A stored tree in this version; may change and return its argument."""
        if not self.stored_as_served:
            if self._convertible:
                tree = convert(tree, self.storage_kind, self.kind)
            tree["apiVersion"] = self.kind.api_version
        return tree

    def bytes_of(self, record: Record) -> bytes:
        """The object of a record in this version, made once per version."""
        if self.stored_as_served:
            return record.value
        derived = record.derived
        if derived is None:
            derived = record.derived = {}
        made: bytes | None = derived.get(self.kind)
        if made is None:
            if self._convertible:
                made = encode_object(self.from_storage(record.tree()), self.kind)
            else:
                made = self.own_prefix + record.value[len(self.stored_prefix) :]
            derived[self.kind] = made
        return made

    def item_bytes(self, record: Record) -> bytes:
        """The same without apiVersion and kind, as items of lists are."""
        return b"{" + self.bytes_of(record)[len(self.own_prefix) :]

    def __repr__(self) -> str:
        return f"<Served {self.kind!r} stored as {self.storage}>"


def encode_object(tree: Tree, kind: Kind[Any]) -> bytes:
    """Bytes of an object, apiVersion and kind first."""
    ordered: Tree = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": tree.get("metadata") or {}}
    for name, value in tree.items():
        if name not in ordered:
            ordered[name] = value
    return encode(ordered)


# Kinds that are answered, not stored.
VIRTUAL = frozenset(
    {
        "Binding",
        "ComponentStatus",
        "SelfSubjectReview",
        "TokenReview",
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
    }
)
# One storage for two groups: upstream keeps both kinds of event in core/v1.
_ALIASES = {("events.k8s.io", "events"): ("", "events")}


class Catalogue:
    """All served resources by group, version and plural."""

    def __init__(self, enabled: Callable[[Kind[Any]], bool] = lambda kind: True) -> None:
        self.resources: dict[tuple[str, str, str], Served] = {}
        self.by_kind: dict[tuple[str, str, str], Served] = {}
        self.stored: dict[str, Served] = {}
        best: dict[tuple[str, str], Kind[Any]] = {}
        for kind in kinds.ALL:
            key = (kind.group, kind.plural)
            held = best.get(key)
            if held is None or version_rank(kind.version) > version_rank(held.version):
                best[key] = kind
        self.versions: dict[str, list[str]] = {}
        for kind in kinds.ALL:
            group, plural = _ALIASES.get((kind.group, kind.plural), (kind.group, kind.plural))
            storage_kind = best[(group, plural)]
            served = Served(kind, storage_kind, f"{plural}.{group}" if group else plural)
            if kind.kind not in VIRTUAL and served.stored_as_served:
                # What is stored may be a version that this server does not serve yet.
                self.stored[served.storage] = served
            if not enabled(kind):
                continue
            self.resources[(kind.group, kind.version, kind.plural)] = served
            self.by_kind[(kind.group, kind.version, kind.kind)] = served
            versions = self.versions.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        for versions in self.versions.values():
            versions.sort(key=version_rank, reverse=True)

    def find(self, group: str, version: str, plural: str) -> Served | None:
        """The resource served there, or None."""
        return self.resources.get((group, version, plural))
