from __future__ import annotations

import pytest

from kubedra.base.semver import Semver, SemverError, normalise


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Version string empty"),
        ("550.54", "No Major.Minor.Patch elements found"),
        ("v1.2.3", 'Invalid character(s) found in major number "v1"'),
        ("01.2.3", 'Major number must not contain leading zeroes "01"'),
        ("1..3", 'strconv.ParseUint: parsing "": invalid syntax'),
        ("1.2.3.4", 'Invalid character(s) found in patch number "3.4"'),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3+", "Build meta data is empty"),
        ("99999999999999999999.0.0", 'strconv.ParseUint: parsing "99999999999999999999": value out of range'),
    ],
)
def test_strict_parsing_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(SemverError) as caught:
        Semver.parse(text)
    assert str(caught.value) == message


def test_precedence_follows_the_specification() -> None:
    order = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11"]
    order += ["1.0.0-rc.1", "1.0.0", "1.0.1", "1.1.0", "2.0.0"]
    versions = [Semver.parse(text) for text in order]
    assert sorted(versions, reverse=True) == versions[::-1]


def test_build_metadata_is_printed_but_not_compared() -> None:
    left, right = Semver.parse("1.2.3+a"), Semver.parse("1.2.3+b")
    assert left == right
    assert hash(left) == hash(right)
    assert str(left) == "1.2.3+a"


@pytest.mark.parametrize(
    ("loose", "strict"), [("v1", "1.0.0"), ("1.2", "1.2.0"), ("01.002.3", "1.2.3"), ("1.2.3-rc.1+x", "1.2.3-rc.1+x")]
)
def test_loose_spellings_are_made_strict(loose: str, strict: str) -> None:
    assert str(Semver.parse(normalise(loose))) == strict
