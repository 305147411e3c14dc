from __future__ import annotations

import pytest

from kubedra.cel import CompileError
from kubedra.cel.ast import Call, Literal, Node
from kubedra.cel.macros import STANDARD
from kubedra.cel.parser import parse


def _parse(text: str) -> Node:
    return parse(text, STANDARD)


def _failure(text: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        _parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "Syntax error: mismatched input '<EOF>'"),
        ("a.in", 1, 3, "Syntax error: no viable alternative at input '.in'"),
        ("a.true", 1, 3, "Syntax error: mismatched input 'true' expecting IDENTIFIER"),
        ("a = b", 1, 3, "Syntax error: token recognition error at: '= '"),
        ("a # b", 1, 3, "Syntax error: token recognition error at: '#'"),
        ('"abc', 1, 1, "Syntax error: token recognition error at: '\"abc'"),
        ("a[1", 1, 4, "Syntax error: missing ']' at '<EOF>'"),
        ("a b", 1, 3, "Syntax error: extraneous input 'b' expecting <EOF>"),
        ("a b c", 1, 3, "Syntax error: mismatched input 'b' expecting <EOF>"),
        ("package == 1", 1, 1, "reserved identifier: package"),
        ("a &&\n  b.`c`", 2, 5, "unsupported syntax: '`'"),
        ("9223372036854775808", 1, 1, "invalid int literal"),
        ("18446744073709551616u", 1, 1, "invalid uint literal"),
        ("1e999", 1, 1, "invalid double literal"),
        ("[1].all(x.y, true)", 1, 10, "argument must be a simple name"),
        ("[1].map(@x, 1)", 1, 9, "Syntax error: token recognition error at: '@'"),
        ("has(a)", 1, 5, "invalid argument to has() macro"),
    ],
)
def test_the_first_error_has_upstreams_place_and_words(text: str, line: int, column: int, message: str) -> None:
    error = _failure(text)
    assert (error.line, error.column) == (line, column)
    assert error.message.startswith(message)


def test_the_text_shows_line_and_caret() -> None:
    assert str(_failure("a &&\n  é.in")) == (
        "compilation failed: ERROR: <input>:2:3: Syntax error: token recognition error at: 'é'\n"
        " |   é.in\n"
        " | ..＾\n"
        "ERROR: <input>:2:5: Syntax error: no viable alternative at input '.in'\n"
        " |   é.in\n"
        " | ..．.^"
    )


@pytest.mark.parametrize(
    "text",
    [
        "(" * 250 + "true" + ")" * 250,
        "[" * 251 + "]" * 251,
        "a" + ".b" * 251,
        " + ".join(["1"] * 252),
        "a" + "[0]" * 251,
        "true ? 1 : " * 251 + "1",
    ],
)
def test_nesting_beyond_250_is_refused(text: str) -> None:
    error = _failure(text)
    assert "recursion" in error.message
    assert (error.line, error.column) == (-1, 0)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 249 + "true" + ")" * 249,
        "a" + ".b" * 249,
        " || ".join(["true"] * 2000),
        " + ".join(["1"] * 251),
        "!" * 2000 + "true",
    ],
)
def test_what_upstream_allows_is_allowed(text: str) -> None:
    assert isinstance(_parse(text), Node)


def test_unary_minus_belongs_to_a_number() -> None:
    node = _parse("-9223372036854775808")
    assert isinstance(node, Literal)
    assert node.value == -(2**63)
    negated = _parse("-a")
    assert isinstance(negated, Call)
    assert negated.function == "-_"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\x41\u00e9\U0001F600\101\n"', "Aé😀A\n"),
        (r"r'\n'", r"\n"),
        ('"""a"b\n"""', 'a"b\n'),
        (r"b'\xff\377a'", b"\xff\xffa"),
        ("b'é'", "é".encode()),
        ("0x10", 16),
        ("1.5e3", 1500.0),
    ],
)
def test_literals(text: str, value: object) -> None:
    node = _parse(text)
    assert isinstance(node, Literal)
    assert node.value == value
