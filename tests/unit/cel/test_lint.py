from __future__ import annotations

from typing import Any

import pytest

from kubedra.base.features import FeatureGates
from kubedra.cel import device_input_from_tree
from kubedra.cel.fleet import Fleet, FleetDevice
from kubedra.cel.lint import Examination, examine

_GATES = FeatureGates("1.37")
_GPU = "gpu.example.com"


def _device(driver: str, place: str, tree: dict[str, Any]) -> FleetDevice:
    return FleetDevice(place, device_input_from_tree(driver, tree))


def _fleet() -> Fleet:
    devices = []
    for index in range(4):
        attributes: dict[str, Any] = {
            "model": {"string": "Accel-A100" if index < 2 else "Accel-H100"},
            "index": {"int": index},
            "driverVersion": {"version": "550.54.15" if index else "535.1.0"},
            "migCapable": {"bool": True},
            "vbios": {"string": f"96.0{index}.89"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:17"},
        }
        if index == 3:
            attributes["profile"] = {"string": "1g.10gb"}
        tree = {"attributes": attributes, "capacity": {"memory": {"value": "81559Mi"}}}
        devices.append(_device(_GPU, f"{_GPU}/pool/gpu-{index}", tree))
    devices.append(_device("nic.example.net", "nic.example.net/pool/eth0", {"attributes": {"ifName": {"string": "e"}}}))
    return Fleet(devices)


def _examine(expression: str, fleet: Fleet | None = None) -> Examination:
    return examine(expression, fleet or _fleet(), features=_GATES, version="1.37")


def _codes(result: Examination) -> list[str]:
    return [finding.code for finding in result.findings]


_A = f'device.attributes["{_GPU}"]'
_C = f'device.capacity["{_GPU}"]'
_D = f'device.driver == "{_GPU}"'


def test_counts_matches_and_names_the_part_that_decided() -> None:
    result = _examine(f'{_D} && {_A}.model == "Accel-A100"')
    assert result.matches == 2
    assert result.verdict is not None
    decided = [(group.part, group.seen, group.count) for group in result.verdict.unmatched]
    assert decided == [
        (f'{_A}.model == "Accel-A100"', (f'attributes["{_GPU}"].model = "Accel-H100"',), 2),
        (_D, ('driver = "nic.example.net"',), 1),
    ]


def test_devices_that_just_miss_are_named_although_others_match() -> None:
    big = _device(_GPU, f"{_GPU}/pool/big", {"capacity": {"memory": {"value": "80Gi"}}})
    fleet = Fleet([*_fleet().devices, big])
    expression = f'{_D} && {_C}.memory.compareTo(quantity("80Gi")) >= 0'
    (message,) = [f.message for f in _examine(expression, fleet).findings if f.code == "just-below"]
    assert message == "devices with memory 81559Mi miss 80Gi by 361Mi"
    far = f'{_D} && {_C}.memory.compareTo(quantity("70Gi")) >= 0'
    assert "just-below" not in _codes(_examine(far, fleet))


def test_errors_are_grouped_with_their_message() -> None:
    result = _examine(f"{_A}.index == 0")
    assert result.verdict is not None
    assert [(group.message, group.count) for group in result.verdict.failed] == [("no such key: index", 1)]


@pytest.mark.parametrize(
    ("expression", "code", "repaired"),
    [
        (
            f'{_D} && {_C}.memory.compareTo(quantity("80Gi")) >= 0',
            "near-miss",
            f'{_D} && {_C}.memory.compareTo(quantity("81559Mi")) >= 0',
        ),
        (f'{_D} && {_A}.model == "A100"', "near-miss", f'{_D} && {_A}.model == "Accel-A100"'),
        (f"{_D} && {_A}.indx == 1", "unknown-attribute", f"{_D} && {_A}.index == 1"),
        (
            f'{_D} && device.attributes["gpu.exampel.com"].index == 1',
            "unknown-domain",
            f"{_D} && {_A}.index == 1",
        ),
        (
            f'{_D} && {_A}.pcieRoot == "pci0000:17"',
            "unknown-attribute",
            f'{_D} && device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:17"',
        ),
        (
            f'{_D} && {_A}.memory.compareTo(quantity("1Gi")) > 0',
            "capacity-as-attributes",
            f'{_D} && {_C}.memory.compareTo(quantity("1Gi")) > 0',
        ),
        (
            f'{_D} && {_A}.driverVersion >= "550.0.0"',
            "version-as-string",
            f'{_D} && {_A}.driverVersion.compareTo(semver("550.0.0")) >= 0',
        ),
        (
            f'{_D} && {_A}.vbios > "96.01"',
            "versions-as-strings",
            f'{_D} && semver({_A}.vbios, true).isGreaterThan(semver("96.01", true))',
        ),
        (f'{_D} && {_A}.index == "0"', "different-kinds", f"{_D} && {_A}.index == 0"),
        (f'{_D} && {_A}.migCapable == "true"', "different-kinds", f"{_D} && {_A}.migCapable == true"),
        (f'{_A}.profile == "1g.10gb"', "unguarded-attribute", f'has({_A}.profile) && {_A}.profile == "1g.10gb"'),
        ('device.driver == "gpu.example.org"', "unknown-driver", _D),
        (
            f'{_D} && {_C}.memory != quantity("1Gi")',
            "unbounded-cost",
            f'{_D} && {_C}.memory.compareTo(quantity("1Gi")) != 0',
        ),
    ],
)
def test_finds_the_slip_and_repairs_it(expression: str, code: str, repaired: str) -> None:
    result = _examine(expression)
    assert code in _codes(result)
    assert result.repaired == repaired


@pytest.mark.parametrize(
    ("expression", "repaired"),
    [
        (f"{_C}.memory > 80", f'has({_C}.memory) && {_C}.memory.isGreaterThan(quantity("80"))'),
        (f'{_D} && "80G" <= {_C}.memory', f'{_D} && {_C}.memory.compareTo(quantity("80G")) >= 0'),
        (f'{_D} && {_C}.memory.isGreaterThan("1Gi")', f'{_D} && {_C}.memory.isGreaterThan(quantity("1Gi"))'),
        (f'{_D} and {_A}.model == "Accel-A100"', f'{_D} && {_A}.model == "Accel-A100"'),
        (f'device.driver = "{_GPU}"', _D),
        (f'has({_A}["profile"])', f"has({_A}.profile)"),
        (f"has({_A})", f'("{_GPU}" in device.attributes)'),
        (
            f'device.attributes["{_GPU}/migCapable"] == true && {_D}',
            f"{_A}.migCapable == true && {_D}",
        ),
        (f'Device.driver == "{_GPU}"', _D),
        ('device.driver.startswith("gpu")', 'device.driver.startsWith("gpu")'),
    ],
)
def test_repairs_what_does_not_compile(expression: str, repaired: str) -> None:
    result = _examine(expression)
    assert result.error.startswith("compilation failed: ")
    assert result.repaired == repaired


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        (f"{_D} && 1 == 1", "always-true"),
        (f"{_D} || 1 == 2", "always-false"),
        ('device.attributes["GPU.example.com"].?x.hasValue()', "impossible-domain"),
        (f'{_A}[?"my-name"].hasValue()', "impossible-name"),
        (f'{_A}.?model.hasValue() && device.driver.startsWith("")', "true-everywhere"),
    ],
)
def test_says_what_is_odd(expression: str, code: str) -> None:
    assert code in _codes(_examine(expression))


