"""Sets of fields, kept in the very form in which ``managedFields`` shows them (FieldsV1).

A set is a dict from path elements (``f:name``, ``k:{"name":"a"}``, ``v:"x"``, ``i:0``) to sub-sets. An empty
sub-set means: this path is a member. A sub-set with ``.`` means: this path and paths below it. Keeping the wire form
spares parsing and writing on each update; most sets of an object pass through unread.

Nothing here changes its input, and an operation that takes nothing away returns its left operand itself, so that
callers see by identity that nothing changed.

Upstream counterpart: sigs.k8s.io/structured-merge-diff ``fieldpath``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

FieldSet: TypeAlias = "dict[str, Any]"

# The one empty sub-set; shared everywhere and never changed.
MEMBER: FieldSet = {}
SELF = "."


class BadFieldSet(ValueError):
    """A FieldsV1 that a client sent and that isn't one."""


def is_member(node: FieldSet) -> bool:
    """Whether a sub-set says that its own path is in the set."""
    return not node or SELF in node


def with_self(node: FieldSet) -> FieldSet:
    """The sub-set with its own path in it."""
    if not node or SELF in node:
        return node
    return {SELF: MEMBER, **node}


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    """Paths that are in either set."""
    if not b or a is b:
        return a
    if not a:
        return b
    out: FieldSet | None = None
    for element, right in b.items():
        left = a.get(element)
        node = right if left is None else _union_node(left, right)
        if node is not left:
            if out is None:
                out = dict(a)
            out[element] = node
    return a if out is None else out


def _union_node(a: FieldSet, b: FieldSet) -> FieldSet:
    if not a:
        return a if not b else with_self(b)
    if not b:
        return with_self(a)
    return union(a, b)


def difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """Paths of ``a`` that are not in ``b``; a path stays although its parent goes."""
    if not b:
        return a
    out: FieldSet | None = None
    for element, left in a.items():
        right = b.get(element)
        if right is None:
            continue
        node = _difference_node(left, right)
        if node is left:
            continue
        if out is None:
            out = dict(a)
        if node is None:
            del out[element]
        else:
            out[element] = node
    return a if out is None else out


def _difference_node(a: FieldSet, b: FieldSet) -> FieldSet | None:
    if not a:
        return None if is_member(b) else a
    if not b:
        if SELF not in a:
            return a
        return {k: v for k, v in a.items() if k != SELF} or None
    rest = difference(a, b)
    if not rest:
        return None
    return MEMBER if len(rest) == 1 and SELF in rest else rest


def without_trees(a: FieldSet, b: FieldSet) -> FieldSet:
    """``a`` without the paths of ``b`` and without everything below them."""
    if not b:
        return a
    out: FieldSet | None = None
    for element, left in a.items():
        right = b.get(element)
        if right is None:
            continue
        node: FieldSet | None
        if is_member(right):
            node = None
        elif not left:
            continue
        else:
            node = without_trees(left, right)
            if node is left:
                continue
            if not node:
                node = None
            elif len(node) == 1 and SELF in node:
                node = MEMBER
        if out is None:
            out = dict(a)
        if node is None:
            del out[element]
        else:
            out[element] = node
    return a if out is None else out


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    """Paths that are in both sets."""
    out: FieldSet = {}
    if len(b) < len(a):
        a, b = b, a
    for element, left in a.items():
        right = b.get(element)
        if right is None:
            continue
        node = _intersection_node(left, right)
        if node is not None:
            out[element] = node
    return out


def _intersection_node(a: FieldSet, b: FieldSet) -> FieldSet | None:
    if not a:
        return a if is_member(b) else None
    if not b:
        return b if SELF in a else None
    both = intersection(a, b)
    if not both:
        return None
    return MEMBER if len(both) == 1 and SELF in both else both


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The members of the set as tuples of path elements, a parent before its children."""
    for element, node in fields.items():
        if element == SELF:
            continue
        path = (*prefix, element)
        if is_member(node):
            yield path
        yield from paths(node, path)


def of_path(path: tuple[str, ...]) -> FieldSet:
    """The set with that one path."""
    node = MEMBER
    for element in reversed(path):
        node = {element: node}
    return node


def has(fields: FieldSet, path: tuple[str, ...]) -> bool:
    """Whether that path is a member."""
    node = fields
    for element in path:
        found = node.get(element)
        if found is None:
            return False
        node = found
    return is_member(node)


@lru_cache(maxsize=4096, typed=True)
def key_element(names: tuple[str, ...], *values: Any) -> str:
    """The path element of a list item with these key fields (names sorted)."""
    return "k:" + _compact(dict(zip(names, values, strict=True)))


@lru_cache(maxsize=4096, typed=True)
def value_element(value: Any) -> str:
    """The path element of an item of a set of scalars."""
    return "v:" + _compact(value)


def _compact(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@lru_cache(maxsize=4096)
def element_text(element: str) -> str:
    """A path element as error messages show it: ``.name``, ``[name="a"]``, ``[="x"]``, ``[0]``."""
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return "." + rest
    if kind == "i:":
        return f"[{rest}]"
    value = json.loads(rest)
    if kind == "v:":
        return f"[={_text(value)}]"
    return "[" + ",".join(f"{name}={_text(value[name])}" for name in sorted(value)) + "]"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def path_text(path: tuple[str, ...]) -> str:
    """A path as error messages show it: ``.spec.containers[name="c"].image``."""
    return "".join(map(element_text, path))


@lru_cache(maxsize=4096)
def _order(element: str) -> tuple[Any, ...]:
    """Upstream's order: fields, keys, values, indices; numbers before strings before booleans."""
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return (1, rest)
    if kind == "k:":
        value = json.loads(rest)
        return (2, tuple((name, _rank(value[name])) for name in sorted(value)))
    if kind == "v:":
        return (3, _rank(json.loads(rest)))
    if kind == "i:":
        return (4, int(rest))
    return (0,)


def _rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (3, _compact(value))


def canonical(fields: FieldSet) -> FieldSet:
    """The same set with its elements in upstream's order, at every level."""
    if not fields:
        return MEMBER
    elements = list(fields)
    if len(elements) > 1:
        if any(e[:2] in ("k:", "v:", "i:") for e in elements):
            elements.sort(key=_order)
        else:
            elements.sort()
    return {e: canonical(fields[e]) for e in elements}


def parse(fields: Any) -> FieldSet:
    """The set that a client's FieldsV1 states, path elements normalised. Raises :class:`BadFieldSet`."""
    if fields is None:
        return MEMBER
    out = _parse(fields)
    out.pop(SELF, None)  # nobody owns the object as such
    return out


def _parse(fields: Any) -> FieldSet:
    if not isinstance(fields, dict):
        raise BadFieldSet("expected an object")
    return {_element(name): _parse(node) for name, node in fields.items()}


@lru_cache(maxsize=4096)
def _element(text: str) -> str:
    if text == SELF or text.startswith("f:"):
        return text
    kind, rest = text[:2], text[2:]
    try:
        if kind == "i:":
            return f"i:{int(rest)}"
        if kind in ("v:", "k:"):
            value = json.loads(rest)
            if kind == "k:" and not isinstance(value, dict):
                raise BadFieldSet(f"not a key: {text}")
            return kind + _compact(value)
    except ValueError as err:
        raise BadFieldSet(f"bad path element: {text}") from err
    raise BadFieldSet(f"unknown path element type: {text}")
