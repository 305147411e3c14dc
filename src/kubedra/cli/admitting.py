"""What an API server would refuse of the objects in a file: unknown fields, and claims that break the rules.

Whoever tests claims before there is a cluster should not hear "it fits" of a claim that no cluster would take.

Upstream has no counterpart.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from kubedra.api import kinds
from kubedra.api.conversion import convert, storage_api_version
from kubedra.api.defaults import apply_defaults
from kubedra.base.features import FeatureGates
from kubedra.server.decoding.structure import Findings, TypeMismatch, plan, walk
from kubedra.validation import Context, validate_create

Key = tuple[str, str, str]
_JUDGED = frozenset(("ResourceClaim", "ResourceClaimTemplate", "DeviceClass"))
_MOST = 5


class Admission:
    """Judges the objects of files one by one and remembers what is wrong with which."""

    def __init__(self, gates: FeatureGates, namespace_labels: Callable[[str], Mapping[str, str] | None]) -> None:
        self._context = Context(gates, namespace_labels)
        self._faults: dict[Key, str] = {}

    def judge(self, tree: dict[str, Any], namespace: str) -> None:
        """Take an object of a file in."""
        metadata = tree.get("metadata")
        given = metadata if isinstance(metadata, dict) else {}
        key = (str(tree.get("kind")), str(given.get("namespace") or namespace), str(given.get("name") or ""))
        found = faults(tree, self._context)
        if found:
            more = f" (and {len(found) - _MOST} more)" if len(found) > _MOST else ""
            self._faults[key] = f"the API server would refuse {key[0]} {key[2]}: {'; '.join(found[:_MOST])}{more}"
        else:
            self._faults.pop(key, None)

    def fault(self, kind: str, namespace: str, name: str) -> str:
        """What is wrong with an object, or ""."""
        return self._faults.get((kind, namespace, name), "")


def faults(tree: dict[str, Any], context: Context) -> list[str]:
    """Everything an API server would refuse an object for, as far as that can be told from the object alone."""
    version, name = str(tree.get("apiVersion") or ""), str(tree.get("kind") or "")
    kind = kinds.by_api_version(version, name)
    if kind is None or (name not in _JUDGED and name != "Pod"):
        return []
    tree = copy.deepcopy(tree)
    findings = Findings()
    try:
        walk(tree, plan(kind.definition), findings)
    except TypeMismatch as error:
        return [str(error)]
    found = list(findings.strict)
    stored = kinds.by_api_version(storage_api_version(version, name), name)
    if name in _JUDGED and stored is not None and not found:
        tree = convert(tree, version, stored.api_version)
        metadata = tree.setdefault("metadata", {})
        if stored.namespaced:
            metadata.setdefault("namespace", "default")
        apply_defaults(stored.group, stored.version, name, tree, now="")
        found += [str(error) for error in validate_create(stored, tree, context)]
    return found
