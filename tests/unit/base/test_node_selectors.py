"""Node selectors read as upstream reads them, down to the terms that match nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kubedra.base.node_selectors import matches_node_selector

LABELS = {"zone": "a", "rank": "7"}


@dataclass(frozen=True)
class Requirement:
    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Term:
    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True)
class Selector:
    node_selector_terms: tuple[Term, ...] = field(default=())


def selects(*terms: Term) -> bool:
    return matches_node_selector(Selector(terms), LABELS, "n1")


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "In", ("b",), False),
        ("gone", "In", ("a",), False),
        ("zone", "NotIn", ("a",), False),
        ("gone", "NotIn", ("a",), True),
        ("zone", "Exists", (), True),
        ("gone", "Exists", (), False),
        ("gone", "DoesNotExist", (), True),
        ("rank", "Gt", ("6",), True),
        ("rank", "Gt", ("7",), False),
        ("rank", "Lt", ("8",), True),
        ("zone", "Gt", ("1",), False),
        ("rank", "Gt", ("x",), False),
        ("rank", "Gt", ("1", "2"), False),
        ("rank", "Lt", (str(2**63),), False),
        ("zone", "Like", ("a",), False),
    ],
)
def test_a_label_requirement(key: str, operator: str, values: tuple[str, ...], expected: bool) -> None:
    assert selects(Term((Requirement(key, operator, values),))) is expected


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [("In", ("n1",), True), ("In", ("n2",), False), ("NotIn", ("n2",), True), ("In", ("n1", "n2"), False)],
)
def test_a_field_requirement_names_exactly_one_node(operator: str, values: tuple[str, ...], expected: bool) -> None:
    assert selects(Term(match_fields=(Requirement("metadata.name", operator, values),))) is expected


def test_an_unknown_field_matches_nothing() -> None:
    assert not selects(Term(match_fields=(Requirement("metadata.uid", "In", ("n1",)),)))


def test_no_terms_and_empty_terms_select_nothing() -> None:
    assert not selects()
    assert not selects(Term())


def test_terms_are_alternatives_and_requirements_add_up() -> None:
    here, elsewhere = Requirement("zone", "In", ("a",)), Requirement("zone", "In", ("b",))
    assert selects(Term((elsewhere,)), Term((here,)))
    assert not selects(Term((here, elsewhere)))
    assert not selects(Term((here,), (Requirement("metadata.name", "In", ("n2",)),)))
