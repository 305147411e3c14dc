"""A small language for tables of validation cases: objects to start from and faults in one line."""

from __future__ import annotations

import copy
from typing import Any

from kubedra import validation
from kubedra.api import kinds
from kubedra.api.fields import FieldError
from kubedra.base.features import FeatureGates

Tree = dict[str, Any]

DEFAULT = validation.Context(features=FeatureGates("1.36"))


def context(version: str = "1.36", **gates: bool) -> validation.Context:
    """A context of a version with some gates changed."""
    return validation.Context(features=FeatureGates(version, gates))


def named(kind: str, **members: Any) -> Tree:
    """An object that is valid as far as its metadata goes."""
    metadata: Tree = {"name": "x", "namespace": "default", "resourceVersion": "1"}
    known = next(k for k in kinds.ALL if k.kind == kind)
    if not known.namespaced:
        del metadata["namespace"]
    return {"metadata": metadata, **members}


def short(errors: list[FieldError]) -> set[str]:
    """Faults as `Reason field`, the part that upstream promises."""
    return {f"{error.type.removeprefix('FieldValue')} {error.field}" for error in errors}


def create(kind: kinds.Kind[Any], tree: Tree, where: validation.Context = DEFAULT) -> set[str]:
    """The faults of a new object."""
    before = copy.deepcopy(tree)
    errors = validation.validate_create(kind, tree, where)
    assert tree == before, "validation must not change what it looks at"
    return short(errors)


def update(
    kind: kinds.Kind[Any], new: Tree, old: Tree, subresource: str = "", where: validation.Context = DEFAULT
) -> set[str]:
    """The faults of a change."""
    return short(validation.validate_update(kind, new, old, where, subresource))
