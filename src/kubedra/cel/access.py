"""Selection and indexing: what ``a.b``, ``a[k]``, ``a.?b`` and ``has(a.b)`` find in a value.

Shared by both evaluators. Selecting from an optional stays optional; selecting from a scalar is a missing key.

Upstream counterpart: cel-go interpreter/attributes.go (qualifiers, refQualify).
"""

from __future__ import annotations

from kubedra.cel import values
from kubedra.cel.errors import EvaluationError
from kubedra.cel.library.conversions import show_double
from kubedra.cel.library.operators import index_of
from kubedra.cel.values import NONE, DefaultMap, Optional, StructValue, Value


def show_key(key: Value) -> str:
    """A key as messages print it."""
    kind = key.__class__
    if kind is str:
        return str(key)
    if kind is bool:
        return "true" if key else "false"
    if kind is float:
        return show_double(key)
    if kind is int or kind is values.UInt:
        return str(int(key))
    return str(key)


def missing_key(key: Value) -> EvaluationError:
    """The container has no such key."""
    return EvaluationError(f"no such key: {show_key(key)}")


def qualify(container: Value, key: Value) -> Value:
    """The value under the key; raises where there is none."""
    kind = container.__class__
    if kind is dict or kind is DefaultMap:
        value, found = values.find(container, key)
        if found:
            return value
        raise missing_key(key)
    if kind is list:
        index = index_of(key)
        if 0 <= index < len(container):
            return container[index]
        raise EvaluationError(f"index out of bounds: {show_key(key)}")
    if kind is StructValue and key.__class__ is str and key in container.fields:
        return container.fields[key]
    raise missing_key(key)


def qualify_present(container: Value, key: Value) -> tuple[Value, bool]:
    """The value under the key and whether it is there; only an impossible list index raises."""
    kind = container.__class__
    if kind is dict or kind is DefaultMap:
        return values.find(container, key)
    if kind is list:
        index = index_of(key)
        if 0 <= index < len(container):
            return container[index], True
        return None, False
    if kind is StructValue and key.__class__ is str and key in container.fields:
        return container.fields[key], True
    return None, False


def select(container: Value, key: Value) -> Value:
    """``container.key`` and ``container[key]``, through an optional if it is one."""
    if container.__class__ is Optional:
        return select_optional(container, key)
    return qualify(container, key)


def select_optional(container: Value, key: Value) -> Value:
    """``container.?key`` and ``container[?key]``."""
    if container.__class__ is Optional:
        if container is NONE:
            return NONE
        container = container.value
    value, found = qualify_present(container, key)
    return Optional(value) if found else NONE


def has(container: Value, key: str) -> bool:
    """``has(container.key)``."""
    if container.__class__ is Optional:
        if container is NONE:
            return False
        container = container.value
    return qualify_present(container, key)[1]
