"""From text to tree: a recursive-descent parser for the CEL grammar, with macros expanded on the way.

The grammar has some twenty rules, so a generated parser would cost more than it gives. What must be exact is what
people see: where each node "is" (messages point there), which nesting is refused (250, counted as upstream counts
it), and the place of the first syntax error with ANTLR's wording in the common cases. The lists of expected tokens
in ANTLR's messages are not chased beyond those.

Never raises anything but CompileError, for any text.

Upstream counterpart: cel-go parser/parser.go and parser/gen/CEL.g4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubedra.cel.ast import Call, Entry, Ident, ListLiteral, Literal, MapLiteral, Node, Select, StructLiteral
from kubedra.cel.errors import NO_POSITION, CompileError, Issue, compile_error
from kubedra.cel.lexer import Token, tokenize
from kubedra.cel.limits import MAX_CODE_POINTS, MAX_NESTING, RECURSION_MESSAGE
from kubedra.cel.literals import LiteralError, parse_double, parse_int, parse_uint, unquote

_RESERVED_WORDS: Final = (
    "as break const continue else false for function if import in let loop package namespace null return true var void "
    "while"
)
RESERVED: Final = frozenset(_RESERVED_WORDS.split(" "))
_RELATIONS: Final = {"<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_PRODUCTS: Final = {"*": "_*_", "/": "_/_", "%": "_%_"}
_SUMS: Final = {"+": "_+_", "-": "_-_"}
_OPERATORS: Final = frozenset((*_RELATIONS, *_PRODUCTS, *_SUMS, "&&", "||", "?", "EOF"))
_MAX_RECOVERIES: Final = 30
_OPERAND_START: Final = frozenset(
    ("[", "{", "(", ".", "-", "!", "true", "false", "null", "FLOAT", "INT", "UINT", "STRING", "BYTES", "IDENT")
)
_OPERAND_NAMES: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_LITERAL_NAMES: Final = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
_LIST_NAMES: Final = "{'[', ']', '{', '(', '.', ',', '-', '!', '?', " + _LITERAL_NAMES
_MAP_NAMES: Final = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', " + _LITERAL_NAMES
_FIELD_NAMES: Final = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"
_AFTER_CLOSING: Final = frozenset(
    ("EOF", ")", "]", "}", ",", ":", "?", ".", "[", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||", "+", "-", "*")
) | {"/", "%"}


class MacroError(Exception):
    """A macro was called with arguments it cannot use."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.issue = Issue(offset, message)


Macro = Callable[[int, "Node | None", "list[Node]"], "Node | None"]
Macros = Mapping[tuple[str, int, bool], Macro]
"""(function, argument count, receiver style) to an expander (offset, target, arguments); None: not a macro call."""


class _Abort(Exception):
    """Parsing cannot go on; the issue is recorded already."""


def parse(source: str, macros: Macros, *, escaped_identifiers: bool = False) -> Node:
    """Parse an expression; raises CompileError."""
    if len(source) > MAX_CODE_POINTS:
        size = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_CODE_POINTS}"
        raise compile_error(source, [Issue(NO_POSITION, size)])
    tokens, issues = tokenize(source)
    parser = _Parser(tokens, issues, macros, escaped_identifiers)
    node: Node | None = None
    try:
        node = parser.parse_start()
    except _Abort:
        pass
    except RecursionError:
        issues.append(Issue(NO_POSITION, RECURSION_MESSAGE))
    if issues or node is None:
        raise compile_error(source, issues)
    return node


def _shown(token: Token) -> str:
    return "" if token.kind == "EOF" else token.text


