"""Where an expression stands in the text it was parsed from, and edits of that text.

Nodes know one offset (where messages point); tools that quote or rewrite a part need its whole extent. It is found
again from the tokens, so that the parser need not carry it for every selector of a scheduler.

Upstream has no counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubedra.cel.ast import Call, Comprehension, Ident, ListLiteral, Literal, MapLiteral, Node, Select, StructLiteral
from kubedra.cel.lexer import Token, tokenize

_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``text[start:end]``."""

    start: int
    end: int
    text: str


def apply_edits(source: str, edits: list[Edit]) -> str:
    """The text with all edits; of two that overlap the first in order wins."""
    done: list[Edit] = []
    for edit in edits:
        if all(edit.end <= other.start or edit.start >= other.end for other in done):
            done.append(edit)
    for edit in sorted(done, key=lambda item: item.start, reverse=True):
        source = source[: edit.start] + edit.text + source[edit.end :]
    return source


class Spans:
    """Extents of nodes of one source."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens: list[Token] = tokenize(source)[0]
        self._at = {token.offset: index for index, token in enumerate(self.tokens)}
        self._match: dict[int, int] = {}
        stack: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.kind in _CLOSING:
                stack.append(index)
            elif token.kind in _CLOSING.values() and stack:
                opening = stack.pop()
                self._match[opening] = index

    def token_at(self, offset: int) -> Token | None:
        """The token that begins there."""
        index = self._at.get(offset)
        return None if index is None else self.tokens[index]

    def after(self, offset: int) -> Token | None:
        """The token behind the one that begins there."""
        index = self._at.get(offset)
        return None if index is None or index + 1 >= len(self.tokens) else self.tokens[index + 1]

    def text(self, node: Node) -> str:
        """The source of a node on one line."""
        start, end = self.extent(node)
        return " ".join(self.source[start:end].split())

    def extent(self, node: Node) -> tuple[int, int]:
        """Start and end in the source, with the parentheses around it."""
        start, end = self.bare(node)
        return self._with_parentheses(start, end)

    def _with_parentheses(self, start: int, end: int) -> tuple[int, int]:
        ends = {token.offset + len(token.text): index for index, token in enumerate(self.tokens)}
        while True:
            first = self._at.get(start)
            last = ends.get(end)
            if first is None or last is None or first == 0 or last + 1 >= len(self.tokens):
                return start, end
            before, behind = self.tokens[first - 1], self.tokens[last + 1]
            is_call = first >= 2 and self.tokens[first - 2].kind == "IDENT"
            if before.kind != "(" or is_call or self._match.get(first - 1) != last + 1:
                return start, end
            start, end = before.offset, behind.offset + 1

    def _end_of_token(self, offset: int) -> int:
        token = self.token_at(offset)
        return offset + (len(token.text) if token is not None else 1)

    def _closing_end(self, offset: int) -> int:
        index = self._at.get(offset)
        closing = None if index is None else self._match.get(index)
        return self._end_of_token(offset) if closing is None else self.tokens[closing].offset + 1

    def _call_name_start(self, offset: int) -> int:
        """Start of ``name`` or ``a.b.name`` before an opening parenthesis."""
        index = self._at.get(offset, 0) - 1
        while index >= 2 and self.tokens[index].kind == "IDENT" and self.tokens[index - 1].kind == ".":
            if self.tokens[index - 2].kind != "IDENT":
                break
            index -= 2
        return self.tokens[max(index, 0)].offset

    def bare(self, node: Node) -> tuple[int, int]:
        """Start and end in the source, without the parentheses around it."""
        offset = node.offset
        if isinstance(node, Literal):
            token = self.token_at(offset)
            if token is not None and token.kind == "-":
                following = self.after(offset)
                if following is not None:
                    return offset, following.offset + len(following.text)
            return offset, self._end_of_token(offset)
        if isinstance(node, Ident):
            return offset, self._end_of_token(offset)
        if isinstance(node, Select):
            token = self.token_at(offset)
            if token is None or token.kind != ".":
                # has(a.b) stands at its parenthesis; a qualified name at its last dot.
                return self._call_name_start(offset), self._closing_end(offset)
            following = self.after(offset)
            end = self._end_of_token(offset) if following is None else following.offset + len(following.text)
            return self.extent(node.operand)[0], end
        if isinstance(node, (ListLiteral, MapLiteral, StructLiteral)):
            return offset, self._closing_end(offset)
        if isinstance(node, Comprehension):
            return self.extent(node.iter_range)[0] if not node.is_bind else offset, self._closing_end(offset)
        assert isinstance(node, Call)
        return self._call(node)

    def _call(self, node: Call) -> tuple[int, int]:
        token = self.token_at(node.offset)
        kind = token.kind if token is not None else ""
        if kind == "(":
            start = self._call_name_start(node.offset) if node.target is None else self.extent(node.target)[0]
            return start, self._closing_end(node.offset)
        if kind == "[":
            return self.extent(node.args[0])[0], self._closing_end(node.offset)
        if node.function == "_?._":
            name = self.token_at(node.args[1].offset)
            end = node.offset + 1 if name is None else name.offset + len(name.text)
            return self.extent(node.args[0])[0], end
        operands = node.operands()
        start = min([node.offset, *(self.extent(operand)[0] for operand in operands)])
        end = max([self._end_of_token(node.offset), *(self.extent(operand)[1] for operand in operands)])
        return start, end

    def terms(self, operator: str = "&&") -> list[tuple[int, int]]:
        """Extents of the parts between top-level ``&&`` (or another operator), outer parentheses removed."""
        tokens = self.tokens[:-1]
        first, last = 0, len(tokens)
        while last - first > 2 and tokens[first].kind == "(" and self._match.get(first) == last - 1:
            first, last = first + 1, last - 1
        parts: list[tuple[int, int]] = []
        depth = 0
        begin = first
        for index in range(first, last):
            kind = tokens[index].kind
            if kind in _CLOSING:
                depth += 1
            elif kind in _CLOSING.values():
                depth -= 1
            elif depth == 0 and kind == "?" and tokens[index - 1].kind == ".":
                continue
            elif depth == 0 and kind in ("?", "||") and operator == "&&":
                return [self._range(first, last)]
            elif depth == 0 and kind == operator:
                parts.append(self._range(begin, index))
                begin = index + 1
        parts.append(self._range(begin, last))
        return parts

    def _range(self, first: int, last: int) -> tuple[int, int]:
        if first >= last:
            return 0, 0
        final = self.tokens[last - 1]
        return self.tokens[first].offset, final.offset + len(final.text)
