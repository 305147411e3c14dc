"""CEL as its specification has it: every extension we know, no Kubernetes rules, checking optional.

Two uses: the specification's conformance tests, and analysis of expressions that do not pass the checker. Unchecked,
a name is looked up when the expression runs, and an unknown one is an error only there.

Upstream counterpart: a cel-go environment with all libraries; cel.Env.Parse without Check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubedra.cel.ast import Call, Comprehension, Entry, Ident, ListLiteral, Literal, MapLiteral, Node, Select
from kubedra.cel.environment import Environment, Function, Library, Overload, build
from kubedra.cel.errors import EvaluationError
from kubedra.cel.library import optionals, strings
from kubedra.cel.library.versions import libraries
from kubedra.cel.parser import parse
from kubedra.cel.selector import Program, sanitize
from kubedra.cel.types import DYN, STRING, Type
from kubedra.cel.values import Value

_UNDECLARED: Final = "@undeclared"


def _undeclared(message: str) -> Value:
    raise EvaluationError(message)


_RUNTIME_NAMES: Final = Library(
    functions=(Function(_UNDECLARED, (Overload("undeclared", (STRING,), DYN, False, _undeclared),), _undeclared),)
)


def plain_environment(variables: Mapping[str, Type], functions: tuple[Function, ...] = ()) -> Environment:
    """All libraries, mixed literals allowed, back-quoted names allowed."""
    all_libraries = (
        *libraries("1.37", stored=True),
        optionals.BIND,
        strings.REVERSE,
        _RUNTIME_NAMES,
        Library(functions=functions),
    )
    return build(
        all_libraries,
        variables,
        homogeneous_literals=False,
        literal_validation=False,
        escaped_identifiers=True,
    )


def compile_unchecked(expression: str, environment: Environment) -> Program:
    """Parse and plan without checking; raises CompileError for syntax only."""
    expression = sanitize(expression)
    root = parse(expression, environment.macros, escaped_identifiers=environment.escaped_identifiers)
    root = _Resolver(environment).resolve(root)
    return Program(expression, root, environment)


class _Resolver:
    """Gives every node the type dyn and binds what names can be bound."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._scopes: list[set[str]] = []

    def resolve(self, node: Node) -> Node:
        node.type = DYN
        if isinstance(node, Ident):
            return self._name(node, [node.name])
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListLiteral):
            node.elements = [self.resolve(element) for element in node.elements]
        elif isinstance(node, MapLiteral):
            for entry in node.entries:
                self._entry(entry)
        elif isinstance(node, Comprehension):
            self._comprehension(node)
        return node

    def _entry(self, entry: Entry) -> None:
        if isinstance(entry.key, Node):
            entry.key = self.resolve(entry.key)
        entry.value = self.resolve(entry.value)

    def _is_local(self, name: str) -> bool:
        return any(name in scope for scope in self._scopes)

    def _missing(self, node: Node, message: str) -> Node:
        literal = Literal(node.offset, "string", message)
        literal.type = STRING
        call = Call(node.offset, _UNDECLARED, [literal])
        call.type = DYN
        return call

    def _name(self, node: Node, names: list[str]) -> Node:
        name = ".".join(names)
        known = self._known(node, name, names)
        if known is not None:
            return known
        return self._missing(node, f"undeclared reference to '{name}' (in container '')")

    def _known(self, node: Node, name: str, names: list[str]) -> Node | None:
        if len(names) == 1 and self._is_local(name):
            return node
        name = name.removeprefix(".")
        if name in self._environment.variables:
            ident = Ident(node.offset, name)
            ident.type = self._environment.variables[name]
            return ident
        named = self._environment.types.get(name)
        if named is None:
            return None
        ident = Ident(node.offset, name)
        ident.type = DYN
        ident.is_constant = True
        ident.constant = Type(named.kind, named.name)
        return ident

    def _select(self, node: Select) -> Node:
        names = _names(node)
        if names is not None and not node.test_only and not self._is_local(names[0]):
            known = self._known(node, ".".join(names), names)
            if known is not None:
                return known
        node.operand = self.resolve(node.operand)
        return node

    def _call(self, node: Call) -> Node:
        node.args = [self.resolve(arg) for arg in node.args]
        if node.target is not None:
            names = _names(node.target)
            qualified = ".".join((*names, node.function)).removeprefix(".") if names is not None else ""
            if qualified in self._environment.functions:
                node.function, node.target = qualified, None
                return node
            node.target = self.resolve(node.target)
        node.function = node.function.removeprefix(".")
        if node.function not in self._environment.functions:
            return self._missing(node, f"unbound function: {node.function}")
        return node

    def _comprehension(self, node: Comprehension) -> None:
        node.iter_range = self.resolve(node.iter_range)
        node.accu_init = self.resolve(node.accu_init)
        self._scopes.append({node.accu_var})
        self._scopes.append({node.iter_var, node.iter_var2} - {""})
        node.condition = self.resolve(node.condition)
        node.step = self.resolve(node.step)
        self._scopes.pop()
        node.result = self.resolve(node.result)
        self._scopes.pop()


def _names(node: Node) -> list[str] | None:
    names: list[str] = []
    while isinstance(node, Select):
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return [node.name, *reversed(names)]
