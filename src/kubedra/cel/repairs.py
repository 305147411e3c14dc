"""Edits that turn an expression that does not compile into the one that was probably meant.

Each rule looks for one common slip and proposes edits; a proposal counts only if the result compiles (or at least gets
further), so a rule may guess.

Upstream has no counterpart.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Final

from kubedra.base.quantity import Quantity, QuantityError
from kubedra.cel.ast import Call, Ident, Literal, Node, Select, walk
from kubedra.cel.environment import Environment
from kubedra.cel.errors import CompileError
from kubedra.cel.parser import parse
from kubedra.cel.selector import Features, compile_selector, environment_for
from kubedra.cel.spans import Edit, Spans, apply_edits

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FLIPPED: Final = {"_<_": "_>_", "_>_": "_<_", "_<=_": "_>=_", "_>=_": "_<=_", "_==_": "_==_", "_!=_": "_!=_"}
_OPERATORS: Final = {"_>=_": ">= 0", "_<=_": "<= 0", "_==_": "== 0", "_!=_": "!= 0", "_>_": "> 0", "_<_": "< 0"}
_WORDS: Final = {"and": "&&", "or": "||"}
_ROUNDS: Final = 8


def repair(expression: str, *, features: Features, version: str) -> str | None:
    """An expression that compiles, or None."""
    environment = environment_for(features, version, stored=True)
    current = expression
    for _ in range(_ROUNDS):
        try:
            compile_selector(current, features=features, version=version, stored=True)
            return current if current != expression else None
        except CompileError as error:
            changed = _better(current, error, environment, features, version)
        if changed is None:
            return None
        current = changed
    return None


def _better(source: str, error: CompileError, environment: Environment, features: Features, version: str) -> str | None:
    place = (error.line, error.column)
    fallback: str | None = None
    for edits in _proposals(source, error, environment):
        changed = apply_edits(source, edits)
        if changed == source:
            continue
        try:
            compile_selector(changed, features=features, version=version, stored=True)
            return changed
        except CompileError as other:
            further = len(other.issues) < len(error.issues) or (other.line, other.column) > place
            if further and fallback is None:
                fallback = changed
    return fallback


def _proposals(source: str, error: CompileError, environment: Environment) -> Iterator[list[Edit]]:
    yield from _syntax(source)
    yield from _tests(source)
    spans = Spans(source)
    try:
        root = parse(source, environment.macros)
    except CompileError:
        return
    yield from _presence(root, spans)
    yield from _qualified(root, spans)
    yield from _names(root, spans, environment, error)
    yield from _dashes(root, spans)
    yield from _comparisons(root, spans)
    yield from _arguments(root, spans)


def _syntax(source: str) -> Iterator[list[Edit]]:
    edits = [Edit(match.start(), match.end(), "==") for match in re.finditer(r"(?<![=!<>])=(?!=)", source)]
    if edits:
        yield edits
    spans = Spans(source)
    words = [
        Edit(token.offset, token.offset + len(token.text), _WORDS[token.text.lower()])
        for token in spans.tokens
        if token.kind == "IDENT" and token.text.lower() in _WORDS
    ]
    words += [
        Edit(token.offset, token.offset + len(token.text) + 1, "!")
        for token in spans.tokens
        if token.kind == "IDENT" and token.text.lower() == "not"
    ]
    if words:
        yield words
    single = [Edit(match.start(), match.end(), match[0] * 2) for match in re.finditer(r"(?<![&|])[&|](?![&|])", source)]
    if single:
        yield single
    quoted = [
        Edit(token.offset - 1, token.offset + len(token.text), f'["{token.text[1:-1]}"]')
        for token in spans.tokens
        if token.kind == "ESC"
    ]
    keywords = [
        Edit(spans.tokens[index].offset, token.offset + len(token.text), f'["{token.text}"]')
        for index, token in enumerate(spans.tokens[1:])
        if token.kind in ("in", "true", "false", "null") and spans.tokens[index].kind == "."
    ]
    if quoted or keywords:
        yield quoted + keywords
    opened = {"(": ")", "[": "]", "{": "}"}
    missing: list[str] = []
    for token in spans.tokens:
        if token.kind in opened:
            missing.append(opened[token.kind])
        elif missing and token.kind == missing[-1]:
            missing.pop()
    if missing:
        yield [Edit(len(source), len(source), "".join(reversed(missing)))]


def _tests(source: str) -> Iterator[list[Edit]]:
    """``has(m["x"])`` to ``has(m.x)``, ``has(m["d"])`` to ``("d" in m)``."""
    named = [
        Edit(match.start(), match.end(), f"has({match[1]}.{match[2]})")
        for match in re.finditer(r'has\(([^()]*?\])\["([A-Za-z_][A-Za-z0-9_]*)"\]\)', source)
    ]
    if named:
        yield named
    for match in re.finditer(r'has\(([^()]*?)\[("[^"]*")\]\)', source):
        yield [Edit(match.start(), match.end(), f"({match[2]} in {match[1]})")]


def _presence(root: Node, spans: Spans) -> Iterator[list[Edit]]:
    """``has(m["x"])`` to ``has(m.x)``."""
    for node in walk(root):
        if not isinstance(node, Call) or node.function != "_[_]" or not isinstance(node.args[1], Literal):
            continue
        key = node.args[1].value
        if isinstance(key, str) and _IDENTIFIER.fullmatch(key):
            _, end = spans.extent(node)
            yield [Edit(node.offset, end, f".{key}")]


def _qualified(root: Node, spans: Spans) -> Iterator[list[Edit]]:
    """``attributes["domain/name"]`` to ``attributes["domain"].name``."""
    edits: list[Edit] = []
    for node in walk(root):
        if not isinstance(node, Call) or node.function != "_[_]" or not isinstance(node.args[1], Literal):
            continue
        key = node.args[1].value
        if isinstance(key, str) and key.count("/") == 1:
            domain, _, name = key.partition("/")
            if domain and _IDENTIFIER.fullmatch(name):
                edits.append(Edit(node.offset, spans.extent(node)[1], f'["{domain}"].{name}'))
    if edits:
        yield edits


def _names(root: Node, spans: Spans, environment: Environment, error: CompileError) -> Iterator[list[Edit]]:
    fields = list(next(iter(environment.structs.values()), {}))
    functions = [name for name in environment.functions if name[0].isalpha()]
    for node in walk(root):
        if isinstance(node, Ident) and node.name not in environment.variables:
            near = difflib.get_close_matches(node.name.lower(), environment.variables, n=1, cutoff=0.6)
            if near:
                yield [Edit(node.offset, node.offset + len(node.name), near[0])]
        if isinstance(node, Select) and isinstance(node.operand, Ident) and node.field not in fields:
            token = spans.after(node.offset)
            near = difflib.get_close_matches(node.field, fields, n=1, cutoff=0.6)
            if token is not None and near and token.text == node.field:
                yield [Edit(token.offset, token.offset + len(token.text), near[0])]
        if isinstance(node, Call) and node.function not in environment.functions and node.function[0].isalpha():
            near = difflib.get_close_matches(node.function, functions, n=1, cutoff=0.7)
            start = spans.source.rfind(node.function, 0, node.offset)
            if near and start >= 0:
                yield [Edit(start, start + len(node.function), near[0])]


def is_capacity(node: Node) -> bool:
    """Whether a node reads ``device.capacity[…].x``."""
    while isinstance(node, Select) or (isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?._")):
        if isinstance(node, Select):
            if node.field == "capacity" and isinstance(node.operand, Ident) and node.operand.name == "device":
                return True
            node = node.operand
        else:
            node = node.args[0]
    return False


def as_quantity(node: Node, spans: Spans) -> str | None:
    """The text of a node as a quantity: kept, or wrapped if it is a literal."""
    if isinstance(node, Call) and node.function == "quantity":
        return spans.text(node)
    if isinstance(node, Literal) and isinstance(node.value, (str, int)) and not isinstance(node.value, bool):
        try:
            Quantity.parse(node.value)
        except QuantityError:
            return None
        return f'quantity("{node.value}")'
    return None


def compared(left: str, operator: str, right: str) -> str:
    """``left`` compared with ``right`` by the members that quantities and versions have."""
    if operator == "_>_":
        return f"{left}.isGreaterThan({right})"
    if operator == "_<_":
        return f"{left}.isLessThan({right})"
    return f"{left}.compareTo({right}) {_OPERATORS[operator]}"


def _dashes(root: Node, spans: Spans) -> Iterator[list[Edit]]:
    """``.numa-node`` is a subtraction; no attribute has a dash in its name."""
    for node in walk(root):
        if (
            isinstance(node, Call)
            and node.function == "_-_"
            and isinstance(node.args[1], Ident)
            and isinstance(node.args[0], Select)
            and spans.source[node.offset - 1 : node.offset] not in ("", " ")
        ):
            yield [Edit(node.offset, node.offset + 1, "")]


def _comparisons(root: Node, spans: Spans) -> Iterator[list[Edit]]:
    """``capacity > quantity("1")``, ``capacity >= 80``, ``capacity == "80Gi"``."""
    edits: list[Edit] = []
    for node in walk(root):
        if not isinstance(node, Call) or node.function not in _OPERATORS:
            continue
        left, right, operator = node.args[0], node.args[1], node.function
        if is_capacity(right) and not is_capacity(left):
            left, right, operator = right, left, _FLIPPED[operator]
        if not is_capacity(left):
            continue
        amount = spans.text(right) if is_capacity(right) else as_quantity(right, spans)
        if amount is not None:
            start, end = spans.bare(node)
            edits.append(Edit(start, end, compared(spans.text(left), operator, amount)))
    if edits:
        yield edits


def _arguments(root: Node, spans: Spans) -> Iterator[list[Edit]]:
    """``x.isGreaterThan("1.2.3")`` and ``capacity.compareTo("80Gi")``: wrap the literal."""
    edits: list[Edit] = []
    for node in walk(root):
        if not isinstance(node, Call) or node.function not in ("isGreaterThan", "isLessThan", "compareTo"):
            continue
        if node.target is None or len(node.args) != 1 or not isinstance(node.args[0], Literal):
            continue
        wrap = "quantity" if is_capacity(node.target) else "semver"
        start, end = spans.extent(node.args[0])
        value = node.args[0].value
        edits.append(Edit(start, end, f'{wrap}("{value}")'))
    if edits:
        yield edits
