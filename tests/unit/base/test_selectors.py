"""Selectors refuse and match as upstream's do."""

from __future__ import annotations

import pytest

from kubedra.base.selectors import SelectorError, parse_field_selector, parse_label_selector, selector_from_object


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a in (b,c)", {"a": "c"}, True),
        ("a notin (b, c)", {"a": "c"}, False),
        ("a notin (b)", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a>5", {"a": "6"}, True),
        ("a<5,b", {"a": "6", "b": ""}, False),
        ("a=", {"a": ""}, True),
    ],
)
def test_label_selectors_match(text: str, labels: dict[str, str], selected: bool) -> None:
    assert parse_label_selector(text).matches(labels) is selected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a in b", r"found 'b' expected: '\('"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
    ],
)
def test_broken_label_selectors_say_what_was_found(text: str, message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        parse_label_selector(text)


def test_selector_objects() -> None:
    selector = selector_from_object(
        {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}]}
    )
    assert selector.matches({"a": "b"}) and not selector.matches({"a": "b", "c": "d"})
    assert not selector_from_object(None).matches({})
    assert selector_from_object({}).matches({})


def test_field_selectors() -> None:
    selector = parse_field_selector("spec.nodeName=n1,status.phase!=Failed")
    fields = {"spec.nodeName": "n1", "status.phase": "Running"}
    assert selector.matches(lambda path: fields.get(path, ""))
    assert selector.exact("spec.nodeName") == "n1" and selector.exact("status.phase") is None
    with pytest.raises(SelectorError, match=r"invalid selector: 'metadata\.name'; can't understand 'metadata\.name'"):
        parse_field_selector("metadata.name")
