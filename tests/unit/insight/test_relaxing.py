"""Changes to one selector: proposals only, each verified by whoever asked."""

from __future__ import annotations

import pytest

from kubedra.insight.relaxing import accesses, shown_amount
from tests.unit.insight.clusters import ask, claim, device, pod, request, slice_of, snapshot

CARD = device("a", {"productName": "NVIDIA A100", "numa": 1}, memory="80Gi")
DOMAIN = '["d.example"]'


def test_accesses_are_found_in_all_their_forms() -> None:
    found = accesses(
        f'has(device.attributes{DOMAIN}.a) && device.capacity{DOMAIN}["b"].isLessThan(quantity("1"))'
        f" && device.attributes{DOMAIN}.?c.orValue(false)"
    )
    assert [(a.capacity, a.name, a.optional, a.tested) for a in found] == [
        (False, "a", False, True),
        (True, "b", False, False),
        (False, "c", True, False),
    ]
    assert accesses("device.driver == 'x' && device.attributes[") == []


@pytest.mark.parametrize(
    ("selector", "code", "change"),
    [
        (
            f'device.attributes{DOMAIN}.productName == "A100"',
            "relax-selector",
            f'device.attributes{DOMAIN}.productName == "NVIDIA A100"',
        ),
        (
            f'device.capacity{DOMAIN}.memory.isGreaterThan(quantity("80Gi"))',
            "relax-selector",
            f'device.capacity{DOMAIN}.memory.compareTo(quantity("80Gi")) >= 0',
        ),
        (f"device.attributes{DOMAIN}.numa == 0", "relax-selector", f"device.attributes{DOMAIN}.numa == 1"),
        (f"device.attributes{DOMAIN}.numa > 1", "relax-selector", f"device.attributes{DOMAIN}.numa >= 1"),
        (
            f'device.attributes{DOMAIN}.memory >= "16Gi"',
            "repair-selector",
            f'device.capacity{DOMAIN}.memory.compareTo(quantity("16Gi")) >= 0',
        ),
        ('device.driver == "d.example/gpu"', "repair-selector", 'device.driver == "d.example"'),
    ],
)
def test_a_selector_is_changed_to_what_devices_have(selector: str, code: str, change: str) -> None:
    answer, _ = ask(snapshot(slice_of("n1", [CARD]), claim("x", request("r", selector)), pod("p", "x")))
    assert not answer.fits
    assert (answer.remedies[0].code, answer.remedies[0].change) == (code, change)


def test_amounts_are_shown_in_their_largest_whole_unit() -> None:
    assert [shown_amount(text) for text in ("81920Mi", "81559Mi", "1024Gi", "16", "40G")] == [
        "80Gi",
        "81559Mi",
        "1Ti",
        "16",
        "40G",
    ]


def test_nonsense_never_breaks_an_answer() -> None:
    for selector in (
        "",
        "((",
        'device.attributes["',
        "1 +",
        'quantity("x")',
        "device.attributes[device.driver].x == 1",
    ):
        answer, _ = ask(snapshot(slice_of("n1", [CARD]), claim("x", request("r", selector)), pod("p", "x")))
        assert not answer.fits
