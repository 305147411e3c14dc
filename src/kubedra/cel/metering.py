"""The counting evaluator: errors are values, every step is charged, the limit stops it.

It mirrors upstream's plan node by node, because the cost of an expression is part of what upstream answers: a chain
of selections is one attribute (1) with qualifiers (1 each, none for an absent optional one), the branches of a
conditional lose the price of their root, a call whose arguments were not all evaluated is free.

Used for everything that loops or might become expensive, and wherever the actual cost is asked for.

Upstream counterpart: cel-go interpreter/{interpretable,attributes,planner,runtimecost}.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubedra.cel import access, values
from kubedra.cel.ast import ACCUMULATOR, Call, Comprehension, Ident, ListLiteral, MapLiteral, Node, Select
from kubedra.cel.attributes import Attribute, Conditional, Meter, Qualifier, Step
from kubedra.cel.environment import Environment
from kubedra.cel.errors import CostLimitError, EvaluationError
from kubedra.cel.fused import Frame, is_member, iterate
from kubedra.cel.library import operators
from kubedra.cel.library.operators import overload_error
from kubedra.cel.pricing import LIST_COST, MAP_COST, price_of, unit_price
from kubedra.cel.program import Constants, Layout, Membership, instantiation_error
from kubedra.cel.values import NONE, Optional, Value

_UNSET: Final = object()


def compile_metered(root: Node, environment: Environment, layout: Layout, constants: Constants) -> tuple[Step, int]:
    """A counting program for a checked expression, and how many slots its frame needs in all."""
    planner = _Planner(environment, layout, constants)
    return planner.plan(root), planner.slots


class _Planner:
    def __init__(self, environment: Environment, layout: Layout, constants: Constants) -> None:
        self._environment = environment
        self._layout = layout
        self._constants = constants
        self._scopes: list[dict[str, tuple[int, Step | None]]] = []
        self._owned: set[int] = set()
        self.slots = layout.size

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def plan(self, node: Node) -> Step:
        known, value = self._constants.get(node)
        if known:
            return lambda frame, meter: value
        attribute = self._attribute(node)
        if attribute is not None:
            return self._watched(node, attribute)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        if isinstance(node, Comprehension):
            return self._bind(node) if node.is_bind else self._loop(node)
        raise instantiation_error(f"unsupported expression {type(node).__name__}")

    # Attributes

    def _watched(self, node: Node, attribute: Attribute) -> Step:
        if isinstance(node, Ident):
            return _charged(attribute.root)
        resolve = attribute.resolve
        free = isinstance(attribute, Conditional) or (isinstance(node, Select) and node.test_only)

        def run(frame: Frame, meter: Meter) -> Value:
            value = resolve(frame, meter)
            if not free:
                meter.cost += 1
                if meter.cost > meter.limit:
                    raise CostLimitError
            return value

        return run

    def _attribute(self, node: Node) -> Attribute | None:
        if node in self._constants:
            return None
        if isinstance(node, Ident):
            return Attribute(self._variable(node))
        if isinstance(node, Select):
            attribute = self._operand(node.operand)
            attribute.add(Qualifier(node.field, test=node.test_only))
            return attribute
        if not isinstance(node, Call):
            return None
        if node.function == "_?_:_":
            condition, yes, no = node.args
            return Conditional(self.plan(condition), self._operand(yes), self._operand(no))
        if node.function in ("_[_]", "_[?_]", "_?._"):
            attribute = self._operand(node.args[0])
            attribute.add(self._index(node.args[1], optional=node.function != "_[_]"))
            return attribute
        return None

    def _operand(self, node: Node) -> Attribute:
        return self._attribute(node) or Attribute(self.plan(node))

    def _index(self, node: Node, optional: bool) -> Qualifier:
        known, key = self._constants.get(node)
        if known:
            return Qualifier(key, optional=optional)
        attribute = self._attribute(node)
        if attribute is not None:
            return Qualifier(attribute=attribute, optional=optional)
        return Qualifier(expression=self.plan(node), optional=optional)

    def _local(self, name: str) -> tuple[int, Step | None] | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _variable(self, node: Ident) -> Step:
        local = self._local(node.name)
        if local is None:
            slot = self._layout.variables[node.name.removeprefix(".")]
            return lambda frame, meter: frame[slot]
        slot, lazy = local
        if lazy is None:
            return lambda frame, meter: frame[slot]

        def read(frame: Frame, meter: Meter) -> Value:
            value = frame[slot]
            if value is _UNSET:
                value = frame[slot] = lazy(frame, meter)
            return value

        return read

    # Calls

    def _call(self, node: Call) -> Step:
        name = node.function
        if name in ("_&&_", "_||_"):
            return self._logic(node)
        if name in ("or", "orValue") and node.target is not None:
            return self._or_optional(node)
        if name == "@in" and node.overloads == ("in_list",):
            known, items = self._constants.get(node.args[1])
            if known and not items:
                return lambda frame, meter: False
            if known and Membership.possible(items):
                return self._membership(self.plan(node.args[0]), Membership(items))
        operands = [self.plan(operand) for operand in node.operands()]
        overload = node.overloads[0] if len(node.overloads) == 1 else ""
        if name == "_==_":
            overload = "equals"
        elif name == "_!=_":
            overload = "not_equals"
        environment = self._environment
        price = price_of(name, overload, dict(environment.costs), dict(environment.overload_costs))
        if name == "@not_strictly_false":
            return _lenient(operands[0])
        return _strict(self._function(node), operands, price, self._stops_early(node))

    def _function(self, node: Call) -> Callable[..., Value]:
        if node.function == "_==_":
            return values.equal
        if node.function == "_!=_":
            return lambda left, right: not values.safely_equal(left, right)
        first = node.args[0] if node.args else None
        if isinstance(first, Ident) and first.name == ACCUMULATOR:
            local = self._local(ACCUMULATOR)
            if local is not None and local[0] in self._owned:
                if node.function == "_+_":
                    return _append
                if node.function == "cel.@mapInsert":
                    return _insert
        return self._environment.functions[node.function].bind(node.overloads, len(node.operands()))

    def _stops_early(self, node: Call) -> bool:
        """Whether upstream gives up at the first failed argument (and then charges nothing)."""
        operands = node.operands()
        if len(operands) > 2:
            return True
        place = self._environment.patterns.get(node.function)
        return place is not None and place < len(operands) and operands[place] in self._constants

    def _logic(self, node: Call) -> Step:
        terms = [self.plan(arg) for arg in node.args]
        decided = node.function == "_||_"

        def run(frame: Frame, meter: Meter) -> Value:
            failure: EvaluationError | None = None
            for term in terms:
                value = term(frame, meter)
                if value is decided:
                    return decided
                if failure is None and value is not (not decided):
                    failure = value if isinstance(value, EvaluationError) else overload_error()
            return (not decided) if failure is None else failure

        return run

    def _or_optional(self, node: Call) -> Step:
        assert node.target is not None
        optional, other = self.plan(node.target), self.plan(node.args[0])
        unwraps = node.function == "orValue"

        def run(frame: Frame, meter: Meter) -> Value:
            value = optional(frame, meter)
            if isinstance(value, EvaluationError):
                return value
            if value.__class__ is not Optional:
                return overload_error()
            if value is NONE:
                return other(frame, meter)
            return value.value if unwraps else value

        return run

    def _membership(self, item: Step, members: Membership) -> Step:
        def run(frame: Frame, meter: Meter) -> Value:
            value = item(frame, meter)
            if isinstance(value, EvaluationError):
                return value
            try:
                return is_member(value, members)
            except EvaluationError as error:
                return error

        return run

    # Containers

    def _list(self, node: ListLiteral) -> Step:
        elements = [(self.plan(element), index in node.optional) for index, element in enumerate(node.elements)]

        def build(frame: Frame, meter: Meter) -> Value:
            items: list[Value] = []
            result: Value = items
            for element, optional in elements:
                value = element(frame, meter)
                if isinstance(value, EvaluationError):
                    result = value
                    break
                if optional:
                    if value.__class__ is not Optional:
                        result = EvaluationError(
                            f"cannot initialize optional list element from non-optional value {value}"
                        )
                        break
                    if value is NONE:
                        continue
                    value = value.value
                items.append(value)
            meter.charge(LIST_COST)
            return result

        return build

    def _map(self, node: MapLiteral) -> Step:
        entries = [
            (self.plan(entry.key), self.plan(entry.value), entry.optional)
            for entry in node.entries
            if isinstance(entry.key, Node)
        ]

        def build(frame: Frame, meter: Meter) -> Value:
            result = _fill(entries, frame, meter)
            meter.charge(MAP_COST)
            return result

        return build

    # Loops

    def _bind(self, node: Comprehension) -> Step:
        initial = self.plan(node.accu_init)
        slot = self._slot()
        self._scopes.append({node.accu_var: (slot, initial)})
        result = self.plan(node.result)
        self._scopes.pop()

        def run(frame: Frame, meter: Meter) -> Value:
            frame[slot] = _UNSET
            return result(frame, meter)

        return run

    def _loop(self, node: Comprehension) -> Step:
        source = self.plan(node.iter_range)
        initial = self.plan(node.accu_init)
        accu, first = self._slot(), self._slot()
        second = self._slot() if node.iter_var2 else first
        kind = _container_kind(node.accu_init)
        if kind is not None:
            self._owned.add(accu)
            # Built in place, so each run needs its own.
            initial = _fresh(kind)
        self._scopes.append({node.accu_var: (accu, initial)})
        variables: dict[str, tuple[int, Step | None]] = {node.iter_var: (first, None)}
        if node.iter_var2:
            variables[node.iter_var2] = (second, None)
        self._scopes.append(variables)
        condition, step = self.plan(node.condition), self.plan(node.step)
        self._scopes.pop()
        result = self.plan(node.result)
        self._scopes.pop()
        two = bool(node.iter_var2)

        def run(frame: Frame, meter: Meter) -> Value:
            container = source(frame, meter)
            if isinstance(container, EvaluationError):
                return container
            try:
                pairs = iterate(container, two)
            except EvaluationError as error:
                return error
            frame[accu] = _UNSET
            for frame[first], frame[second] in pairs:
                go_on = condition(frame, meter)
                if go_on is False:
                    break
                frame[accu] = step(frame, meter)
            return result(frame, meter)

        return run


def _container_kind(node: Node) -> type | None:
    if isinstance(node, ListLiteral) and not node.elements:
        return list
    if isinstance(node, MapLiteral) and not node.entries:
        return dict
    return None


def _fresh(kind: type) -> Step:
    return lambda frame, meter: kind()


def _append(left: Value, right: Value) -> Value:
    if left.__class__ is not list or right.__class__ is not list:
        return operators.add(left, right)
    operators.bounded(len(left) + len(right))
    left.extend(right)
    return left


def _insert(target: Value, *parts: Value) -> Value:
    pairs = [parts] if len(parts) == 2 else [(key, values.find(parts[0], key)[0]) for key in values.keys(parts[0])]
    for key, value in pairs:
        stored = values.hashable_key(key)
        if stored in target:
            raise EvaluationError(f"insert failed: key {access.show_key(key)} already exists")
        target[stored] = value
    return target


def _fill(entries: list[tuple[Step, Step, bool]], frame: Frame, meter: Meter) -> Value:
    result: dict[Any, Value] = {}
    for key_step, value_step, optional in entries:
        key = key_step(frame, meter)
        if isinstance(key, EvaluationError):
            return key
        value = value_step(frame, meter)
        if isinstance(value, EvaluationError):
            return value
        try:
            stored = values.hashable_key(key)
        except EvaluationError as error:
            return error
        if optional:
            if value.__class__ is not Optional:
                return EvaluationError(f"cannot initialize optional entry '{key}' from non-optional value {value}")
            if value is NONE:
                result.pop(stored, None)
                continue
            value = value.value
        result[stored] = value
    return result


def _lenient(operand: Step) -> Step:
    def run(frame: Frame, meter: Meter) -> Value:
        value = operand(frame, meter)
        result = value is not False
        meter.cost += 1
        if meter.cost > meter.limit:
            raise CostLimitError
        return result

    return run


def _charged(read: Step) -> Step:
    def run(frame: Frame, meter: Meter) -> Value:
        value = read(frame, meter)
        meter.cost += 1
        if meter.cost > meter.limit:
            raise CostLimitError
        return value

    return run


def _strict(
    function: Callable[..., Value],
    operands: list[Step],
    price: Callable[[list[Value], Value], int],
    stops_early: bool,
) -> Step:
    count = len(operands)
    if count == 2 and not stops_early and price is unit_price:
        return _binary(function, operands[0], operands[1])

    def run(frame: Frame, meter: Meter) -> Value:
        args: list[Value] = []
        failure: EvaluationError | None = None
        for operand in operands:
            value = operand(frame, meter)
            args.append(value)
            if failure is None and isinstance(value, EvaluationError):
                failure = value
                if stops_early:
                    break
        result: Value
        if failure is not None:
            result = failure
        else:
            try:
                result = function(*args)
            except CostLimitError:
                raise
            except EvaluationError as error:
                result = error
            except RecursionError:
                result = EvaluationError("value is nested too deeply")
        if len(args) == count:
            meter.charge(price(args, result))
        return result

    return run


def _binary(function: Callable[..., Value], one: Step, two: Step) -> Step:
    """What most steps of a loop are: two operands, the price of one."""

    def run(frame: Frame, meter: Meter) -> Value:
        left = one(frame, meter)
        right = two(frame, meter)
        result: Value
        if isinstance(left, EvaluationError):
            result = left
        elif isinstance(right, EvaluationError):
            result = right
        else:
            try:
                result = function(left, right)
            except CostLimitError:
                raise
            except EvaluationError as error:
                result = error
        meter.cost += 1
        if meter.cost > meter.limit:
            raise CostLimitError
        return result

    return run