class _Parser:
    __slots__ = (
        "_closers",
        "_depths",
        "_escaped",
        "_index",
        "_issues",
        "_macros",
        "_opened",
        "_recoveries",
        "_silent",
        "_token",
        "_tokens",
    )

    def __init__(self, tokens: list[Token], issues: list[Issue], macros: Macros, escaped: bool) -> None:
        self._tokens = tokens
        self._issues = issues
        self._macros = macros
        self._escaped = escaped
        self._index = 0
        self._token = tokens[0]
        self._silent = False
        self._recoveries = 0
        self._closers: list[str] = []
        # The token behind an opening bracket, and what may stand there.
        self._opened = (-1, "")
        # How many rules of each left-recursive or nesting kind are open: expr, relation, calc, member.
        self._depths = [0, 0, 0, 0]

    # Tokens and errors

    def _next(self) -> Token:
        token = self._token
        self._silent = False
        if token.kind != "EOF":
            self._index += 1
            self._token = self._tokens[self._index]
        return token

    def _peek(self, ahead: int = 1) -> str:
        index = self._index + ahead
        return self._tokens[index].kind if index < len(self._tokens) else "EOF"

    def _syntax(self, token: Token, message: str) -> None:
        # As ANTLR: after an error nothing is reported until a token matched again.
        if not self._silent:
            self._issues.append(Issue(token.offset, f"Syntax error: {message}"))
            self._silent = True

    def _report(self, offset: int, message: str) -> Node:
        self._issues.append(Issue(offset, message))
        return Literal(offset, "string", "<<error>>")

    def _expect(self, kind: str, shown: str) -> Token:
        token = self._token
        if token.kind == kind:
            return self._next()
        if token.kind != "EOF" and self._peek() == kind:
            self._syntax(token, f"extraneous input '{token.text}' expecting {shown}")
            self._next()
            return self._next()
        if kind not in ("EOF", "IDENT") and token.kind in _AFTER_CLOSING and (kind != ":" or token.kind == "EOF"):
            self._syntax(token, f"missing {shown} at '{token.text}'")
            return Token(kind, "", token.offset)
        self._syntax(token, f"mismatched input '{token.text}' expecting {shown}")
        self._recover()
        return Token(kind, "", token.offset)

    def _recover(self) -> None:
        """Skip to what may follow here: an operator, or what closes one of the open brackets."""
        if self._recoveries >= _MAX_RECOVERIES:
            raise _Abort
        self._recoveries += 1
        while self._token.kind not in _OPERATORS and self._token.kind not in self._closers:
            if self._token.kind == "EOF":
                return
            self._index += 1
            self._token = self._tokens[self._index]

    def _inside(self, closer: str, rule: Callable[[], Node]) -> Node:
        self._closers.append(closer)
        node = rule()
        self._closers.pop()
        return node

    def _enter(self, rule: int) -> None:
        self._depths[rule] += 1
        if self._depths[rule] > MAX_NESTING:
            self._issues.append(Issue(NO_POSITION, RECURSION_MESSAGE))
            raise _Abort

    def _nested(self, depth: int) -> int:
        if depth > MAX_NESTING:
            self._issues.append(Issue(NO_POSITION, "max recursion depth exceeded"))
            raise _Abort
        return depth

    # Rules

    def parse_start(self) -> Node:
        node = self._expr()
        self._expect("EOF", "<EOF>")
        return node

    def _expr(self) -> Node:
        self._enter(0)
        condition = self._or()
        if self._token.kind == "?":
            operator = self._next()
            yes = self._inside(":", self._or)
            self._expect(":", "':'")
            no = self._expr()
            depth = self._nested(1 + max(condition.depth, yes.depth, no.depth))
            condition = Call(operator.offset, "_?_:_", [condition, yes, no], depth=depth)
        self._depths[0] -= 1
        return condition

    def _or(self) -> Node:
        first = self._and()
        if self._token.kind != "||":
            return first
        return self._logic(first, "||", "_||_")

    def _and(self) -> Node:
        first = self._relation()
        if self._token.kind != "&&":
            return first
        return self._logic(first, "&&", "_&&_")

    def _logic(self, first: Node, kind: str, function: str) -> Node:
        offset = self._token.offset
        terms = [first]
        while self._token.kind == kind:
            self._next()
            terms.append(self._and() if kind == "||" else self._relation())
        return Call(offset, function, terms, depth=max(term.depth for term in terms))

    def _relation(self) -> Node:
        self._enter(1)
        left = self._calc(_SUMS)
        while self._token.kind in _RELATIONS:
            operator = self._next()
            self._enter(1)
            right = self._calc(_SUMS)
            self._depths[1] -= 1
            left = self._binary(operator, _RELATIONS, left, right)
        self._depths[1] -= 1
        return left

    def _calc(self, operators: dict[str, str], opens: bool = True) -> Node:
        # Sums and products are one left-recursive rule upstream: only right operands open it again.
        if opens:
            self._enter(2)
        left = self._calc(_PRODUCTS, opens=False) if operators is _SUMS else self._unary()
        while self._token.kind in operators:
            operator = self._next()
            if operators is _SUMS:
                right = self._calc(_PRODUCTS)
            else:
                self._enter(2)
                right = self._unary()
                self._depths[2] -= 1
            left = self._binary(operator, operators, left, right)
        self._depths[2] -= opens
        return left

    def _binary(self, operator: Token, functions: dict[str, str], left: Node, right: Node) -> Node:
        depth = self._nested(1 + max(left.depth, right.depth))
        return Call(operator.offset, functions[operator.kind], [left, right], depth=depth)

    def _unary(self) -> Node:
        token = self._token
        kind = token.kind
        if kind not in _OPERAND_START:
            expected = _OPERAND_NAMES if self._index != self._opened[0] else self._opened[1]
            if self._peek() in _OPERAND_START and kind != "EOF":
                self._syntax(token, f"extraneous input '{token.text}' expecting {expected}")
                self._next()
                return self._unary()
            self._syntax(token, f"mismatched input '{token.text}' expecting {expected}")
            self._recover()
            return Literal(token.offset, "string", "<<error>>")
        if kind not in ("!", "-"):
            return self._member()
        if kind == "-" and self._peek() in ("INT", "FLOAT"):
            return self._member()
        count = 0
        while self._token.kind == kind:
            self._next()
            count += 1
        if self._token.kind not in _OPERAND_START:
            self._syntax(self._token, f"extraneous input '{self._token.text}' expecting {_OPERAND_NAMES}")
            raise _Abort
        operand = self._unary() if self._token.kind in ("!", "-") else self._member()
        if count % 2 == 0:
            return operand
        return Call(token.offset, "!_" if kind == "!" else "-_", [operand], depth=operand.depth)

    def _member(self) -> Node:
        self._enter(3)
        node = self._primary()
        while True:
            kind = self._token.kind
            if kind == ".":
                node = self._after_dot(node)
            elif kind == "[":
                operator = self._next()
                function = "_[_]"
                if self._token.kind == "?":
                    self._next()
                    function = "_[?_]"
                index = self._inside("]", self._expr)
                self._expect("]", "']'")
                depth = self._nested(1 + max(node.depth, index.depth))
                node = Call(operator.offset, function, [node, index], depth=depth)
            else:
                break
        self._depths[3] -= 1
        return node

    def _after_dot(self, operand: Node) -> Node:
        dot = self._next()
        optional = self._token.kind == "?"
        if optional:
            self._next()
        token = self._token
        if token.kind == "IDENT" and not optional and self._peek() == "(":
            self._next()
            opening = self._next()
            args = self._arguments()
            return self._call(opening.offset, token.text, operand, args)
        if token.kind == "IDENT":
            name = self._next().text
        elif token.kind == "ESC":
            self._next()
            name = token.text[1:-1]
            if not self._escaped:
                self._report(token.offset, "unsupported syntax: '`'")
        else:
            if token.kind in ("true", "false", "null") and not optional:
                self._syntax(token, f"mismatched input '{token.text}' expecting IDENTIFIER")
                self._next()
            else:
                self._syntax(token, f"no viable alternative at input '.{'?' if optional else ''}{_shown(token)}'")
                self._recover()
            return operand
        self._nested(operand.depth + 1)
        if optional:
            return Call(dot.offset, "_?._", [operand, Literal(token.offset, "string", name)], depth=operand.depth + 1)
        return Select(dot.offset, operand, name)

    def _arguments(self) -> list[Node]:
        args: list[Node] = []
        self._closers += (")", ",")
        if self._token.kind != ")":
            args.append(self._expr())
            while self._token.kind == ",":
                self._next()
                args.append(self._expr())
        del self._closers[-2:]
        self._expect(")", "')'")
        return args

    def _call(self, offset: int, function: str, target: Node | None, args: list[Node]) -> Node:
        depth = max((arg.depth for arg in args), default=0)
        if target is not None:
            depth = self._nested(1 + max(depth, target.depth))
        macro = self._macros.get((function, len(args), target is not None))
        if macro is not None:
            try:
                expanded = macro(offset, target, args)
            except MacroError as error:
                return self._report(error.issue.offset, error.issue.message)
            if expanded is not None:
                expanded.depth = depth
                return expanded
        return Call(offset, function, args, target, depth)

    def _primary(self) -> Node:
        token = self._token
        kind = token.kind
        if kind == "IDENT" or kind == ".":
            return self._named()
        if kind == "(":
            self._next()
            node = self._inside(")", self._expr)
            self._expect(")", "')'")
            return node
        if kind == "[":
            return self._list()
        if kind == "{":
            self._next()
            return MapLiteral(token.offset, self._entries(named=False))
        if kind in _OPERAND_START and kind != "!":
            return self._literal()
        self._syntax(token, f"mismatched input '{token.text}' expecting {_OPERAND_NAMES}")
        raise _Abort

    def _named(self) -> Node:
        start = self._token
        dot = ""
        if start.kind == ".":
            self._next()
            dot = "."
            if self._token.kind != "IDENT":
                self._syntax(self._token, f"no viable alternative at input '.{_shown(self._token)}'")
                raise _Abort
        ahead = 1
        while self._peek(ahead) == "." and self._peek(ahead + 1) == "IDENT":
            ahead += 2
        if self._peek(ahead) == "{":
            name = dot + self._next().text
            while self._token.kind == ".":
                self._next()
                name += "." + self._next().text
            opening = self._next()
            return StructLiteral(opening.offset, name, self._entries(named=True))
        token = self._next()
        reserved = token.text in RESERVED
        if self._token.kind == "(":
            opening = self._next()
            args = self._arguments()
            if reserved:
                return self._report(start.offset, f"reserved identifier: {token.text}")
            return self._call(opening.offset, dot + token.text, None, args)
        if reserved:
            return self._report(start.offset, f"reserved identifier: {token.text}")
        return Ident(token.offset, dot + token.text)

    def _list(self) -> Node:
        opening = self._next()
        self._closers += ("]", ",")
        self._opened = (self._index, _LIST_NAMES)
        elements: list[Node] = []
        optional: set[int] = set()
        while self._token.kind not in ("]", ",") or (self._token.kind == "," and elements):
            if elements:
                if self._token.kind != ",":
                    break
                self._next()
                if self._token.kind == "]":
                    break
            if self._token.kind == "?":
                self._next()
                optional.add(len(elements))
            elements.append(self._expr())
        if self._token.kind == "," and not elements:
            self._next()
        del self._closers[-2:]
        self._expect("]", "']'")
        return ListLiteral(opening.offset, elements, frozenset(optional))

    def _entries(self, named: bool) -> list[Entry]:
        entries: list[Entry] = []
        self._opened = (self._index, _MAP_NAMES)
        self._closers += ("}", ",", ":")
        while self._token.kind not in ("}", ",") or (self._token.kind == "," and entries):
            if entries:
                if self._token.kind != ",":
                    break
                self._next()
                if self._token.kind == "}":
                    break
            optional = self._token.kind == "?"
            if optional:
                self._next()
            key: Node | str
            if named:
                name = self._token
                if name.kind not in ("IDENT", "ESC"):
                    expected = _FIELD_NAMES if not entries else "{IDENTIFIER, ESC_IDENTIFIER}"
                    deletes = self._peek() in ("IDENT", "ESC") and name.kind != "EOF"
                    fault = "extraneous" if deletes else "mismatched"
                    self._syntax(name, f"{fault} input '{name.text}' expecting {expected}")
                    if not deletes:
                        raise _Abort
                    self._next()
                    name = self._token
                self._next()
                key = name.text if name.kind == "IDENT" else name.text[1:-1]
                if name.kind == "ESC" and not self._escaped:
                    self._report(name.offset, "unsupported syntax: '`'")
            else:
                key = self._expr()
            colon = self._expect(":", "':'")
            entries.append(Entry(colon.offset, key, self._expr(), optional))
        if self._token.kind == "," and not entries:
            self._next()
        del self._closers[-3:]
        self._expect("}", "'}'")
        return entries

    def _literal(self) -> Node:
        token = self._next()
        offset = token.offset
        negative = token.kind == "-"
        if negative:
            token = self._next()
        kind, text = token.kind, token.text
        try:
            if kind == "INT":
                return Literal(offset, "int", parse_int(text, negative))
            if kind == "FLOAT":
                return Literal(offset, "double", parse_double(text, negative))
            if kind == "UINT":
                return Literal(offset, "uint", parse_uint(text))
            if kind == "STRING":
                return Literal(offset, "string", unquote(text, is_bytes=False))
            if kind == "BYTES":
                return Literal(offset, "bytes", unquote(text, is_bytes=True))
        except LiteralError as error:
            return self._report(offset, str(error))
        if kind == "null":
            return Literal(offset, "null", None)
        return Literal(offset, "bool", kind == "true")


__all__ = ["CompileError", "Macro", "MacroError", "Macros", "parse"]
