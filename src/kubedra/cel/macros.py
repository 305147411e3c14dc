"""Calls that the parser rewrites: ``has``, the loops, ``cel.bind``, ``optMap``, ``sortBy``.

Each expander gets the place of the call and its parts and returns the tree that replaces it. New nodes stand where
the call stands, so messages about them point to its opening parenthesis, as upstream's do.

Upstream counterparts: cel-go parser/macro.go, ext/comprehensions.go, ext/bindings.go, ext/lists.go (sortBy),
cel/library.go (optMap, optFlatMap).
"""

from __future__ import annotations

from typing import Final

from kubedra.cel.ast import (
    ACCUMULATOR,
    UNUSED_VARIABLE,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    copy,
)
from kubedra.cel.parser import Macro, MacroError

_OLD_ACCUMULATOR: Final = "__result__"
_SORT_INPUT: Final = "@__sortBy_input__"


def _variable(node: Node, message: str = "argument must be a simple name") -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.offset, message)
    return node.name


def _loop_variable(node: Node, message: str = "argument must be a simple name") -> str:
    name = _variable(node, message)
    if name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise MacroError(node.offset, "iteration variable overwrites accumulator variable")
    return name


def _two_variables(args: list[Node]) -> tuple[str, str]:
    first, second = _variable(args[0]), _variable(args[1])
    if first == second:
        raise MacroError(args[1].offset, f"duplicate variable name: {first}")
    return _loop_variable(args[0]), _loop_variable(args[1])


def _accu(offset: int) -> Ident:
    return Ident(offset, ACCUMULATOR)


def _bool(offset: int, value: bool) -> Literal:
    return Literal(offset, "bool", value)


def expand_has(offset: int, target: Node | None, args: list[Node]) -> Node:
    """``has(a.b)``."""
    selection = args[0]
    if not isinstance(selection, Select) or selection.test_only:
        raise MacroError(selection.offset, "invalid argument to has() macro")
    return Select(offset, selection.operand, selection.field, test_only=True)


def _fold(
    offset: int, target: Node | None, names: tuple[str, str], init: Node, condition: Node, step: Node, result: Node
) -> Node:
    assert target is not None
    return Comprehension(offset, target, names[0], names[1], ACCUMULATOR, init, condition, step, result)


def _names(args: list[Node], count: int) -> tuple[str, str]:
    return _two_variables(args) if count == 2 else (_loop_variable(args[0]), "")


def _all(count: int) -> Macro:
    def expand(offset: int, target: Node | None, args: list[Node]) -> Node:
        condition = Call(offset, "@not_strictly_false", [_accu(offset)])
        step = Call(offset, "_&&_", [_accu(offset), args[count]])
        return _fold(offset, target, _names(args, count), _bool(offset, True), condition, step, _accu(offset))

    return expand


def _exists(count: int) -> Macro:
    def expand(offset: int, target: Node | None, args: list[Node]) -> Node:
        condition = Call(offset, "@not_strictly_false", [Call(offset, "!_", [_accu(offset)])])
        step = Call(offset, "_||_", [_accu(offset), args[count]])
        return _fold(offset, target, _names(args, count), _bool(offset, False), condition, step, _accu(offset))

    return expand


def _exists_one(count: int) -> Macro:
    def expand(offset: int, target: Node | None, args: list[Node]) -> Node:
        more = Call(offset, "_+_", [_accu(offset), Literal(offset, "int", 1)])
        step = Call(offset, "_?_:_", [args[count], more, _accu(offset)])
        result = Call(offset, "_==_", [_accu(offset), Literal(offset, "int", 1)])
        init = Literal(offset, "int", 0)
        return _fold(offset, target, _names(args, count), init, _bool(offset, True), step, result)

    return expand


def _append(offset: int, element: Node, condition: Node | None) -> Node:
    step: Node = Call(offset, "_+_", [_accu(offset), ListLiteral(offset, [element])])
    return step if condition is None else Call(offset, "_?_:_", [condition, step, _accu(offset)])


def expand_map(offset: int, target: Node | None, args: list[Node]) -> Node:
    """``l.map(x, e)`` and ``l.map(x, p, e)``."""
    name = _loop_variable(args[0], "argument is not an identifier")
    step = _append(offset, args[-1], args[1] if len(args) == 3 else None)
    return _fold(offset, target, (name, ""), ListLiteral(offset, []), _bool(offset, True), step, _accu(offset))


