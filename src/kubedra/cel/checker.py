"""Gives every node its static type and every call its overloads, or says what does not fit.

Works like Hindley-Milner as upstream does: fresh type variables per overload, one mapping for the whole expression,
dyn absorbing everything. All findings are collected; the caller turns them into one CompileError.

Upstream counterpart: cel-go checker/checker.go, checker/env.go, checker/errors.go, cel/validator.go.
"""

from __future__ import annotations

import itertools

from kubedra.cel import types
from kubedra.cel.ast import (
    Call,
    Comprehension,
    Entry,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    walk,
)
from kubedra.cel.environment import Environment, Function, Overload
from kubedra.cel.errors import Issue
from kubedra.cel.types import Substitution, Type, show, substitute, unwrap_optional
from kubedra.cel.values import type_of as value_type

_LITERALS = {
    "null": types.NULL,
    "bool": types.BOOL,
    "int": types.INT,
    "uint": types.UINT,
    "double": types.DOUBLE,
    "string": types.STRING,
    "bytes": types.BYTES,
}


def check(node: Node, environment: Environment) -> tuple[Node, list[Issue]]:
    """Type the tree in place; returns the (possibly replaced) root and what is wrong."""
    checker = _Checker(environment)
    root = checker.check(node)
    for item in walk(root):
        if item.type is not None:
            item.type = substitute(checker.mapping, item.type, to_dyn=True)
    return root, checker.issues


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.mapping: Substitution = {}
        self.issues: list[Issue] = []
        self._scopes: list[dict[str, Type]] = []
        self._fresh = itertools.count()
        self._parameters: dict[str, frozenset[str]] = {}

    def _report(self, offset: int, message: str) -> Type:
        self.issues.append(Issue(offset, message))
        return types.ERROR

    def _undeclared(self, offset: int, name: str) -> Type:
        return self._report(offset, f"undeclared reference to '{name}' (in container '')")

    def _mismatch(self, offset: int, expected: Type, actual: Type) -> Type:
        return self._report(offset, f"expected type '{show(expected)}' but found '{show(actual)}'")

    def _new_variable(self) -> Type:
        return types.param(f"_var{next(self._fresh)}")

    def _assignable(self, left: list[Type], right: list[Type]) -> bool:
        mapping = types.assignable(self.mapping, left, right)
        if mapping is None:
            return False
        self.mapping = mapping
        return True

    def _local(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def check(self, node: Node) -> Node:
        """Type a node; returns it or what stands for it (a qualified name becomes one identifier)."""
        if isinstance(node, Literal):
            node.type = _LITERALS[node.kind]
        elif isinstance(node, Ident):
            node.type = self._ident(node)
        elif isinstance(node, Select):
            return self._select(node)
        elif isinstance(node, Call):
            self._call(node)
        elif isinstance(node, ListLiteral):
            self._list(node)
        elif isinstance(node, MapLiteral):
            self._map(node)
        elif isinstance(node, StructLiteral):
            self._struct(node)
        elif isinstance(node, Comprehension):
            self._comprehension(node)
        return node

    def _type(self, node: Node) -> Type:
        assert node.type is not None
        return node.type

    # Names

    def _ident(self, node: Ident) -> Type:
        local = self._local(node.name)
        if local is not None:
            return local
        return self._resolve(node) or self._undeclared(node.offset, node.name)

    def _resolve(self, node: Ident) -> Type | None:
        name = node.name.removeprefix(".")
        variable = self.environment.variables.get(name)
        if variable is not None:
            return variable
        named = self.environment.types.get(name)
        if named is None:
            return None
        node.is_constant = True
        node.constant = Type(named.kind, named.name)
        return types.type_of(named)

    def _select(self, node: Select) -> Node:
        names = _qualified_name(node)
        if names is not None and self._local(names[0]) is None:
            ident = Ident(node.offset, ".".join(names))
            resolved = self._resolve(ident)
            if resolved is not None:
                ident.type = resolved
                return ident
        node.operand = self.check(node.operand)
        result = self._field(node.offset, node.operand, node.field, optional=False)
        node.type = types.BOOL if node.test_only else substitute(self.mapping, result, to_dyn=False)
        return node

    def _field(self, offset: int, operand: Node, field: str, optional: bool) -> Type:
        operand_type = substitute(self.mapping, self._type(operand), to_dyn=False)
        target, was_optional = unwrap_optional(operand_type)
        result = types.ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            fields = self.environment.structs.get(target.name)
            if fields is None:
                self._report(offset, f"unexpected failed resolution of '{target.name}'")
            elif field in fields:
                result = fields[field]
            else:
                self._report(offset, f"undefined field '{field}'")
        elif target.kind == "type_param":
            self._assignable([types.DYN], [target])
            result = types.DYN
        else:
            if not types.is_dynamic_or_error(target):
                self._report(offset, f"type '{show(target)}' does not support field selection")
            result = types.DYN
        return types.optional_of(result) if was_optional or optional else result

    # Calls

    def _call(self, node: Call) -> None:
        if node.function == "_?._":
            field = node.args[1]
            node.args[0] = self.check(node.args[0])
            field.type = types.STRING
            assert isinstance(field, Literal)
            result = self._field(node.offset, node.args[0], str(field.value), optional=True)
            node.type = substitute(self.mapping, result, to_dyn=False)
            node.overloads = ("select_optional_field",)
            return
        node.args = [self.check(arg) for arg in node.args]
        function: Function | None
        if node.target is None:
            function = self.environment.functions.get(node.function.removeprefix("."))
            if function is None:
                node.type = self._undeclared(node.offset, node.function)
                return
            node.function = function.name
        else:
            names = _qualified_name(node.target)
            if names is not None:
                function = self.environment.functions.get(f"{'.'.join(names).removeprefix('.')}.{node.function}")
                if function is not None:
                    node.function = function.name
                    node.target = None
                    self._resolve_overload(node, function)
                    return
            node.target = self.check(node.target)
            function = self.environment.functions.get(node.function)
            if function is None:
                node.type = self._undeclared(node.offset, node.function)
                return
        self._resolve_overload(node, function)

    def _resolve_overload(self, node: Call, function: Function) -> None:
        member = node.target is not None
        arg_types = [self._type(operand) for operand in node.operands()]
        if function.name in ("_&&_", "_||_"):
            self._logic(node, function, arg_types)
            return
        matched: list[str] = []
        result: Type | None = None
        for overload in function.overloads:
            if overload.member is not member or len(overload.args) != len(arg_types):
                continue
            expected, returned = self._instantiate(overload)
            if not self._assignable(arg_types, expected):
                continue
            matched.append(overload.id)
            returned = substitute(self.mapping, returned, to_dyn=False)
            if result is None:
                result = returned
            elif not types.is_dynamic(result) and returned != result:
                result = types.DYN
        if result is None:
            shown = [show(substitute(self.mapping, item, to_dyn=True)) for item in arg_types]
            receiver = f"{shown.pop(0)}." if member else ""
            node.type = self._report(
                node.offset,
                f"found no matching overload for '{function.name}' applied to '{receiver}({', '.join(shown)})'",
            )
            return
        node.overloads = tuple(matched)
        node.type = result

    def _logic(self, node: Call, function: Function, arg_types: list[Type]) -> None:
        node.type = types.BOOL
        for arg, arg_type in zip(node.args, arg_types, strict=True):
            if not self._assignable([arg_type], [types.BOOL]):
                node.type = self._mismatch(arg.offset, types.BOOL, arg_type)
        node.overloads = (function.overloads[0].id,)

    def _instantiate(self, overload: Overload) -> tuple[list[Type], Type]:
        names = self._parameters.get(overload.id)
        if names is None:
            names = self._parameters[overload.id] = overload.parameters
        if not names:
            return list(overload.args), overload.result
        fresh = {name: self._new_variable() for name in sorted(names)}
        return [substitute(fresh, item, to_dyn=False) for item in overload.args], substitute(
            fresh, overload.result, to_dyn=False
        )

    # Literals

    def _join(self, node: Node, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self._assignable([previous], [current]):
            return types.most_general(previous, current)
        if not self.environment.homogeneous_literals:
            return types.DYN
        return self._mismatch(node.offset, previous, current)

    def _optional_value(self, node: Node, type_: Type) -> Type:
        inner, was_optional = unwrap_optional(type_)
        if not was_optional and not types.is_dynamic(inner):
            self._mismatch(node.offset, types.optional_of(inner), inner)
        return inner

    def _list(self, node: ListLiteral) -> None:
        element_type: Type | None = None
        for index, element in enumerate(node.elements):
            element = node.elements[index] = self.check(element)
            current = self._type(element)
            if index in node.optional:
                current = self._optional_value(element, current)
            element_type = self._join(element, element_type, current)
        node.type = types.list_of(element_type or self._new_variable())

    def _map(self, node: MapLiteral) -> None:
        key_type: Type | None = None
        value_type_: Type | None = None
        for entry in node.entries:
            assert isinstance(entry.key, Node)
            entry.key = self.check(entry.key)
            key_type = self._join(entry.key, key_type, self._type(entry.key))
            value_type_ = self._join(entry.value, value_type_, self._entry_value(entry))
        node.type = types.map_of(key_type or self._new_variable(), value_type_ or self._new_variable())

    def _entry_value(self, entry: Entry) -> Type:
        entry.value = self.check(entry.value)
        current = self._type(entry.value)
        return self._optional_value(entry.value, current) if entry.optional else current

    def _struct(self, node: StructLiteral) -> None:
        name = node.name.removeprefix(".")
        if name in self.environment.types:
            self._report(node.offset, f"'{name}' is not a message type")
        else:
            self._undeclared(node.offset, node.name)
        node.type = types.ERROR

    # Loops

    def _comprehension(self, node: Comprehension) -> None:
        node.iter_range = self.check(node.iter_range)
        node.accu_init = self.check(node.accu_init)
        range_type = substitute(self.mapping, self._type(node.iter_range), to_dyn=False)
        accu_type = self._type(node.accu_init)
        first: Type
        second: Type
        if range_type.kind == "list":
            element = range_type.params[0]
            first, second = (types.INT, element) if node.iter_var2 else (element, element)
        elif range_type.kind == "map":
            first, second = range_type.params
        elif range_type.kind in ("dyn", "error", "type_param"):
            self._assignable([types.DYN], [range_type])
            first = second = types.DYN
        else:
            self._report(
                node.iter_range.offset,
                f"expression of type '{show(range_type)}' cannot be range of a comprehension "
                "(must be list, map, or dynamic)",
            )
            first = second = types.ERROR
        self._scopes.append({node.accu_var: accu_type})
        variables = {node.iter_var: first}
        if node.iter_var2:
            variables[node.iter_var2] = second
        self._scopes.append(variables)
        node.condition = self.check(node.condition)
        self._assert(node.condition, types.BOOL)
        node.step = self.check(node.step)
        self._assert(node.step, accu_type)
        self._scopes.pop()
        node.result = self.check(node.result)
        self._scopes.pop()
        node.type = substitute(self.mapping, self._type(node.result), to_dyn=False)

    def _assert(self, node: Node, expected: Type) -> None:
        actual = self._type(node)
        if not self._assignable([expected], [actual]):
            self._mismatch(node.offset, expected, actual)


def _qualified_name(node: Node) -> list[str] | None:
    """``a.b.c`` as names, or None if it is anything else."""
    names: list[str] = []
    while isinstance(node, Select):
        if node.test_only:
            return None
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    names.append(node.name)
    names.reverse()
    return names


def homogeneity_issues(root: Node) -> list[Issue]:
    """Lists and maps whose elements differ in type although each of them is assignable (a dyn beside a string)."""
    issues: list[Issue] = []

    def compare(expected: Type | None, node: Node, optional: bool) -> tuple[Type, bool]:
        actual = node.type or value_type(None)
        if optional and actual.params:
            actual = actual.params[0]
        if expected is not None and expected != actual:
            issues.append(Issue(node.offset, f"expected type '{show(expected)}' but found '{show(actual)}'"))
            return expected, False
        return expected or actual, True

    for node in walk(root):
        if isinstance(node, ListLiteral):
            expected: Type | None = None
            for index, element in enumerate(node.elements):
                expected, same = compare(expected, element, index in node.optional)
                if not same:
                    break
        elif isinstance(node, MapLiteral):
            key_type: Type | None = None
            item_type: Type | None = None
            for entry in node.entries:
                assert isinstance(entry.key, Node)
                key_type, _ = compare(key_type, entry.key, optional=False)
                item_type, _ = compare(item_type, entry.value, entry.optional)
    return issues
