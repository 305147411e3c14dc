"""What both evaluators need to know of a checked expression: slots for its variables, constants, compiled patterns.

Variables live in a list. A struct-typed variable also has its fields spread over slots of their own, so that
``device.attributes`` is one list access; loops and bindings get slots behind the variables.

Upstream counterpart: cel-go interpreter/planner.go and decorators.go (constant folding, set membership, regex
optimization): what those refuse is a CompileError here, too ("program instantiation failed: …").
"""

from __future__ import annotations

from typing import Any, Final

from kubedra.cel.ast import Call, Ident, ListLiteral, Literal, MapLiteral, Node, walk
from kubedra.cel.environment import Environment
from kubedra.cel.errors import CompileError, EvaluationError
from kubedra.cel.library.conversions import CONVERSIONS
from kubedra.cel.library.regex import PatternError, compile_pattern
from kubedra.cel.values import UInt, Value, key_of


class Layout:
    """Which slot holds which variable and which field of a struct variable."""

    __slots__ = ("fields", "size", "variables")

    def __init__(self, environment: Environment) -> None:
        self.variables: dict[str, int] = {}
        self.fields: dict[tuple[str, str], int] = {}
        count = 0
        for name, type_ in environment.variables.items():
            self.variables[name] = count
            count += 1
            for field in environment.structs.get(type_.name, ()):
                self.fields[name, field] = count
                count += 1
        self.size = count

    def frame(self, variables: dict[str, Value]) -> list[Value]:
        """The slots for these variables; struct variables are StructValues."""
        frame: list[Value] = [None] * self.size
        for name, slot in self.variables.items():
            frame[slot] = variables.get(name)
        for (name, field), slot in self.fields.items():
            value = variables.get(name)
            frame[slot] = None if value is None else value.fields[field]
        return frame


class Constants:
    """Values of the nodes that are constant, as upstream folds them when it plans a program."""

    def __init__(self, root: Node, environment: Environment) -> None:
        self._environment = environment
        self._values: dict[Node, Value] = {}
        for node in reversed(list(walk(root))):
            self._fold(node)
        for node in walk(root):
            self._check_pattern(node)

    def get(self, node: Node) -> tuple[bool, Value]:
        """Whether the node is constant, and its value."""
        if node in self._values:
            return True, self._values[node]
        return False, None

    def __contains__(self, node: Node) -> bool:
        return node in self._values

    def _fold(self, node: Node) -> None:
        if isinstance(node, Literal):
            self._values[node] = UInt(node.value) if node.kind == "uint" else node.value  # type: ignore[call-overload]
        elif isinstance(node, Ident):
            if node.is_constant:
                self._values[node] = node.constant
        elif isinstance(node, ListLiteral):
            if not node.optional and all(element in self._values for element in node.elements):
                self._values[node] = [self._values[element] for element in node.elements]
        elif isinstance(node, MapLiteral):
            self._fold_map(node)
        elif isinstance(node, Call) and node.function in CONVERSIONS and len(node.args) == 1 and node.target is None:
            argument = node.args[0]
            if argument in self._values:
                function = self._environment.functions[node.function].bind(node.overloads, 1)
                try:
                    self._values[node] = function(self._values[argument])
                except EvaluationError as error:
                    raise instantiation_error(error.message) from None

    def _fold_map(self, node: MapLiteral) -> None:
        folded: dict[Any, Value] = {}
        for entry in node.entries:
            key, value = entry.key, entry.value
            if entry.optional or key not in self._values or value not in self._values:
                return
            assert isinstance(key, Node)
            if self._values[key].__class__ not in _PRIMITIVE:
                return
            folded[key_of(self._values[key])] = self._values[value]
        self._values[node] = folded

    def _check_pattern(self, node: Node) -> None:
        if not isinstance(node, Call):
            return
        place = self._environment.patterns.get(node.function)
        operands = node.operands()
        if place is None or place >= len(operands):
            return
        known, pattern = self.get(operands[place])
        if known and isinstance(pattern, str):
            try:
                compile_pattern(pattern)
            except PatternError as error:
                raise instantiation_error(str(error)) from None


def instantiation_error(message: str) -> CompileError:
    """The expression checks but cannot be made a program."""
    return CompileError(f"program instantiation failed: {message}", message)


_PRIMITIVE: Final = frozenset((bool, int, UInt, float, str, type(None)))


class Membership:
    """``x in [constants]`` as upstream's hash set: numbers match across types, what cannot be hashed is an error."""

    __slots__ = ("has_null", "numbers", "strings", "truths")

    def __init__(self, items: list[Value]) -> None:
        self.strings = frozenset(item for item in items if item.__class__ is str)
        self.truths = frozenset(item for item in items if item.__class__ is bool)
        self.numbers = frozenset(item for item in items if item.__class__ in (int, UInt, float))
        self.has_null = any(item is None for item in items)

    @staticmethod
    def possible(items: list[Value]) -> bool:
        """Whether upstream makes a set of these."""
        return all(item.__class__ in _PRIMITIVE for item in items)
