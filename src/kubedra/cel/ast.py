"""The tree of a parsed expression, after macros.

Nodes are mutable while the parser and the checker work on them (the checker writes ``type`` and the overloads it
found onto the node) and left alone afterwards. ``offset`` is where a message about the node points to: the operator,
the opening parenthesis of a call, the dot of a selection.

Upstream counterpart: cel-go common/ast. Unlike there, ``&&`` and ``||`` are one node with all their terms, so a long
chain needs no deep recursion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kubedra.cel.types import Type

ACCUMULATOR: Final = "@result"
UNUSED_VARIABLE: Final = "#unused"


class Node:
    """An expression; ``depth`` counts the nesting that upstream's recursion limit counts."""

    __slots__ = ("depth", "offset", "type")

    def __init__(self, offset: int, depth: int = 0) -> None:
        self.offset = offset
        self.depth = depth
        self.type: Type | None = None

    def children(self) -> Iterator[Node]:
        """Direct sub-expressions in evaluation order."""
        return iter(())


class Literal(Node):
    """A constant; ``kind`` names its type (null, bool, int, uint, double, string, bytes)."""

    __slots__ = ("kind", "value")

    def __init__(self, offset: int, kind: str, value: object) -> None:
        super().__init__(offset)
        self.kind = kind
        self.value = value


class Ident(Node):
    """A variable or a type name; ``constant`` is set by the checker for type names."""

    __slots__ = ("constant", "is_constant", "name")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        self.is_constant = False
        self.constant: object = None


class Select(Node):
    """``operand.field``, or ``has(operand.field)`` when ``test_only``."""

    __slots__ = ("field", "operand", "test_only")

    def __init__(self, offset: int, operand: Node, field: str, test_only: bool = False) -> None:
        super().__init__(offset, operand.depth + 1)
        self.operand = operand
        self.field = field
        self.test_only = test_only

    def children(self) -> Iterator[Node]:
        yield self.operand


class Call(Node):
    """A function or operator; ``target`` is the receiver of a member call. ``overloads`` comes from the checker."""

    __slots__ = ("args", "function", "overloads", "target")

    def __init__(
        self, offset: int, function: str, args: list[Node], target: Node | None = None, depth: int = 0
    ) -> None:
        super().__init__(offset, depth)
        self.function = function
        self.args = args
        self.target = target
        self.overloads: tuple[str, ...] = ()

    def operands(self) -> list[Node]:
        """Receiver (if any) and arguments."""
        return self.args if self.target is None else [self.target, *self.args]

    def children(self) -> Iterator[Node]:
        return iter(self.operands())


class ListLiteral(Node):
    """``[a, ?b]``; ``optional`` holds the places of optional elements."""

    __slots__ = ("elements", "optional")

    def __init__(self, offset: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(offset, max((element.depth for element in elements), default=0))
        self.elements = elements
        self.optional = optional

    def children(self) -> Iterator[Node]:
        return iter(self.elements)


class Entry:
    """A key and value of a map literal, or a field of a struct literal (key is its name then)."""

    __slots__ = ("key", "offset", "optional", "value")

    def __init__(self, offset: int, key: Node | str, value: Node, optional: bool) -> None:
        self.offset = offset
        self.key = key
        self.value = value
        self.optional = optional


class MapLiteral(Node):
    """``{k: v}``."""

    __slots__ = ("entries",)

    def __init__(self, offset: int, entries: list[Entry]) -> None:
        super().__init__(offset, max((_entry_depth(entry) for entry in entries), default=0))
        self.entries = entries

    def children(self) -> Iterator[Node]:
        for entry in self.entries:
            if isinstance(entry.key, Node):
                yield entry.key
            yield entry.value


class StructLiteral(Node):
    """``Name{field: v}``."""

    __slots__ = ("entries", "name")

    def __init__(self, offset: int, name: str, entries: list[Entry]) -> None:
        super().__init__(offset, max((_entry_depth(entry) for entry in entries), default=0))
        self.name = name
        self.entries = entries

    def children(self) -> Iterator[Node]:
        for entry in self.entries:
            yield entry.value


class Comprehension(Node):
    """A fold over ``iter_range``; what all loop macros and ``cel.bind`` become."""

    __slots__ = ("accu_init", "accu_var", "condition", "iter_range", "iter_var", "iter_var2", "result", "step")

    def __init__(
        self,
        offset: int,
        iter_range: Node,
        iter_var: str,
        iter_var2: str,
        accu_var: str,
        accu_init: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(offset, max(iter_range.depth, accu_init.depth, step.depth, result.depth))
        self.iter_range = iter_range
        self.iter_var = iter_var
        self.iter_var2 = iter_var2
        self.accu_var = accu_var
        self.accu_init = accu_init
        self.condition = condition
        self.step = step
        self.result = result

    @property
    def is_bind(self) -> bool:
        """Whether it only names a value (``cel.bind`` and the like) instead of looping."""
        return (
            isinstance(self.iter_range, ListLiteral)
            and not self.iter_range.elements
            and isinstance(self.condition, Literal)
            and self.condition.value is False
            and self.accu_var != ACCUMULATOR
        )

    def children(self) -> Iterator[Node]:
        yield self.iter_range
        yield self.accu_init
        yield self.condition
        yield self.step
        yield self.result


def _entry_depth(entry: Entry) -> int:
    return max(entry.value.depth, entry.key.depth if isinstance(entry.key, Node) else 0)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(current.children())))


def copy(node: Node) -> Node:
    """A copy with nodes of its own: macros that use an argument twice need separate types and costs."""
    fresh: Node
    if isinstance(node, Literal):
        fresh = Literal(node.offset, node.kind, node.value)
    elif isinstance(node, Ident):
        fresh = Ident(node.offset, node.name)
    elif isinstance(node, Select):
        fresh = Select(node.offset, copy(node.operand), node.field, node.test_only)
    elif isinstance(node, Call):
        target = None if node.target is None else copy(node.target)
        fresh = Call(node.offset, node.function, [copy(arg) for arg in node.args], target)
    elif isinstance(node, ListLiteral):
        fresh = ListLiteral(node.offset, [copy(element) for element in node.elements], node.optional)
    elif isinstance(node, MapLiteral):
        fresh = MapLiteral(node.offset, [_copy_entry(entry) for entry in node.entries])
    elif isinstance(node, StructLiteral):
        fresh = StructLiteral(node.offset, node.name, [_copy_entry(entry) for entry in node.entries])
    else:
        assert isinstance(node, Comprehension)
        fresh = Comprehension(
            node.offset,
            copy(node.iter_range),
            node.iter_var,
            node.iter_var2,
            node.accu_var,
            copy(node.accu_init),
            copy(node.condition),
            copy(node.step),
            copy(node.result),
        )
    fresh.depth = node.depth
    return fresh


def _copy_entry(entry: Entry) -> Entry:
    key = copy(entry.key) if isinstance(entry.key, Node) else entry.key
    return Entry(entry.offset, key, copy(entry.value), entry.optional)
