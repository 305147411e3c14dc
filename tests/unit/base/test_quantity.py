from __future__ import annotations

import pytest

from kubedra.base.quantity import ERR_FORMAT, ERR_NUMERIC, ERR_SUFFIX, Quantity, QuantityError

parse = Quantity.parse


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0n", "0"),
        ("1024Mi", "1Gi"),
        ("81920Mi", "80Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("100m", "100m"),
        ("1000k", "1M"),
        ("1e3", "1e3"),
        ("10e3", "10e3"),
        ("1000e3", "1e6"),
        ("12E", "12E"),
        ("1000E", "1e21"),
        ("0.5Gi", "512Mi"),
        ("0.5Mi", "512Ki"),
        ("1Ki", "1Ki"),
        ("512", "512"),
        ("0.9n", "1n"),
        ("-0.9n", "-1n"),
        ("0.1Ki", "102400m"),
        ("-80Gi", "-80Gi"),
        ("8Ei", str(2**63 - 1)),
        ("1.2345", "1234500u"),
        ("+5", "+5"),  # kept as written: upstream takes it for canonical
        ("1.500", "1.500"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ERR_FORMAT),
        ("aoeu", ERR_FORMAT),
        (" 1", ERR_FORMAT),
        ("1 ", ERR_FORMAT),
        ("1.1.M", ERR_FORMAT),
        ("80GB", ERR_FORMAT),
        ("1+1.0M", ERR_FORMAT),
        ("0.1mi", ERR_SUFFIX),
        ("1i", ERR_SUFFIX),
        ("-3.01e-", ERR_SUFFIX),
        ("1e99999", ERR_NUMERIC),
        ("9" * 5000, ERR_NUMERIC),
    ],
)
def test_what_is_no_quantity_says_so_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_value_and_milli_value_round_up() -> None:
    assert parse("1500m").value() == 2
    assert parse("-1500m").value() == -2
    assert parse("0.0001").milli_value() == 1
    assert parse("1Gi").value() == 2**30


def test_as_int64_needs_upstreams_fast_form() -> None:
    assert parse("80Gi").as_int64() == 80 * 2**30
    assert parse("2k").as_int64() == 2000
    assert parse("1.5Gi").as_int64() is None
    assert parse("1000m").as_int64() is None
    assert parse("1000E").as_int64() is None


def test_a_zero_takes_the_family_of_what_is_added() -> None:
    assert str(parse("0") + parse("2048Ki")) == "2Mi"
    assert str(parse("1") + parse("1Gi")) == "1073741825"
    assert str(parse("81920Mi") - parse("1Gi")) == "79Gi"


def test_equal_amounts_compare_and_hash_alike() -> None:
    assert parse("80Gi") == parse("81920Mi")
    assert hash(parse("1k")) == hash(parse("1e3"))
    assert parse("80G") < parse("80Gi")
    assert parse("1").compare(parse("1000m")) == 0
    assert parse("80Gi") != "80Gi"


def test_numbers_are_read_as_their_json_text() -> None:
    assert parse(2) == parse("2")
    assert parse(0.5) == parse("500m")
    assert parse(1e16) == parse("10P")
    with pytest.raises(QuantityError):
        parse(float("nan"))


def test_it_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        parse("1").nano = 3
