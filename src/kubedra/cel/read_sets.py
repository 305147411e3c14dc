"""What a selector reads of a device, and the key that stands for those values.

If every access is by literal names, the key is the tuple of the values read (a marker where one is absent): devices
that differ only in uuid or index share it. An access by a computed key, or a loop over a map, reads a whole domain or
the whole device, and the key says so.

Upstream has no counterpart; it evaluates every device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kubedra.cel.ast import Call, Comprehension, Ident, Literal, Node, Select
from kubedra.cel.device import DeviceInput
from kubedra.cel.values import UInt, Value

_ABSENT: Final = ("absent",)


@dataclass(frozen=True, slots=True)
class ReadSet:
    """Names read. ``domains`` are read as a whole; ``everything`` means all of the device."""

    attributes: frozenset[tuple[str, str]] = frozenset()
    capacities: frozenset[tuple[str, str]] = frozenset()
    attribute_domains: frozenset[str] = frozenset()
    capacity_domains: frozenset[str] = frozenset()
    driver: bool = False
    multi: bool = False
    everything: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether single attributes and capacities are all it reads."""
        return not (self.everything or self.attribute_domains or self.capacity_domains)

    @property
    def is_empty(self) -> bool:
        """Whether the answer does not depend on the device at all."""
        return self.is_exact and not (self.attributes or self.capacities or self.driver or self.multi)

    def key(self, device: DeviceInput) -> object:
        """A hashable stand-in for everything the answer depends on; a faulty device has the fault for key."""
        if device.fault is not None:
            return ("fault", str(device.fault))
        attributes, capacities = device.attributes, device.capacity
        parts: list[object] = []
        if self.everything:
            parts += [device.driver, device.multi, freeze(attributes), freeze(capacities)]
            return tuple(parts)
        for domain, id_ in self.attributes:
            inner = attributes.get(domain)
            value: Value = _ABSENT if inner is None else inner.get(id_, _ABSENT)
            # The class matters: 1, 1.0 and true are equal to Python.
            parts.append((value.__class__, freeze(value) if value.__class__ is list else value))
        for domain, id_ in self.capacities:
            inner = capacities.get(domain)
            parts.append(_ABSENT if inner is None else _amount(inner.get(id_)))
        if self.attribute_domains:
            parts += [freeze(attributes.get(domain)) for domain in self.attribute_domains]
        if self.capacity_domains:
            parts += [freeze(capacities.get(domain)) for domain in self.capacity_domains]
        if self.driver:
            parts.append(device.driver)
        if self.multi:
            parts.append(device.multi)
        return tuple(parts)


def _amount(quantity: Value) -> object:
    # Two spellings of one amount can differ in asInteger(), so the form belongs to the key.
    return _ABSENT if quantity is None else (quantity.nano, quantity._scale, quantity.format)


def freeze(value: Value) -> object:
    """A hashable equivalent of a value, with classes, in the order of its keys (loops visit them in order)."""
    if isinstance(value, dict):
        return tuple((key, freeze(item)) for key, item in value.items())
    if value.__class__ is list:
        return tuple(freeze(item) for item in value)
    if hasattr(value, "nano"):
        return _amount(value)
    return value.__class__, value


class _Collector:
    def __init__(self) -> None:
        self.attributes: set[tuple[str, str]] = set()
        self.capacities: set[tuple[str, str]] = set()
        self.attribute_domains: set[str] = set()
        self.capacity_domains: set[str] = set()
        self.driver = False
        self.multi = False
        self.everything = False
        self._bound: list[tuple[str, str, str] | None] = []
        self._scopes: list[dict[str, tuple[str, str] | None]] = []

    def _local(self, name: str) -> tuple[bool, tuple[str, str] | None]:
        for scope in reversed(self._scopes):
            if name in scope:
                return True, scope[name]
        return False, None

    def _domain(self, node: Node) -> tuple[str, str] | None:
        """("attributes" or "capacity", domain) for ``device.attributes["d"]`` or a name bound to it."""
        if isinstance(node, Ident):
            return self._local(node.name)[1]
        first, key = _access(node)
        if first is None or key is None:
            return None
        if (
            isinstance(first, Select)
            and first.field in ("attributes", "capacity")
            and isinstance(first.operand, Ident)
            and first.operand.name.removeprefix(".") == "device"
            and not self._local(first.operand.name)[0]
        ):
            return first.field, key
        return None

    def visit(self, node: Node) -> None:
        base, key = _access(node)
        if base is not None and key is not None:
            domain = self._domain(base)
            if domain is not None:
                target = self.attributes if domain[0] == "attributes" else self.capacities
                target.add((domain[1], key))
                return
        domain = self._domain(node)
        if domain is not None:
            (self.attribute_domains if domain[0] == "attributes" else self.capacity_domains).add(domain[1])
            return
        if isinstance(node, Ident):
            if node.name.removeprefix(".") == "device" and not self._local(node.name)[0]:
                self.everything = True
            return
        if (
            isinstance(node, Select)
            and isinstance(node.operand, Ident)
            and node.operand.name.removeprefix(".") == "device"
            and not self._local(node.operand.name)[0]
        ):
            self._field(node)
            return
        if isinstance(node, Comprehension):
            self._comprehension(node)
            return
        for child in node.children():
            self.visit(child)

    def _field(self, node: Select) -> None:
        if node.test_only:
            return
        if node.field == "driver":
            self.driver = True
        elif node.field == "allowMultipleAllocations":
            self.multi = True
        else:
            self.everything = True

    def _comprehension(self, node: Comprehension) -> None:
        bound = self._domain(node.accu_init) if node.is_bind else None
        if bound is None:
            self.visit(node.iter_range)
            self.visit(node.accu_init)
        self._scopes.append({node.accu_var: bound})
        self._scopes.append(dict.fromkeys(filter(None, (node.iter_var, node.iter_var2))))
        self.visit(node.condition)
        if not node.is_bind:
            self.visit(node.step)
        self._scopes.pop()
        self.visit(node.result)
        self._scopes.pop()


def _access(node: Node) -> tuple[Node | None, str | None]:
    """Container and literal key of ``a.b``, ``a["b"]``, ``a.?b``, ``a[?"b"]``, ``has(a.b)``."""
    if isinstance(node, Select):
        return node.operand, node.field
    if isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?._"):
        key: Any = node.args[1]
        if isinstance(key, Literal) and key.kind == "string":
            return node.args[0], str(key.value)
    if isinstance(node, Call) and node.function == "@in":
        key = node.args[0]
        if isinstance(key, Literal) and key.kind == "string":
            return node.args[1], str(key.value)
    return None, None


def read_set_of(root: Node) -> ReadSet:
    """What a checked selector reads."""
    collector = _Collector()
    try:
        collector.visit(root)
    except RecursionError:
        return ReadSet(everything=True)
    return ReadSet(
        frozenset(collector.attributes),
        frozenset(collector.capacities),
        frozenset(collector.attribute_domains),
        frozenset(collector.capacity_domains),
        collector.driver,
        collector.multi,
        collector.everything,
    )


__all__ = ["ReadSet", "UInt", "freeze", "read_set_of"]
