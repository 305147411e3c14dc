"""What an expression may refer to: variables, struct fields, type names, functions, macros, sizes and prices.

An environment is data. The checker, the cost estimate and both evaluators read it and know nothing of devices, so a
second environment (admission policies: object, oldObject, request) is another value of this class and nothing else.

Upstream counterparts: cel-go cel/env.go, common/decls, k8s.io/apiserver/pkg/cel/environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubedra.cel.errors import EvaluationError
from kubedra.cel.parser import Macro
from kubedra.cel.types import Type
from kubedra.cel.values import CLASSES, NO_SUCH_OVERLOAD, Value, type_of

SizeLookup = Callable[[tuple[str, ...]], "int | None"]
"""Largest size of what lies at a path from a variable ("device", "attributes", "@values", …); None: unknown."""

ActualCost = Callable[[str, "list[Value]", Value], "int | None"]
"""(overload id or "", arguments, result) to the cost of the call; None: the standard price."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature; a member overload has its receiver as first argument."""

    id: str
    args: tuple[Type, ...]
    result: Type
    member: bool = False
    impl: Callable[..., Value] | None = None

    @property
    def parameters(self) -> frozenset[str]:
        """Names of the type parameters that occur."""
        found: set[str] = set()
        for type_ in (*self.args, self.result):
            _collect(type_, found)
        return frozenset(found)

    def accepts(self, values: Iterable[Value]) -> bool:
        """Whether runtime values fit the signature."""
        return all(matches(type_, value) for type_, value in zip(self.args, values, strict=True))


def _collect(type_: Type, found: set[str]) -> None:
    if type_.kind == "type_param":
        found.add(type_.name)
    for item in type_.params:
        _collect(item, found)


def matches(type_: Type, value: Value) -> bool:
    """Whether a value is of a type; of lists and maps the first element is looked at, as upstream does."""
    kind = type_.kind
    if kind in ("dyn", "any", "type_param"):
        return True
    if value is None:
        return kind == "null"
    classes = CLASSES.get(type_.name)
    if classes is None or value.__class__ not in classes:
        return False
    if isinstance(value, list) and value and type_.params:
        return matches(type_.params[0], value[0])
    return True


@dataclass(frozen=True, slots=True)
class Function:
    """A named function. ``singleton`` serves all overloads and checks its arguments itself."""

    name: str
    overloads: tuple[Overload, ...]
    singleton: Callable[..., Value] | None = None
    guarded: bool = True

    def merged(self, other: Function) -> Function:
        """Both libraries' overloads of one name."""
        known = {overload.id for overload in self.overloads}
        added = tuple(overload for overload in other.overloads if overload.id not in known)
        return Function(
            self.name, self.overloads + added, self.singleton or other.singleton, self.guarded and other.guarded
        )

    def bind(self, overload_ids: tuple[str, ...], count: int) -> Callable[..., Value]:
        """The callable for a call that the checker resolved to these overloads (none: unchecked)."""
        if self.singleton is not None:
            return self.singleton
        candidates = [item for item in self.overloads if len(item.args) == count and item.impl is not None]
        if overload_ids:
            chosen = [item for item in candidates if item.id in overload_ids]
            candidates = chosen or candidates
        if len(candidates) == 1 and not self.guarded:
            impl = candidates[0].impl
            assert impl is not None
            return impl
        return _dispatcher(self.name, tuple(candidates))


def _dispatcher(name: str, candidates: tuple[Overload, ...]) -> Callable[..., Value]:
    def dispatch(*values: Value) -> Value:
        for overload in candidates:
            if overload.accepts(values):
                return overload.impl(*values)  # type: ignore[misc]
        shown = ", ".join(str(type_of(value)) for value in values)
        raise EvaluationError(f"{NO_SUCH_OVERLOAD}: {name}({shown})")

    return dispatch


@dataclass(frozen=True, slots=True)
class Library:
    """Functions, types, macros and prices that come together."""

    functions: tuple[Function, ...] = ()
    types: Mapping[str, Type] = field(default_factory=dict)
    macros: Mapping[tuple[str, int, bool], Macro] = field(default_factory=dict)
    # By function name, and (they win) by overload id.
    estimates: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    overload_estimates: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    costs: Mapping[str, ActualCost] = field(default_factory=dict)
    overload_costs: Mapping[str, ActualCost] = field(default_factory=dict)
    # Functions whose constant pattern is compiled with the program: name to the argument's place.
    patterns: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything an expression is compiled against."""

    variables: Mapping[str, Type]
    structs: Mapping[str, Mapping[str, Type]]
    functions: Mapping[str, Function]
    types: Mapping[str, Type]
    macros: Mapping[tuple[str, int, bool], Macro]
    estimates: Mapping[str, Callable[..., Any]]
    overload_estimates: Mapping[str, Callable[..., Any]]
    costs: Mapping[str, ActualCost]
    overload_costs: Mapping[str, ActualCost]
    patterns: Mapping[str, int]
    sizes: SizeLookup
    homogeneous_literals: bool = True
    literal_validation: bool = True
    escaped_identifiers: bool = False


def no_sizes(path: tuple[str, ...]) -> int | None:
    """Nothing is known about any size."""
    return None


def build(
    libraries: Iterable[Library],
    variables: Mapping[str, Type],
    structs: Mapping[str, Mapping[str, Type]] | None = None,
    sizes: SizeLookup = no_sizes,
    *,
    homogeneous_literals: bool = True,
    literal_validation: bool = True,
    escaped_identifiers: bool = False,
) -> Environment:
    """Put an environment together; overloads of one name from several libraries are merged in order."""
    functions: dict[str, Function] = {}
    types: dict[str, Type] = {}
    macros: dict[tuple[str, int, bool], Macro] = {}
    tables: tuple[dict[str, Any], ...] = ({}, {}, {}, {}, {})
    for library in libraries:
        for function in library.functions:
            known = functions.get(function.name)
            functions[function.name] = function if known is None else known.merged(function)
        types.update(library.types)
        macros.update(library.macros)
        sources: tuple[Mapping[str, Any], ...] = (
            library.estimates,
            library.overload_estimates,
            library.costs,
            library.overload_costs,
            library.patterns,
        )
        for table, more in zip(tables, sources, strict=True):
            table.update(more)
    return Environment(
        variables=dict(variables),
        structs=dict(structs or {}),
        functions=functions,
        types=types,
        macros=macros,
        estimates=tables[0],
        overload_estimates=tables[1],
        costs=tables[2],
        overload_costs=tables[3],
        patterns=tables[4],
        sizes=sizes,
        homogeneous_literals=homogeneous_literals,
        literal_validation=literal_validation,
        escaped_identifiers=escaped_identifiers,
    )
