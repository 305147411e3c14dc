"""Prices of functions that the shared cases leave out, as upstream's tests state them."""

from __future__ import annotations

import pytest

from kubedra.base.features import FeatureGates
from kubedra.cel.estimate import estimate
from kubedra.cel.selector import compile_program, environment_for

_LONG_IP = "2001:db8:3333:4444:5555:6666:7777:8888"
_CIDR = "cidr('192.168.0.0/16')"


@pytest.mark.parametrize(
    ("expression", "least", "most", "actual"),
    [
        ("ip.isCanonical('192.168.0.1')", 3, 3, 3),
        (f"ip.isCanonical('{_LONG_IP}')", 8, 8, 8),
        (f"ip('{_LONG_IP}').family()", 5, 5, 5),
        (f"{_CIDR}.containsIP('192.169.0.1')", 5, 8, 5),
        (f"{_CIDR}.containsCIDR(cidr('192.0.0.0/30'))", 7, 11, 7),
        ("url('https:://kubernetes.io/') == url('https:://kubernetes.io/')", 7, 9, 7),
        ("url('https:://kubernetes.io/').getHost()", 4, 4, 4),
        ("'ABCDEFGHIJ abcdefghij'.lowerAscii() == 'abcdefghij ABCDEFGHIJ'.lowerAscii()", 7, 9, 9),
        ("strings.quote('ABCDEFGHIJ abcdefghij')", 3, 3, 3),
        ("'abc 123 def 123'.replace('', 'x')", 3, 3, 3),
        ("'abc 123 def 123'.findAll('123', 1)", 2, 2, 2),
        ('format.named("dns1123Subdomain").value().validate("my-name")', 34, 34, 17),
        ('format.named("dns1123Label").value().validate("my-name")', 34, 34, 10),
        ('format.named("dns1123Label").value() == format.named("dns1123Label").value()', 5, 11, 5),
        ('quantity("50k").add(20).sub(quantity("100k")).sub(-50000).asInteger() > 0', 7, 7, 7),
        ('semver("1234.56789012345.67890123456789")', 4, 4, 4),
    ],
)
def test_prices_are_those_of_upstream(expression: str, least: int, most: int, actual: int) -> None:
    environment = environment_for(FeatureGates(), "1.37", stored=False)
    program = compile_program(expression, environment)
    assert estimate(program.root, environment) == (least, most)
    assert program.measure(program.frame({}))[1] == actual
