"""JSON Patch (RFC 6902) as kube-apiserver applies it.

Why not a library: clients depend on what upstream's evanphx/json-patch does beyond and besides the RFC. ``replace``
of an absent member adds it, ``add`` without a value adds null, ``test`` for null holds for an absent member,
indices may be negative, and the whole patch is refused past 10,000 operations. Inputs are never changed: only the
containers on the path of a change are copied.

Upstream counterpart: gopkg.in/evanphx/json-patch.v4 and apiserver ``endpoints/handlers/patch.go``.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from kubedra.api.errors import ApiError

MAX_OPERATIONS = 10_000
MAX_COPY_BYTES = 3 * 1024 * 1024

_INDEX = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_MISSING = object()


class _Refused(Exception):
    """An operation that does not apply; upstream answers all of them with the same text."""


def json_patch(tree: Any, operations: list[Any]) -> Any:
    """Apply the operations in order and return the new tree; all or nothing.

    Raises ``ApiError`` 422 when an operation does not apply, 413 when there are too many of them.
    """
    if len(operations) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity is too large: {text}")
    document = _Document(tree)
    try:
        for operation in operations:
            document.run(operation if isinstance(operation, dict) else {})
    except _Refused as refused:
        raise ApiError(422, "Invalid", "the server rejected our request due to an error in our request") from refused
    return document.root


class _Document:
    """A tree under change: a container is copied the first time a path leads through it."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._own: dict[int, Any] = {}
        self._copied = 0

    def run(self, operation: dict[str, Any]) -> None:
        kind = operation.get("op")
        if kind == "add":
            container, key = self._parent(_pointer(operation, "path"))
            _add(container, key, operation.get("value"))
        elif kind == "remove":
            container, key = self._parent(_pointer(operation, "path"))
            _take(container, key)
        elif kind == "replace":
            self._replace(_pointer(operation, "path"), operation.get("value"))
        elif kind == "test":
            self._test(_pointer(operation, "path"), operation)
        elif kind == "move":
            container, key = self._parent(_pointer(operation, "from"))
            value = _take(container, key)
            container, key = self._parent(_pointer(operation, "path"))
            _add(container, key, value)
        elif kind == "copy":
            self._copy(operation)
        else:
            raise _Refused(f"Unexpected kind: {kind}")

    def _replace(self, pointer: str, value: Any) -> None:
        if pointer == "":
            if not isinstance(value, dict | list):
                raise _Refused("replace operation value must be object or array")
            self.root = value
            return
        container, key = self._parent(pointer)
        if isinstance(container, dict):
            container[key] = value
        else:
            container[_existing(container, key)] = value

    def _test(self, pointer: str, operation: dict[str, Any]) -> None:
        expected = operation.get("value")
        if pointer == "":
            found = self.root
        else:
            container, key = self._parent(pointer)
            found = container.get(key) if isinstance(container, dict) else container[_existing(container, key)]
        if not _equal(found, expected):
            raise _Refused(f"testing value {pointer} failed")

    def _copy(self, operation: dict[str, Any]) -> None:
        container, key = self._parent(_pointer(operation, "from"))
        value = container.get(key) if isinstance(container, dict) else container[_existing(container, key)]
        if value is not None:
            self._copied += len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
        if self._copied > MAX_COPY_BYTES:
            raise _Refused("the accumulated size of copies is over the limit")
        container, key = self._parent(_pointer(operation, "path"))
        # A real copy: later operations may change one of the two and not the other.
        _add(container, key, copy.deepcopy(value))

    def _parent(self, pointer: str) -> tuple[Any, str]:
        """The container that holds the pointer's last part, made our own, and that part."""
        parts = pointer.split("/")
        if len(parts) < 2:
            raise _Refused("doc is missing path")
        node = self.root = self._mine(self.root)
        for part in parts[1:-1]:
            key = _unescape(part)
            if isinstance(node, dict):
                child = node.get(key)
                if not isinstance(child, dict | list):
                    raise _Refused("doc is missing path")
                node[key] = child = self._mine(child)
            else:
                index = _existing(node, key)
                child = node[index]
                if not isinstance(child, dict | list):
                    raise _Refused("doc is missing path")
                node[index] = child = self._mine(child)
            node = child
        return node, _unescape(parts[-1])

    def _mine(self, node: Any) -> Any:
        if not isinstance(node, dict | list):
            raise _Refused("doc is missing path")
        if id(node) in self._own:
            return node
        node = node.copy()
        self._own[id(node)] = node  # kept alive, so that the id stays taken
        return node


def _pointer(operation: dict[str, Any], member: str) -> str:
    value = operation.get(member)
    if not isinstance(value, str):
        raise _Refused(f"operation failed to decode {member}")
    return value


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def _number(key: str) -> int:
    if not _INDEX.match(key):
        raise _Refused(f"value was not a proper array index: '{key}'")
    return int(key)


def _existing(items: list[Any], key: str) -> int:
    index = _number(key)
    if not -len(items) <= index < len(items):
        raise _Refused(f"Unable to access invalid index: {index}")
    return index + len(items) if index < 0 else index


def _add(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
        return
    if key == "-":
        container.append(value)
        return
    index = _number(key)
    places = len(container) + 1
    if not -places <= index < places:
        raise _Refused(f"Unable to access invalid index: {index}")
    container.insert(index + places if index < 0 else index, value)


def _take(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        value = container.pop(key, _MISSING)
        if value is _MISSING:
            raise _Refused(f"Unable to remove nonexistent key: {key}")
        return value
    return container.pop(_existing(container, key))


def _equal(a: Any, b: Any) -> bool:
    """JSON equality: true is not 1, and 1 is not 1.0 (upstream compares the texts of scalars)."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(v, b[k]) for k, v in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
