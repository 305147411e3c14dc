"""The worst that an expression can cost, known before it runs; admission refuses what may exceed the limit.

Costs and sizes are ranges of saturating 64-bit numbers. Sizes come from literals, from what the environment declares
about its variables (by path), and from the functions that make values. Traps of upstream's arithmetic (``!=`` between
quantities, ``type(x) == y`` are "unbounded") are kept: what admission accepts must not depend on who serves it.

Upstream counterpart: cel-go checker/cost.go, ext/{lists,sets}.go (estimators),
k8s.io/apiserver/pkg/cel/library/cost.go (EstimateCallCost), sizeEstimator of
k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from kubedra.cel.ast import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from kubedra.cel.environment import Environment
from kubedra.cel.literals import UINT_MAX
from kubedra.cel.pricing import LIST_COST, MAP_COST, PATTERN, STRUCT_COST, TRAVERSAL
from kubedra.cel.types import DYN, Type

Range = tuple[int, int]
UNKNOWN: Final[Range] = (0, UINT_MAX)
ONE: Final[Range] = (1, 1)
ZERO: Final[Range] = (0, 0)


def add(one: Range, two: Range) -> Range:
    """Sum."""
    return min(one[0] + two[0], UINT_MAX), min(one[1] + two[1], UINT_MAX)


def multiply(one: Range, two: Range) -> Range:
    """Product."""
    return min(one[0] * two[0], UINT_MAX), min(one[1] * two[1], UINT_MAX)


def scale(range_: Range, factor: float) -> Range:
    """By a factor, rounded up; in doubles as upstream, which shows in the unbounded figures."""
    return _scaled(range_[0], factor), _scaled(range_[1], factor)


def _scaled(value: int, factor: float) -> int:
    number = float(value)
    if number > 0 and factor > 0 and number > float(UINT_MAX) / factor:
        return UINT_MAX
    rounded = ceil(number * factor)
    return UINT_MAX if rounded >= 2**64 else rounded


def union(one: Range, two: Range) -> Range:
    """The range that covers both."""
    return min(one[0], two[0]), max(one[1], two[1])


@dataclass(frozen=True, slots=True)
class Entries:
    """Sizes of the keys and values of a container."""

    kind: str
    key: Range
    value: Range

    def union(self, other: Entries | None) -> Entries | None:
        """Entries that cover both; None if the other is unknown."""
        if other is None:
            return None
        return Entries(self.kind, union(self.key, other.key), union(self.value, other.value))


@dataclass(frozen=True, slots=True)
class _Local:
    path: tuple[str, ...]
    size: Range | None
    entries: Entries | None


Priced = tuple[Range, "Range | None"]
_SCALARS: Final = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))


def estimate(root: Node, environment: Environment) -> Range:
    """Cheapest and dearest cost of the checked expression."""
    return Estimator(environment).cost(root)


class Estimator:
    """Walks the tree once; library estimates get it to ask for sizes."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._paths: dict[Node, tuple[str, ...]] = {}
        self._sizes: dict[Node, Range] = {}
        self._entries: dict[Node, Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    # Sizes

    def path(self, node: Node) -> tuple[str, ...]:
        """Where a value comes from: a variable, then fields, @keys, @values, @items."""
        if isinstance(node, Ident):
            stack = self._locals.get(node.name)
            if stack:
                return stack[-1].path
        return self._paths.get(node, ())

    def computed_size(self, node: Node) -> Range | None:
        """The size if anything is known about it."""
        known = self._sizes.get(node)
        if known is not None:
            return known
        if isinstance(node, Literal):
            amount = len(node.value) if isinstance(node.value, (str, bytes)) else 1
            return amount, amount
        if isinstance(node, ListLiteral):
            return len(node.elements), len(node.elements)
        if isinstance(node, MapLiteral):
            return len(node.entries), len(node.entries)
        largest = self.environment.sizes(self.path(node))
        if largest is not None:
            self._sizes[node] = (0, largest)
            return 0, largest
        if _is_scalar(node.type):
            return ONE
        if isinstance(node, Ident):
            stack = self._locals.get(node.name)
            if stack:
                return stack[-1].size
        return None

    def size(self, node: Node) -> Range:
        """The size, or that it is unknown."""
        return self.computed_size(node) or UNKNOWN

    def element_size(self, node: Node, element: Type) -> Range:
        """The size of the elements of a list, by its path alone."""
        path = self.path(node)
        if not path or path[0] in (ACCUMULATOR, "__result__"):
            return UNKNOWN
        largest = self.environment.sizes((*path, "@items"))
        return UNKNOWN if largest is None else (0, largest)

    def entries(self, node: Node) -> Entries | None:
        """What is known about the entries of a container."""
        known = self._entries.get(node)
        if known is not None:
            return known
        if isinstance(node, Ident):
            stack = self._locals.get(node.name)
            if stack:
                return stack[-1].entries
        return None

    # Costs

    def cost(self, node: Node) -> Range:
        """Cost of a node and everything below it."""
        if isinstance(node, Literal):
            return ZERO
        if isinstance(node, Ident):
            stack = self._locals.get(node.name)
            self._paths[node] = stack[-1].path if stack else (node.name,)
            return ONE
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        if isinstance(node, StructLiteral):
            total = (STRUCT_COST, STRUCT_COST)
            for entry in node.entries:
                total = add(total, self.cost(entry.value))
            return total
        assert isinstance(node, Comprehension)
        return self._bind(node) if node.is_bind else self._loop(node)

    def _select(self, node: Select) -> Range:
        total = self.cost(node.operand)
        if node.test_only:
            return total
        if node.operand.type is not None and node.operand.type.kind in ("map", "struct", "type_param"):
            total = add(total, ONE)
        self._paths[node] = (*self.path(node.operand), node.field)
        return total

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            argument = node.args[0]
            cost = add(ONE, self.cost(argument))
            self._copy_sizes(node, argument)
            return cost
        arg_costs = [self.cost(arg) for arg in node.args]
        if not node.overloads:
            return ZERO
        total = self.cost(node.target) if node.target is not None else ZERO
        priced: Range = (UINT_MAX, 0)
        result: Range | None = None
        for overload in node.overloads:
            cost, size = self._overload(node, overload, arg_costs)
            priced = union(priced, cost)
            if size is not None:
                result = size if result is None else union(result, size)
            if overload in ("index_list", "index_map"):
                entries = self.entries(node.args[0])
                result = None if entries is None else entries.value
                step = "@items" if overload == "index_list" else "@values"
                self._paths[node] = (*self.path(node.args[0]), step)
            if result is None:
                result = self.computed_size(node)
        if result is not None:
            self._sizes[node] = result
        return add(total, priced)

    def _overload(self, node: Call, overload: str, arg_costs: list[Range]) -> Priced:
        total = ZERO
        for cost in arg_costs:
            total = add(total, cost)
        environment = self.environment
        for price in (environment.overload_estimates.get(overload), environment.estimates.get(node.function)):
            if price is not None:
                special = price(self, overload, node.target, node.args)
                if special is not None:
                    return add(special[0], total), special[1]
        if overload in ("logical_and", "logical_or"):
            return (arg_costs[0][0], total[1]), None
        if overload == "conditional":
            return self._conditional(node, arg_costs)
        cost, size = self._standard(node, overload)
        return add(cost, total), size

    def _conditional(self, node: Call, arg_costs: list[Range]) -> Priced:
        _, yes, no = node.args
        size = union(self.size(yes), self.size(no))
        entries = self.entries(yes)
        joined = entries.union(self.entries(no)) if entries is not None else None
        if joined is not None:
            self._entries[node] = joined
        return add(arg_costs[0], union(arg_costs[1], arg_costs[2])), size

    def _standard(self, node: Call, overload: str) -> Priced:
        args, target = node.args, node.target
        if overload == "string_format" and target is not None:
            return scale(self.size(target), TRAVERSAL), None
        if overload == "string_to_bytes":
            size = self.size(args[0])
            return scale(size, TRAVERSAL), (size[0], min(size[1] * 4, UINT_MAX))
        if overload == "bytes_to_string":
            size = self.size(args[0])
            return scale(size, TRAVERSAL), (size[0] // 4, size[1])
        if overload == "strings_quote":
            size = self.size(args[0])
            return scale(size, TRAVERSAL), (size[0] + 2, (size[1] * 2 + 2) & UINT_MAX)
        if overload in ("starts_with_string", "ends_with_string"):
            return scale(self.size(args[0]), TRAVERSAL), None
        if overload == "in_list":
            return scale(self.size(args[1]), 1), None
        if overload == "matches_string" and target is not None:
            text = scale(add(self.size(target), ONE), TRAVERSAL)
            return multiply(text, scale(self.size(args[0]), PATTERN)), None
        if overload == "contains_string" and target is not None:
            return multiply(scale(self.size(target), TRAVERSAL), scale(self.size(args[0]), TRAVERSAL)), None
        if overload in ("add_string", "add_bytes", "add_list"):
            return self._concatenation(node, overload)
        if overload in _COMPARED:
            largest = min(self.size(args[0])[1], self.size(args[1])[1])
            return scale((1 if largest > 0 else 0, largest), TRAVERSAL), None
        return ONE, None

    def _concatenation(self, node: Call, overload: str) -> Priced:
        one, two = node.args
        size = add(self.size(one), self.size(two))
        entries = self.entries(one)
        joined = entries.union(self.entries(two)) if entries is not None else None
        if joined is not None:
            self._entries[node] = joined
        return (ONE if overload == "add_list" else scale(size, TRAVERSAL)), size

    def _list(self, node: ListLiteral) -> Range:
        total = ZERO
        item: Range = (UINT_MAX, 0) if node.elements else ZERO
        for element in node.elements:
            total = add(total, self.cost(element))
            item = union(item, self.size(element))
        self._entries[node] = Entries("list", ONE, item)
        return add(total, (LIST_COST, LIST_COST))

    def _map(self, node: MapLiteral) -> Range:
        total = ZERO
        keys: Range = (UINT_MAX, 0) if node.entries else ZERO
        items: Range = (UINT_MAX, 0) if node.entries else ZERO
        for entry in node.entries:
            assert isinstance(entry.key, Node)
            total = add(total, add(self.cost(entry.key), self.cost(entry.value)))
            keys = union(keys, self.size(entry.key))
            items = union(items, self.size(entry.value))
        self._entries[node] = Entries("map", keys, items)
        return add(total, (MAP_COST, MAP_COST))

    def _copy_sizes(self, target: Node, source: Node) -> None:
        size, entries = self.computed_size(source), self.entries(source)
        if size is not None:
            self._sizes[target] = size
        if entries is not None:
            self._entries[target] = entries

    # Loops

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _push_value(self, name: str, node: Node) -> None:
        self._push(name, _Local(self.path(node), self.computed_size(node), self.entries(node)))

    def _push_iteration(self, name: str, node: Node, which: str) -> None:
        entries = self.entries(node)
        kind = entries.kind if entries is not None else (node.type or DYN).kind
        is_list = kind == "list"
        if which == "single":
            which = "value" if is_list else "key"
        if which == "key":
            size = None if entries is None else entries.key
            step = "@indices" if is_list else "@keys"
        else:
            size = None if entries is None else entries.value
            step = "@items" if is_list else "@values"
        self._push(name, _Local((*self.path(node), step), size, None))

    def _bind(self, node: Comprehension) -> Range:
        total = add(self.cost(node.iter_range), self.cost(node.accu_init))
        self._push_value(node.accu_var, node.accu_init)
        total = add(total, self.cost(node.result))
        self._locals[node.accu_var].pop()
        self._copy_sizes(node, node.result)
        return total

    def _loop(self, node: Comprehension) -> Range:
        total = add(self.cost(node.iter_range), self.cost(node.accu_init))
        self._push_value(node.accu_var, node.accu_init)
        if node.iter_var2:
            self._push_iteration(node.iter_var, node.iter_range, "key")
            self._push_iteration(node.iter_var2, node.iter_range, "value")
        else:
            self._push_iteration(node.iter_var, node.iter_range, "single")
        turn = self.cost(node.condition)
        turn = add(self.cost(node.step), turn)
        self._locals[node.iter_var].pop()
        if node.iter_var2:
            self._locals[node.iter_var2].pop()
        total = add(total, self.cost(node.result))
        self._locals[node.accu_var].pop()
        turns = self.size(node.iter_range)
        total = add(total, multiply(turns, turn))
        if isinstance(node.accu_init, Literal):
            size = self.computed_size(node.accu_init)
            if size is not None:
                self._sizes[node] = size
        elif isinstance(node.accu_init, (ListLiteral, MapLiteral)):
            self._sizes[node] = turns
            entries = self.entries(node.step)
            if entries is not None:
                self._entries[node] = entries
        return total


_COMPARED: Final = frozenset(
    f"{word}_{kind}" for word in ("less", "less_equals", "greater", "greater_equals") for kind in ("string", "bytes")
) | {"equals", "not_equals"}


def _is_scalar(type_: Type | None) -> bool:
    if type_ is None:
        return False
    if type_.kind in _SCALARS:
        return True
    return type_.kind == "opaque" and type_.name == "optional_type" and _is_scalar(type_.params[0])
