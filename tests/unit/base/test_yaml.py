from __future__ import annotations

from typing import Any

import pytest

from kubedra.base import yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True), ("on", True), ("y", True), ("no", False), ("OFF", False), ("010", 8), ("08", 8), ("0o10", 8),
        ("0x1F", 31), ("1_000", 1000), ("1e3", 1000), (".5", 0.5), ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), ("12:30:45", "12:30:45"), ("~", None), ("null", None),
        ("'yes'", "yes"), ('"010"', "010"), ("80Gi", "80Gi"), ("-3", -3), ("1.5", 1.5), ("v1", "v1"), ("!!str 5", "5"),
    ],
)  # fmt: skip
def test_scalars_are_read_as_kubectl_reads_them(text: str, value: Any) -> None:
    got = yaml.load(f"a: {text}\n")["a"]
    assert got == value
    assert type(got) is type(value)


def test_a_key_that_looks_like_a_boolean_becomes_its_word() -> None:
    assert yaml.load("n: 1\n") == {"false": 1}


def test_every_field_has_its_line() -> None:
    doc = yaml.load_all("kind: A\n---\n\nkind: B\nspec:\n  list:\n  - name: x\n    value: 1\n", "f.yaml")[1]
    assert doc.line_of("spec.list[0].value") == 8
    assert doc.line_of("spec.list[0].missing.deeper") == 7
    assert doc.line_of("nothing") == doc.line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: the key 'a' stands twice (first in line 1)"),
        ("a: [1\n", "f.yaml:2"),
        ("a: b: c\n", "f.yaml:1"),
        ("a: .nan\n", "f.yaml:1"),
        ("? [1]\n: 2\n", "f.yaml:1: a key must be a plain word"),
    ],
)
def test_broken_text_names_file_and_line(text: str, message: str) -> None:
    with pytest.raises(yaml.YamlError) as caught:
        yaml.load(text, "f.yaml")
    assert message in str(caught.value)


def test_deep_or_multiplying_input_is_refused() -> None:
    with pytest.raises(yaml.YamlError):
        yaml.load("[" * 3000, "f.yaml")
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [" + ",".join([f"*{chr(97 + i)}"] * 9) + "]\n" for i in range(8)
    )
    with pytest.raises(yaml.YamlError):
        yaml.load(bomb, "f.yaml")


def test_merge_keys_fill_what_is_not_there() -> None:
    assert yaml.load("x: &x {a: 1, b: 2}\nz:\n  <<: *x\n  b: 3\n")["z"] == {"b": 3, "a": 1}


def test_what_is_written_is_read_back() -> None:
    tree = {"a": "yes", "b": "010", "c": ["1e3", "2026-01-01", "12:30"], "d": "two\nlines\n", "e": None, "f": 1.5}
    assert yaml.load(yaml.dump(tree)) == tree
