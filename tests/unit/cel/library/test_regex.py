from __future__ import annotations

import pytest

from kubedra.cel import EvaluationError
from kubedra.cel.library.regex import PatternError, compile_pattern, find, find_all, matches


@pytest.mark.parametrize("pattern", ["[", "(?=a)", "(", "a**", r"\1", "(?P<n>a)(?P=n)", "x{1001}"])
def test_what_re2_cannot_do_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="error parsing regexp: "):
        compile_pattern(pattern)


def test_matches_anywhere() -> None:
    assert matches("Accel-A100", "A[0-9]+$")
    assert not matches("Accel-A100", "^A[0-9]+$")
    with pytest.raises(EvaluationError, match="error parsing regexp"):
        matches("a", "(")
    with pytest.raises(EvaluationError, match="no such overload"):
        matches("a", 1)


def test_find_and_find_all_count_as_go_does() -> None:
    assert find("abc 123", "[0-9]*") == ""
    assert find("abc 123", "[0-9]+") == "123"
    assert find_all("123 abc 456", "[0-9]+") == ["123", "456"]
    assert find_all("123 abc 456", "[0-9]+", 1) == ["123"]
    assert find_all("123 abc 456", "[0-9]+", 0) == []
    assert find_all("aéb", "x*") == ["", "", "", ""]
    assert find_all("baac", "a*") == ["", "aa", ""]


def test_a_lone_surrogate_does_no_harm() -> None:
    assert not matches("\ud800", "^a$")
    with pytest.raises(PatternError):
        compile_pattern("\ud800")


def test_time_is_linear_for_the_patterns_that_stop_others() -> None:
    assert not matches("a" * 50_000 + "!", "(a+)+$")