def test_without_a_fleet_it_still_prices_and_checks() -> None:
    result = examine(f'{_C}.memory != quantity("1")', Fleet([]), features=_GATES, version="1.37")
    assert result.admission == [("too-complex", "too complex, exceeds cost limit")]
    assert result.repaired == f'{_C}.memory.compareTo(quantity("1")) != 0'


def test_a_clean_selector_has_no_findings() -> None:
    result = _examine(f'{_D} && {_A}.model == "Accel-A100"')
    assert result.findings == []
    assert result.repaired == ""


def test_cards_that_just_miss_are_taken_when_nothing_matches() -> None:
    big = _device(_GPU, f"{_GPU}/pool/big", {"capacity": {"memory": {"value": "80Gi"}}})
    wanted = f'{_D} && {_C}.memory.compareTo(quantity("80Gi")) >= 0 && {_A}.?model.orValue("") == "Accel-H100"'
    result = _examine(wanted, Fleet([*_fleet().devices, big]))
    assert (result.matches, result.repaired_matches) == (0, 2)
    assert result.repaired == wanted.replace("80Gi", "81559Mi")


@pytest.mark.parametrize(
    ("expression", "code", "repaired"),
    [
        (f'{_D} && {_C}.model == "Accel-A100"', "attributes-as-capacity", f'{_D} && {_A}.model == "Accel-A100"'),
        ('device.attributes["model"].string == "Accel-A100"', "name-as-domain", f'{_A}.model == "Accel-A100"'),
        (
            f'{_D} && {_A}.driverVersion.compareTo(semver("550.54.08")) >= 0',
            "invalid-version",
            f'{_D} && {_A}.driverVersion.compareTo(semver("550.54.8")) >= 0',
        ),
        (
            f'{_D} && {_C}.memory.isGreaterThan(quantity("40 GB"))',
            "invalid-quantity",
            f'{_D} && {_C}.memory.isGreaterThan(quantity("40G"))',
        ),
        ('device.driver == "example.com/gpu"', "impossible-driver", _D),
        ("true", "always-true", ""),
    ],
)
def test_finds_what_people_copy_from_elsewhere(expression: str, code: str, repaired: str) -> None:
    result = _examine(expression)
    assert code in _codes(result)
    assert repaired in (result.repaired, result.repaired.replace(f"has({_A}.model) && ", ""))


def test_a_text_that_is_too_long_is_not_worked_on() -> None:
    result = _examine("(" * 200_000)
    assert result.error
    assert result.repaired == ""
