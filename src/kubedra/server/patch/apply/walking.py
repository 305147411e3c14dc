"""Walks over one object by its type: check it, list its fields, take fields out of it.

Upstream counterpart: structured-merge-diff ``typed/validate.go``, ``tofieldset.go``, ``remove.go`` and
``fieldpath/set.go`` (EnsureNamedFieldsAreMembers).
"""

from __future__ import annotations

from typing import Any

from kubedra.server.patch.apply.elements import BadItem, by_element, item_element
from kubedra.server.patch.apply.fieldset import (
    MEMBER,
    SELF,
    FieldSet,
    element_text,
    is_member,
    with_self,
)
from kubedra.server.patch.apply.types import ATOM, LIST, SCALAR, STRUCT, AtomicList, List, Scalar, Struct, Type
from kubedra.server.patch.go_text import plain, quoted


def faults(type_: Type | None, value: Any, path: str = "") -> list[str]:
    """Everything that keeps a value from being read as its type, in upstream's words."""
    if value is None or type_ is None:
        return []
    if isinstance(type_, Scalar):
        text = _scalar_fault(type_.kind, value)
        return [_at(path, text)] if text else []
    if type_.shape is ATOM and not isinstance(type_, AtomicList):
        return faults(type_.inner, value, path)
    if isinstance(type_, Struct):
        return _map_faults(type_, value, path)
    return _list_faults(type_, value, path)


def _at(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _go_value(value: Any) -> str:
    return "&{" + plain(value) + "}"


def _scalar_fault(kind: str, value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    if kind == "numeric" and not number:
        return f"expected numeric (int or float), got {_go_kind(value)}"
    if kind == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got {_go_value(value)}"
    if kind == "untyped" and isinstance(value, dict | list):
        return f"expected any scalar, got {_go_value(value)}"
    return ""


def _go_syntax(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else plain(value)


def _go_kind(value: Any) -> str:
    names = {"str": "string", "bool": "bool", "dict": "map[string]interface {}", "list": "[]interface {}"}
    return names.get(type(value).__name__, type(value).__name__)


def _map_faults(type_: Struct, value: Any, path: str) -> list[str]:
    if not isinstance(value, dict):
        # A free-form value is not checked.
        return [] if type_.element is type_ else [_at(path, f"expected map, got {_go_value(value)}")]
    out: list[str] = []
    for name, item in value.items():
        child = type_.fields.get(name, type_.element)
        if child is None:
            out.append(f"{path}.{name}: field not declared in schema")
            break
        out += faults(child, item, f"{path}.{name}")
    return out


def _list_faults(type_: Type, value: Any, path: str) -> list[str]:
    if not isinstance(value, list):
        return [_at(path, f"expected list, got {_go_value(value)}")]
    out: list[str] = []
    if isinstance(type_, AtomicList):
        for i, item in enumerate(value):
            out += faults(type_.item, item, f"{path}[{i}]")
        return out
    assert isinstance(type_, List)
    seen: set[str] = set()
    for i, item in enumerate(value):
        try:
            element = item_element(type_, item)
        except BadItem as err:
            out.append(_at(path, f"element {i}: {err}"))
            break
        if element in seen:
            out.append(_at(path, f"duplicate entries for key {element_text(element)}"))
        seen.add(element)
        out += faults(type_.item, item, path + element_text(element))
    return out


def field_set(type_: Type, value: Any) -> FieldSet:
    """The fields that an applied object states (unlike a comparison's sets: without the structs on the way)."""
    if type_.shape is STRUCT:
        if not isinstance(value, dict):
            return {}
        assert isinstance(type_, Struct)
        out: FieldSet = {}
        for name, item in value.items():
            declared = name in type_.fields
            child = type_.fields.get(name, type_.element)
            leaf = child is None or child.shape is SCALAR or child.shape is ATOM
            node = {} if leaf or child is None else field_set(child, item)
            own = leaf or item is None or item == {} or not declared or (child is type_ and not isinstance(item, dict))
            if own:
                out["f:" + name] = with_self(node)
            elif node:
                out["f:" + name] = node
        return out
    if type_.shape is LIST:
        if not isinstance(value, list):
            return {}
        assert isinstance(type_, List)
        return {
            element: with_self(field_set(type_.item, items[0])) if len(items) == 1 else MEMBER
            for element, items in by_element(type_, value).items()
        }
    return {}


def ensure_named(fields: FieldSet, type_: Type | None) -> FieldSet:
    """The set with every declared struct field on the way to a member as a member itself."""
    out: FieldSet = {}
    for element, node in fields.items():
        if not node:
            out[element] = node
            continue
        child: Type | None = None
        named = False
        if isinstance(type_, Struct) and element.startswith("f:"):
            child = type_.fields.get(element[2:])
            named = child is not None
            child = child or type_.element
        elif isinstance(type_, List) and element.startswith("k:"):
            child = type_.item
        node = ensure_named(node, child)
        out[element] = with_self(node) if named else node
    return out


def remove(type_: Type | None, value: Any, fields: FieldSet) -> Any:
    """The value without these fields; a map or list that has nothing left becomes None, as upstream leaves it."""
    if type_ is None:
        return value
    if isinstance(type_, Struct) and isinstance(value, dict):
        left: dict[str, Any] = {}
        for name, item in value.items():
            node = fields.get("f:" + name)
            if node is None:
                left[name] = item
            elif not is_member(node):
                left[name] = remove(type_.fields.get(name, type_.element), item, node)
        return left or None
    if isinstance(type_, List) and isinstance(value, list):
        items: list[Any] = []
        for item in value:
            try:
                node = fields.get(item_element(type_, item))
            except BadItem:
                node = None
            if node is None:
                items.append(item)
            elif node and SELF not in node:
                items.append(remove(type_.item, item, node))
        return items or None
    return value


def without_nulls(type_: Type | None, value: Any) -> Any:
    """The value without members that are null in structs (free-form values and maps of values keep theirs).

    A struct that there is always becomes an empty one.
    """
    if isinstance(type_, Struct) and isinstance(value, dict):
        out: dict[str, Any] = {}
        for name, item in value.items():
            child = type_.fields.get(name)
            if item is not None:
                out[name] = without_nulls(child or type_.element, item)
            elif child is None:
                out[name] = None
            elif name in type_.by_value and child.shape is STRUCT:
                out[name] = {}
        return out
    if isinstance(type_, List) and isinstance(value, list):
        return [without_nulls(type_.item, item) for item in value]
    return value
