"""Laws that hold for every quantity, checked on generated ones."""

from __future__ import annotations

import contextlib
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from kubedra.base.quantity import Quantity, QuantityError

_UNITS = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)}
_UNITS |= {suffix: Fraction(10 ** (3 * power)) for power, suffix in enumerate("kMGTPE", 1)}
_UNITS |= {suffix + "i": Fraction(2 ** (10 * power)) for power, suffix in enumerate("KMGTPE", 1)}
_UNITS |= {f"e{power}": Fraction(10) ** power for power in range(-9, 19)}

texts = st.builds(
    lambda sign, whole, fraction, unit: (f"{sign}{whole}{fraction}{unit}", sign, whole, fraction, unit),
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**20).map(str),
    st.one_of(st.just(""), st.text("0123456789", max_size=12).map(lambda digits: "." + digits)),
    st.sampled_from(sorted(_UNITS)),
)


@settings(max_examples=400, deadline=None)
@given(texts)
def test_the_amount_is_exact_up_to_a_nano_and_the_binary_cap(made: tuple[str, str, str, str, str]) -> None:
    text, sign, whole, fraction, unit = made
    exact = Fraction(whole + (fraction if len(fraction) > 1 else "")) * _UNITS[unit] * 10**9
    expected = -(-exact.numerator // exact.denominator)
    if unit.endswith("i"):
        expected = min(expected, (2**63 - 1) * 10**9)
    assert Quantity.parse(text).nano == (-expected if sign == "-" else expected)


@settings(max_examples=300, deadline=None)
@given(texts, texts)
def test_sums_and_order_agree_with_integers(
    one: tuple[str, str, str, str, str], two: tuple[str, str, str, str, str]
) -> None:
    a, b = Quantity.parse(one[0]), Quantity.parse(two[0])
    assert (a + b).nano == a.nano + b.nano
    assert (a - b).nano == a.nano - b.nano
    assert a + b - b == a
    assert (a < b) == (a.nano < b.nano)
    assert Quantity.parse(str(a)) == a
    # A sum of decimal and binary amounts may be written with a binary unit, and texts of those are cut at 2**63 - 1.
    if abs((a + b).nano) <= (2**63 - 1) * 10**9:
        assert Quantity.parse(str(a + b)) == a + b


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_a_quantity_or_a_quantity_error(text: str) -> None:
    with contextlib.suppress(QuantityError):
        Quantity.parse(text)
