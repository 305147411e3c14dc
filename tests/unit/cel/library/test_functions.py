"""Each function by its results, through whole expressions as people write them."""

from __future__ import annotations

import pytest

from kubedra import cel
from kubedra.base.features import FeatureGates

_DEVICE = cel.device_input_from_tree("d", {})


def _run(expression: str) -> object:
    selector = cel.compile_selector(expression, features=FeatureGates("1.37"), version="1.37", stored=True)
    outcome, _ = selector.measure(_DEVICE)
    try:
        assert selector.evaluate(_DEVICE) is outcome
    except cel.EvaluationError as error:
        assert str(error) == str(outcome)
    return outcome if isinstance(outcome, bool) else str(outcome)


@pytest.mark.parametrize(
    "expression",
    [
        # quantities
        'quantity("1.5Gi").add(quantity("512Mi")) == quantity("2Gi")',
        'quantity("2k").sub(500) == quantity("1500")',
        'quantity("2k").asInteger() == 2000',
        '!quantity("1.5Gi").isInteger()',
        'quantity("500m").asApproximateFloat() == 0.5',
        'sign(quantity("-1")) == -1 && sign(quantity("0")) == 0',
        'isQuantity("1e3") && !isQuantity("1 Gi")',
        'quantity("1Gi").isLessThan(quantity("1.1Gi"))',
        # versions
        'semver("v1.2", true) == semver("1.2.0")',
        'semver("1.2.3-rc.1").isLessThan(semver("1.2.3"))',
        'semver("1.2.3").major() == 1 && semver("1.2.3").minor() == 2 && semver("1.2.3").patch() == 3',
        'isSemver("1.0.0") && !isSemver("1.0") && isSemver("1.0", true)',
        # strings
        '"tacocat".charAt(3) == "o"',
        '"tacocat".indexOf("c", 3) == 4 && "tacocat".lastIndexOf("a") == 5 && "a".indexOf("") == 0',
        '"a,b,c".split(",", 2) == ["a", "b,c"] && "abc".split("") == ["a", "b", "c"]',
        '"tacocat".substring(4) == "cat" && "tacocat".substring(0, 4) == "taco"',
        '" x ".trim() == "x" && "ÄbC".lowerAscii() == "Äbc" && "ä".upperAscii() == "ä"',
        '"a-a".replace("a", "b", 1) == "b-a" && "ab".replace("", "_") == "_a_b_"',
        '["a", "b"].join("+") == "a+b" && [].join() == ""',
        '"%s: %d %.2f".format([dyn("n"), dyn(7), dyn(1.5)]) == "n: 7 1.50"',
        '"%x %b %o %X".format([255, 5, 8, 255]) == "ff 101 10 FF"',
        '"%s".format([[1, 2]]) == "[1, 2]" && "%f".format([1234.5]) == "1,234.500000"',
        'strings.quote("a\\"b") == "\\"a\\\\\\"b\\""',
        # lists and sets
        "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sortBy(x, x) == ['a', 'b']",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2]].flatten() == [1, 2]",
        "[1, 1, 2].distinct() == [1, 2] && [1, 2].reverse() == [2, 1] && lists.range(2) == [0, 1]",
        "[1, 2].sum() == 3 && [1.5].max() == 1.5 && ['b', 'a'].min() == 'a' && [1, 2].isSorted()",
        "[1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(3) == -1",
        "[1].first().value() == 1 && ![].last().hasValue()",
        "sets.contains([1, 2], [1]) && sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1], [1, 2])",
        "[1, 2].includes(2) && 'a'.includes('a') && ![1].includes('a')",
        # loops
        "[1, 2].exists_one(x, x == 1) && [1, 2].map(x, x * 2) == [2, 4] && [1, 2].filter(x, x > 1) == [2]",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && ['a'].transformList(i, v, v + string(i)) == ['a0']",
        "{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'} && {'a': 1}.all(k, v, k == 'a' && v == 1)",
        "cel.bind(x, 2, cel.bind(y, x + 1, x * y)) == 6",
        # optionals
        "optional.of(1).optMap(x, x + 1).orValue(0) == 2 && optional.none().or(optional.of(3)).value() == 3",
        "optional.of(1).optFlatMap(x, optional.of(x)).value() == 1 && optional.ofNonZeroValue(0) == optional.none()",
        "[?optional.of(1), ?optional.none()] == [1] && {?'a': optional.none()}.size() == 0",
        "[1, 2][?5].orValue(7) == 7 && {'a': {'b': 1}}.?a.b.value() == 1",
        # numbers and times
        "-7 / 2 == -3 && -7 % 2 == -1 && 7u / 2u == 3u && 1.0 / 0.0 > 1e308",
        "int(3.9) == 3 && uint('7') == 7u && double('1.5') == 1.5 && string(1.0) == '1' && string(1e21) == '1e+21'",
        "duration('90m') == duration('1h30m') && string(duration('1.5s')) == '1.5s' && duration('90m').getHours() == 1",
        "timestamp('2026-01-02T03:04:05Z') + duration('1h') == timestamp('2026-01-02T04:04:05Z')",
        "timestamp('2026-01-02T03:04:05.678Z').getMilliseconds() == 678",
        "timestamp('2026-01-01T00:00:00Z').getHours('+02:30') == 2 && timestamp(0).getFullYear('UTC') == 1970",
        "string(timestamp('2026-01-02T03:04:05.500+01:00')) == '2026-01-02T02:04:05.5Z'",
        # addresses
        'ip("10.0.0.1").family() == 4 && cidr("10.0.0.0/8").containsIP("10.1.2.3") && !isIP("1.2.3")',
        'cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8")',
        'cidr("10.1.2.3/8").ip() == ip("10.1.2.3") && cidr("::/0").prefixLength() == 0 && ip.isCanonical("::1")',
        'ip("fe80::1").isLinkLocalUnicast() && ip("ff02::1").isLinkLocalMulticast() && ip("8.8.8.8").isGlobalUnicast()',
        'url("https://u@h:8/p#f").getHost() == "h:8" && url("https://h/p?a=1&a=2").getQuery() == {"a": ["1", "2"]}',
        'url("https://[::1]:80/x y").getHostname() == "::1" && isURL("/a") && !isURL("a/b")',
        'format.dns1123Label().validate("ok") == optional.none() && format.named("uuid").hasValue()',
        'format.dns1123Label().validate("NO").hasValue() && !format.named("x").hasValue()',
        # types and bytes
        "type(1) == int && type('a') == string && type([]) == list && type(type(1)) == type && type(null) == null_type",
        "b'\\xff'.size() == 1 && bytes('é') == b'\\xc3\\xa9' && string(b'a') == 'a' && b'a' + b'b' == b'ab'",
        "dyn(1) == 1.0 && dyn(1) == 1u && dyn(1) != 'a' && 1 < dyn(1.5) && dyn(2u) > 1",
        "null == null && dyn(1) != null",
    ],
)
def test_holds(expression: str) -> None:
    assert _run(expression) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("9223372036854775807 + 1 == 0", "integer overflow"),
        ("-9223372036854775808 / -1 == 0", "integer overflow"),
        ("0u - 1u == 0u", "unsigned integer overflow"),
        ("1 / 0 == 0", "division by zero"),
        ("1 % 0 == 0", "modulus by zero"),
        ("[1][1] == 1", "index out of bounds: 1"),
        ("{'a': 1}.b == 1", "no such key: b"),
        ("dyn(1) + dyn('a') == 1", "no such overload"),
        ("dyn(null) + 1 == 1", "no such overload: _+_"),
        ("dyn(1).startsWith('a')", "no such overload"),
        ("[].min() == 1", "min called on empty list"),
        ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
        ("'abc'.charAt(4) == ''", "index out of range: 4"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ('semver("1").major() == 1', "No Major.Minor.Patch elements found"),
        ('quantity("0.5").asInteger() == 0', "cannot convert value to integer"),
        ("double('NaN') < 1.0", "NaN values cannot be ordered"),
        ("dyn([1]).exists(x, x.y == 1)", "no such key: y"),
        ("dyn(1).exists(x, x == 1)", "got 'types.Int', expected iterable type"),
    ],
)
def test_fails_in_upstreams_words(expression: str, message: str) -> None:
    assert _run(expression) == message


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ('duration("x") == duration("1s")', "invalid duration argument"),
        ('timestamp("x") == timestamp(0)', "invalid timestamp argument"),
        ('"a".matches("(")', "invalid matches argument"),
        ('int("x") == 1', "program instantiation failed: type conversion error from 'string' to 'int'"),
        ('"a".find("(") == ""', "program instantiation failed: error parsing regexp: missing closing ): `(`"),
        ('"%d".format(["a"]) == ""', "decimal clause can only be used on integers, was given string"),
        ('"%s".format([]) == ""', "index 0 out of range"),
        ('"a".format([1]) == ""', "too many arguments supplied to string.format (expected 0, got 1)"),
        ("int{} == 1", "'int' is not a message type"),
        ("kubernetes.DRADevice{driver: 'x'} == device", "undeclared reference to 'kubernetes.DRADevice'"),
        ("[1, 'a'] == []", "expected type 'int' but found 'string'"),
        ("device.all(x, true)", "cannot be range of a comprehension"),
    ],
)
def test_does_not_compile(expression: str, text: str) -> None:
    with pytest.raises(cel.CompileError) as caught:
        _run(expression)
    assert text in str(caught.value)
