"""Which objects may exist: a file per kind, pure functions from trees to field errors.

The rules work on plain JSON trees in the storage version, decoded and defaulted. Only the room itself knows which
rules belong to which kind; callers ask here. A kind without rules of its own still gets those of metadata.

Upstream counterpart: pkg/apis/*/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api.fields import FieldError
from kubedra.api.kinds import Kind
from kubedra.validation.context import Context
from kubedra.validation.metadata import name_rule, validate_metadata, validate_metadata_update
from kubedra.validation.table import rules_for

__all__ = ["Context", "validate_create", "validate_update", "warnings"]

Tree = dict[str, Any]


def validate_create(kind: Kind[Any], tree: Tree, context: Context) -> list[FieldError]:
    """List all faults of a new object."""
    rule = name_rule(kind.group, kind.kind)
    errors = validate_metadata(tree.get("metadata") or {}, namespaced=kind.namespaced, rule=rule)
    rules = rules_for(kind.group, kind.kind)
    if rules is not None and rules.create is not None:
        errors.extend(rules.create(tree, context))
    return errors


def validate_update(kind: Kind[Any], new: Tree, old: Tree, context: Context, subresource: str = "") -> list[FieldError]:
    """List all faults of a change; `subresource` says which part of the object the request may change."""
    errors = validate_metadata_update(new.get("metadata") or {}, old.get("metadata") or {})
    rules = rules_for(kind.group, kind.kind)
    if rules is None:
        return errors
    check = rules.subresources.get(subresource) if subresource else rules.update
    if check is not None:
        errors.extend(check(new, old, context))
    return errors


def warnings(kind: Kind[Any], tree: Tree, old: Tree | None) -> list[str]:
    """List what a client should be warned of although the object is valid."""
    rules = rules_for(kind.group, kind.kind)
    return rules.warnings(tree, old) if rules is not None and rules.warnings is not None else []
