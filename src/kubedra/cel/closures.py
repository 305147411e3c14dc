"""The fast evaluator: closures over a list of slots, errors as exceptions, nothing counted.

It runs what cannot become expensive (see selector.py for the rule). The shapes that device selectors are made of are
fused into single closures: reading ``device.attributes["d"].id``, comparing it with a constant, ``in`` a constant
list, comparing a capacity with a constant quantity. Everything else is one closure per node.

Answers and messages equal those of the counting evaluator (metering.py); a property test holds them together.

Upstream counterpart: cel-go interpreter/interpretable.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubedra.cel import access, values
from kubedra.cel.ast import Call, Comprehension, Ident, ListLiteral, MapLiteral, Node, Select
from kubedra.cel.environment import Environment
from kubedra.cel.errors import CostLimitError, EvaluationError
from kubedra.cel.fused import (
    MEMBER_COMPARISONS,
    RELATIONS,
    Closure,
    Frame,
    all_of,
    any_of,
    apply,
    equals_int,
    equals_object,
    equals_text,
    iterate,
    member_of,
    read_equals,
    reader,
)
from kubedra.cel.library import operators
from kubedra.cel.library.operators import overload_error
from kubedra.cel.program import Constants, Layout, Membership, instantiation_error
from kubedra.cel.values import NONE, Optional, Value, equal

_UNSET: Final = object()


def compile_closure(root: Node, environment: Environment, layout: Layout, constants: Constants) -> tuple[Closure, int]:
    """A closure for a checked expression, and how many slots its frame needs in all."""
    compiler = _Compiler(environment, layout, constants)
    return compiler.compile(root), compiler.slots


class _Compiler:
    def __init__(self, environment: Environment, layout: Layout, constants: Constants) -> None:
        self._environment = environment
        self._layout = layout
        self._constants = constants
        self._scopes: list[dict[str, tuple[int, Closure | None]]] = []
        self.slots = layout.size

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _local(self, name: str) -> tuple[int, Closure | None] | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def compile(self, node: Node) -> Closure:
        known, value = self._constants.get(node)
        if known:
            return lambda frame: value
        if isinstance(node, Ident):
            return self._ident(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        if isinstance(node, Comprehension):
            return self._bind(node) if node.is_bind else self._loop(node)
        raise instantiation_error(f"unsupported expression {type(node).__name__}")

    # Reading

    def _ident(self, node: Ident) -> Closure:
        local = self._local(node.name)
        if local is None:
            slot = self._layout.variables[node.name.removeprefix(".")]
            return lambda frame: frame[slot]
        slot, lazy = local
        if lazy is None:
            return lambda frame: frame[slot]

        def read(frame: Frame) -> Value:
            value = frame[slot]
            if value is _UNSET:
                value = frame[slot] = lazy(frame)
            return value

        return read

    def _field_slot(self, node: Node) -> int | None:
        """The slot of ``device.attributes`` and its like."""
        if isinstance(node, Select) and not node.test_only and isinstance(node.operand, Ident):
            name = node.operand.name
            if self._local(name) is None:
                return self._layout.fields.get((name.removeprefix("."), node.field))
        return None

    def _constant_text(self, node: Node) -> str | None:
        known, value = self._constants.get(node)
        return value if known and value.__class__ is str else None

    def _two_keys(self, node: Node) -> tuple[int, str, str] | None:
        """(slot, first key, second key) of ``device.attributes["d"].id`` and its like."""
        inner: Node
        if isinstance(node, Select) and not node.test_only:
            last: str | None = node.field
            inner = node.operand
        elif isinstance(node, Call) and node.function == "_[_]":
            last = self._constant_text(node.args[1])
            inner = node.args[0]
        else:
            return None
        first: str | None
        if isinstance(inner, Call) and inner.function == "_[_]":
            first = self._constant_text(inner.args[1])
            base = inner.args[0]
        elif isinstance(inner, Select) and not inner.test_only:
            first, base = inner.field, inner.operand
        else:
            return None
        slot = self._field_slot(base)
        if slot is None or first is None or last is None:
            return None
        if base.type is None or base.type.kind != "map" or base.type.params[1].kind != "map":
            return None
        return slot, first, last

    def _select(self, node: Select) -> Closure:
        slot = self._field_slot(node)
        if slot is not None:
            field_slot = slot
            return lambda frame: frame[field_slot]
        if node.test_only:
            return self._has(node)
        keys = self._two_keys(node)
        if keys is not None:
            return reader(*keys)
        return self._key_read(self.compile(node.operand), node.field)

    def _key_read(self, operand: Closure, key: str) -> Closure:
        def read(frame: Frame) -> Value:
            container = operand(frame)
            if container.__class__ is dict:
                try:
                    return container[key]
                except KeyError:
                    raise EvaluationError(f"no such key: {key}") from None
            return access.select(container, key)

        return read

    def _has(self, node: Select) -> Closure:
        key = node.field
        inner = node.operand
        if isinstance(inner, Call) and inner.function == "_[_]":
            slot = self._field_slot(inner.args[0])
            first = self._constant_text(inner.args[1])
            base = inner.args[0].type
            if slot is not None and first is not None and base is not None and base.kind == "map":
                field_slot, domain = slot, first
                return lambda frame: key in frame[field_slot][domain]
        operand = self.compile(inner)
        return lambda frame: access.has(operand(frame), key)

    # Calls

    def _call(self, node: Call) -> Closure:
        special = _SPECIAL.get(node.function)
        if special is not None:
            return special(self, node)
        fused = self._fused_member(node)
        if fused is not None:
            return fused
        operands = [self.compile(operand) for operand in node.operands()]
        function = self._environment.functions[node.function].bind(node.overloads, len(operands))
        return apply(function, operands)

    def _fused_member(self, node: Call) -> Closure | None:
        """``capacity.isGreaterThan(quantity("…"))`` and the like with a constant right side."""
        compare = MEMBER_COMPARISONS.get(node.function)
        if compare is None or node.target is None or len(node.args) != 1:
            return None
        constant = self._constant_object(node.args[0])
        if constant is None:
            return None
        function = self._environment.functions[node.function].bind(node.overloads, 2)
        target = self.compile(node.target)
        kind = constant.__class__

        def run(frame: Frame) -> Value:
            value = target(frame)
            if value.__class__ is kind:
                return compare(value, constant)
            return function(value, constant)

        return run

    def _constant_object(self, node: Node) -> Value:
        """A quantity or version written as a constant; one that does not parse is left to run time."""
        if not isinstance(node, Call) or node.function not in ("quantity", "semver") or node.target is not None:
            return None
        parts = [self._constants.get(arg) for arg in node.args]
        if not all(known for known, _ in parts):
            return None
        function = self._environment.functions[node.function].bind(node.overloads, len(parts))
        try:
            return function(*(value for _, value in parts))
        except EvaluationError:
            return None

    def _logic(self, node: Call) -> Closure:
        terms = tuple(self.compile(arg) for arg in node.args)
        return any_of(terms) if node.function == "_||_" else all_of(terms)

    def _conditional(self, node: Call) -> Closure:
        condition, yes, no = (self.compile(arg) for arg in node.args)

        def run(frame: Frame) -> Value:
            value = condition(frame)
            if value is True:
                return yes(frame)
            if value is False:
                return no(frame)
            raise overload_error()

        return run

    def _equality(self, node: Call) -> Closure:
        one, two = node.args
        negated = node.function == "_!=_"
        known, constant = self._constants.get(two)
        if known and constant.__class__ is str:
            keys = self._two_keys(one)
            if keys is not None and not negated:
                return read_equals(*keys, constant)
            return equals_text(self.compile(one), constant, negated)
        left, right = self.compile(one), self.compile(two)
        if known and constant.__class__ is int:
            return equals_int(left, constant, negated)
        fixed = self._constant_object(two)
        if fixed is not None:
            return equals_object(left, fixed, negated)
        if negated:
            return lambda frame: not values.safely_equal(left(frame), right(frame))
        return lambda frame: equal(left(frame), right(frame))

    def _membership(self, node: Call) -> Closure:
        known, items = self._constants.get(node.args[1])
        if not (known and node.overloads == ("in_list",)):
            left, right = self.compile(node.args[0]), self.compile(node.args[1])
            return lambda frame: operators.contains(left(frame), right(frame))
        if not items:
            return lambda frame: False
        item = self.compile(node.args[0])
        if not Membership.possible(items):
            return lambda frame: operators.contains(item(frame), items)
        return member_of(item, Membership(items))

    def _relation(self, node: Call) -> Closure:
        relate, fast = RELATIONS[node.function]
        left, right = self.compile(node.args[0]), self.compile(node.args[1])
        known, constant = self._constants.get(node.args[1])
        if known and constant.__class__ is int:

            def run(frame: Frame) -> Value:
                value = left(frame)
                if value.__class__ is int:
                    return fast(value, constant)
                return relate(value, constant)

            return run
        return lambda frame: relate(left(frame), right(frame))

    def _index(self, node: Call) -> Closure:
        keys = self._two_keys(node)
        if keys is not None:
            return reader(*keys)
        container, key = self.compile(node.args[0]), self.compile(node.args[1])
        return lambda frame: access.select(container(frame), key(frame))

    def _optional_index(self, node: Call) -> Closure:
        container, key = self.compile(node.args[0]), self.compile(node.args[1])
        return lambda frame: access.select_optional(container(frame), key(frame))

    def _or_optional(self, node: Call) -> Closure:
        if node.target is None:
            operands = [self.compile(operand) for operand in node.operands()]
            function = self._environment.functions[node.function].bind(node.overloads, len(operands))
            return apply(function, operands)
        optional, other = self.compile(node.target), self.compile(node.args[0])
        unwraps = node.function == "orValue"

        def run(frame: Frame) -> Value:
            value = optional(frame)
            if value.__class__ is not Optional:
                raise overload_error()
            if value is NONE:
                return other(frame)
            return value.value if unwraps else value

        return run

    # Containers and loops

    def _list(self, node: ListLiteral) -> Closure:
        elements = [self.compile(element) for element in node.elements]
        if not node.optional:
            return lambda frame: [element(frame) for element in elements]
        marked = [(element, index in node.optional) for index, element in enumerate(elements)]

        def build(frame: Frame) -> Value:
            items: list[Value] = []
            for element, optional in marked:
                value = element(frame)
                if optional:
                    if value.__class__ is not Optional:
                        raise EvaluationError(
                            f"cannot initialize optional list element from non-optional value {value}"
                        )
                    if value is NONE:
                        continue
                    value = value.value
                items.append(value)
            return items

        return build

    def _map(self, node: MapLiteral) -> Closure:
        entries = [
            (self.compile(entry.key), self.compile(entry.value), entry.optional)
            for entry in node.entries
            if isinstance(entry.key, Node)
        ]

        def build(frame: Frame) -> Value:
            result: dict[Any, Value] = {}
            for key_of_entry, value_of_entry, optional in entries:
                key = values.hashable_key(key_of_entry(frame))
                value = value_of_entry(frame)
                if optional:
                    if value.__class__ is not Optional:
                        raise EvaluationError(
                            f"cannot initialize optional entry '{key}' from non-optional value {value}"
                        )
                    if value is NONE:
                        result.pop(key, None)
                        continue
                    value = value.value
                result[key] = value
            return result

        return build

    def _bind(self, node: Comprehension) -> Closure:
        initial = self.compile(node.accu_init)
        slot = self._slot()
        self._scopes.append({node.accu_var: (slot, initial)})
        result = self.compile(node.result)
        self._scopes.pop()

        def run(frame: Frame) -> Value:
            frame[slot] = _UNSET
            return result(frame)

        return run

    def _loop(self, node: Comprehension) -> Closure:
        source, initial = self.compile(node.iter_range), self.compile(node.accu_init)
        accu = self._slot()
        first = self._slot()
        second = self._slot() if node.iter_var2 else first
        self._scopes.append({node.accu_var: (accu, None)})
        variables: dict[str, tuple[int, Closure | None]] = {node.iter_var: (first, None)}
        if node.iter_var2:
            variables[node.iter_var2] = (second, None)
        self._scopes.append(variables)
        condition, step = self.compile(node.condition), self.compile(node.step)
        self._scopes.pop()
        result = self.compile(node.result)
        self._scopes.pop()
        two = bool(node.iter_var2)
        quantifier = isinstance(node.condition, Call)

        def run(frame: Frame) -> Value:
            pairs = iterate(source(frame), two)
            frame[accu] = initial(frame)
            pending: EvaluationError | None = None
            for frame[first], frame[second] in pairs:
                # An accumulator that is an error goes on, as upstream's error values do.
                if pending is None and condition(frame) is False:
                    break
                try:
                    if pending is not None and quantifier:
                        value = step_without_accumulator(frame)
                        if value is decided:
                            frame[accu] = value
                            pending = None
                        continue
                    frame[accu] = step(frame)
                except CostLimitError:
                    raise
                except EvaluationError as error:
                    pending = pending or error
                    if not quantifier:
                        raise
            if pending is not None:
                raise pending
            return result(frame)

        step_without_accumulator: Closure = step
        decided: Value = None
        if quantifier and isinstance(node.step, Call):
            # all() and exists(): the term beside the accumulator decides over an earlier error.
            self._scopes.append({node.accu_var: (accu, None)})
            self._scopes.append(variables)
            step_without_accumulator = self.compile(node.step.args[-1])
            self._scopes.pop()
            self._scopes.pop()
            decided = node.step.function == "_||_"
        return run


_SPECIAL: Final[dict[str, Callable[[_Compiler, Call], Closure]]] = {
    "_&&_": _Compiler._logic,
    "_||_": _Compiler._logic,
    "_?_:_": _Compiler._conditional,
    "_==_": _Compiler._equality,
    "_!=_": _Compiler._equality,
    "@in": _Compiler._membership,
    "_<_": _Compiler._relation,
    "_<=_": _Compiler._relation,
    "_>_": _Compiler._relation,
    "_>=_": _Compiler._relation,
    "_[_]": _Compiler._index,
    "_[?_]": _Compiler._optional_index,
    "_?._": _Compiler._optional_index,
    "or": _Compiler._or_optional,
    "orValue": _Compiler._or_optional,
}
