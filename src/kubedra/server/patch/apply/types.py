"""What apply must know of a type: where it may be taken apart, and how list items are told from each other.

Compiled lazily from the schema table and kept for the life of the process. ``Ownership`` types are the ones that
comparisons walk: they leave out the fields that nobody owns (``metadata.name``, ``managedFields``, …) and those that
the resource's strategy resets anyway, so that neither costs anything on a write.

Upstream counterpart: kube-openapi ``pkg/schemaconv`` and structured-merge-diff ``schema``.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

from kubedra.api import schema
from kubedra.server.patch.apply.values import VALUE_FIELDS, VALUE_ROOTS

# Shapes; compared by identity on the hot path.
SCALAR, ATOM, STRUCT, LIST = 0, 1, 2, 3

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS = {
    "string": "string",
    "integer": "numeric",
    "number": "numeric",
    "boolean": "boolean",
    "quantity": "untyped",
    "intorstring": "untyped",
    "time": "untyped",
    "microtime": "untyped",
}
# Nobody owns these.
_STRIPPED_META = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)


class Type:
    """A type; ``shape`` says which of the subclasses."""

    shape = ATOM
    # What a validation walk does with an atom: walk it as this type (an atomic list of structs is still checked).
    inner: Type | None = None


class Scalar(Type):
    """A string, number, boolean, or any of them (quantity, int-or-string, time)."""

    shape = SCALAR

    def __init__(self, kind: str) -> None:
        self.kind = kind


class Atom(Type):
    """A value that is owned as a whole; ``inner`` is its real type where there is one to check against."""

    def __init__(self, inner: Type | None = None) -> None:
        self.inner = inner


class Struct(Type):
    """A struct with declared fields, or a map whose values all have the type ``element``."""

    shape = STRUCT

    def __init__(self, definition: str = "", element: Type | None = None, left_out: frozenset[str] = frozenset()):
        self.definition = definition
        self.element = element
        self.left_out = left_out
        self.overrides: dict[str, Type] = {}

    @cached_property
    def fields(self) -> dict[str, Type]:
        """The declared fields by name."""
        if not self.definition:
            return {}
        definition = schema.definition(self.definition)
        out = {name: of_field(field) for name, field in definition.fields.items()}
        out.update(self.overrides)
        return out

    @cached_property
    def by_value(self) -> tuple[str, ...]:
        """Fields that upstream holds by value: there is no object without them, an absent one counts as empty."""
        if not self.definition:
            return ()
        short = short_name(self.definition)
        names = VALUE_FIELDS.get(short, ())
        definition = schema.definition(self.definition)
        if definition.gvk:
            names += tuple(name for name in VALUE_ROOTS.get(short, ("metadata", "spec", "status")) if name not in names)
        return tuple(name for name in names if name in definition.fields and name not in self.left_out)


class List(Type):
    """A list whose items are told apart: by key fields, or (no keys) by their value."""

    shape = LIST

    def __init__(self, item: Type, keys: tuple[str, ...], defaults: dict[str, Any]) -> None:
        self.item = item
        self.keys = tuple(sorted(keys))
        self.declared_keys = keys
        self.defaults = defaults


class AtomicList(Type):
    """What an atomic list holds, for validation alone."""

    def __init__(self, item: Type) -> None:
        self.item = item


ANYTHING = Atom()
# A value of a kind that the table doesn't know: maps are taken apart, everything else is a leaf.
DEDUCED = Struct()
DEDUCED.element = DEDUCED


def short_name(definition: str) -> str:
    """``apps.DeploymentSpec`` for ``io.k8s.api.apps.v1.DeploymentSpec``: versions of a group share their facts."""
    parts = definition.split(".")
    return f"{parts[-3]}.{parts[-1]}"


@cache
def of_definition(name: str) -> Type:
    """The type of a definition of the schema table."""
    definition = schema.definition(name)
    struct = Struct(name)
    return Atom(struct) if definition.map_type == "atomic" else struct


def of_field(field: schema.Field) -> Type:
    """The type of a field, an item or a map's value."""
    scalar = _SCALARS.get(field.type)
    if scalar is not None:
        return _scalar(scalar)
    if field.ref:
        struct = of_definition(field.ref)
        return Atom(struct) if field.map_type == "atomic" and struct.shape is STRUCT else struct
    if field.values is not None:
        mapping = Struct(element=of_field(field.values))
        return Atom(mapping) if field.map_type == "atomic" else mapping
    if field.items is not None:
        return _list(field)
    return ANYTHING


@cache
def _scalar(kind: str) -> Scalar:
    return Scalar(kind)


def _list(field: schema.Field) -> Type:
    assert field.items is not None
    item = of_field(field.items)
    keys = field.list_map_keys
    granular = field.list_type in ("map", "set")
    if not field.list_type and field.patch_strategy in ("merge", "merge,retainKeys"):
        granular = True
        keys = (field.patch_merge_key,) if field.patch_merge_key else ()
    if not granular or (keys and not field.items.ref):
        return Atom(AtomicList(item))
    defaults: dict[str, Any] = {}
    if keys:
        struct = schema.definition(field.items.ref)
        for key in keys:
            if key == "protocol":
                defaults[key] = "TCP"
            elif key in struct.required and key in struct.fields:
                defaults[key] = 0 if struct.fields[key].type == "integer" else ""
    return List(item, keys, defaults)


@cache
def ownership(definition: str, reset: tuple[tuple[str, ...], ...]) -> Struct:
    """The root type for comparisons: without apiVersion, kind, what nobody owns, and the ``reset`` paths.

    ``reset`` has paths of one part (``("status",)``) or two (``("metadata", "labels")``).
    """
    tops = {path[0] for path in reset if len(path) == 1}
    root = Struct(definition, left_out=frozenset({"apiVersion", "kind"} | tops))
    nested: dict[str, set[str]] = {"metadata": set(_STRIPPED_META)}
    for path in reset:
        if len(path) == 2:
            nested.setdefault(path[0], set()).add(path[1])
    fields = schema.definition(definition).fields if definition else {}
    for name, names in nested.items():
        ref = fields[name].ref if name in fields else (_META if name == "metadata" else "")
        if ref:
            root.overrides[name] = Struct(ref, left_out=frozenset(names))
    if not definition:
        root.element = DEDUCED
        root.__dict__["fields"] = dict(root.overrides)
    return root