def expand_filter(offset: int, target: Node | None, args: list[Node]) -> Node:
    """``l.filter(x, p)``."""
    name = _loop_variable(args[0], "argument is not an identifier")
    step = _append(offset, args[0], args[1])
    return _fold(offset, target, (name, ""), ListLiteral(offset, []), _bool(offset, True), step, _accu(offset))


def expand_transform_list(offset: int, target: Node | None, args: list[Node]) -> Node:
    """``l.transformList(k, v, e)`` and ``l.transformList(k, v, p, e)``."""
    step = _append(offset, args[-1], args[2] if len(args) == 4 else None)
    init = ListLiteral(offset, [])
    return _fold(offset, target, _two_variables(args), init, _bool(offset, True), step, _accu(offset))


def _transform_map(entry_form: bool) -> Macro:
    def expand(offset: int, target: Node | None, args: list[Node]) -> Node:
        names = _two_variables(args)
        inserted = [args[-1]] if entry_form else [Ident(offset, names[0]), args[-1]]
        step: Node = Call(offset, "cel.@mapInsert", [_accu(offset), *inserted])
        if len(args) == 4:
            step = Call(offset, "_?_:_", [args[2], step, _accu(offset)])
        return _fold(offset, target, names, MapLiteral(offset, []), _bool(offset, True), step, _accu(offset))

    return expand


def _bound(offset: int, name: str, value: Node, result: Node) -> Node:
    empty = ListLiteral(offset, [])
    return Comprehension(
        offset, empty, UNUSED_VARIABLE, "", name, value, _bool(offset, False), Ident(offset, name), result
    )


def expand_bind(offset: int, target: Node | None, args: list[Node]) -> Node | None:
    """``cel.bind(name, value, result)``; another receiver's ``bind`` is an ordinary call."""
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    name = _variable(args[0], "cel.bind() variable names must be simple identifiers")
    return _bound(offset, name, args[1], args[2])


def _optional_map(flat: bool) -> Macro:
    def expand(offset: int, target: Node | None, args: list[Node]) -> Node:
        assert target is not None
        function = "optFlatMap" if flat else "optMap"
        name = _variable(args[0], f"{function}() variable name must be a simple identifier")
        value = Call(offset, "value", [], copy(target))
        result = _bound(offset, name, value, args[1])
        if not flat:
            result = Call(offset, "optional.of", [result])
        return Call(offset, "_?_:_", [Call(offset, "hasValue", [], target), result, Call(offset, "optional.none", [])])

    return expand


def expand_sort_by(offset: int, target: Node | None, args: list[Node]) -> Node:
    """``l.sortBy(x, key)``."""
    assert target is not None
    if isinstance(target, (Literal, MapLiteral)):
        raise MacroError(
            target.offset, "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        )
    keys = expand_map(offset, Ident(offset, _SORT_INPUT), args)
    call = Call(offset, "@sortByAssociatedKeys", [keys], Ident(offset, _SORT_INPUT))
    return _bound(offset, _SORT_INPUT, target, call)


STANDARD: Final[dict[tuple[str, int, bool], Macro]] = {
    ("has", 1, False): expand_has,
    ("all", 2, True): _all(1),
    ("exists", 2, True): _exists(1),
    ("exists_one", 2, True): _exists_one(1),
    ("existsOne", 2, True): _exists_one(1),
    ("map", 2, True): expand_map,
    ("map", 3, True): expand_map,
    ("filter", 2, True): expand_filter,
}
BINDINGS: Final[dict[tuple[str, int, bool], Macro]] = {("bind", 3, True): expand_bind}
OPTIONALS: Final[dict[tuple[str, int, bool], Macro]] = {
    ("optMap", 2, True): _optional_map(flat=False),
    ("optFlatMap", 2, True): _optional_map(flat=True),
}
SORTING: Final[dict[tuple[str, int, bool], Macro]] = {("sortBy", 2, True): expand_sort_by}
TWO_VARIABLES: Final[dict[tuple[str, int, bool], Macro]] = {
    ("all", 3, True): _all(2),
    ("exists", 3, True): _exists(2),
    ("existsOne", 3, True): _exists_one(2),
    ("exists_one", 3, True): _exists_one(2),
    ("transformList", 3, True): expand_transform_list,
    ("transformList", 4, True): expand_transform_list,
    ("transformMap", 3, True): _transform_map(entry_form=False),
    ("transformMap", 4, True): _transform_map(entry_form=False),
    ("transformMapEntry", 3, True): _transform_map(entry_form=True),
    ("transformMapEntry", 4, True): _transform_map(entry_form=True),
}
