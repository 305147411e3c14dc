"""Public bug reports about what the API server must refuse, by their number in the collection (section C).

C18 (negative amounts) and C46 (names with two slashes) are open upstream: a real server takes both, so does ours, and
the allocator gives them nothing.

The reports about allocation are in tests/unit/allocation/test_reports.py.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import kinds
from tests.unit.validation.cases import context, create, named

Tree = dict[str, Any]
ALL_ON = context("1.37", DRAListTypeAttributes=True)


def slice_of(devices: list[Tree]) -> Tree:
    spec = {"driver": "d.example", "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}}
    return named("ResourceSlice", spec=spec | {"devices": devices})


def devices(count: int) -> list[Tree]:
    return [{"name": f"d{i}"} for i in range(count)]


def test_c42_a_slice_holds_128_plain_devices_or_64_others() -> None:
    assert create(kinds.RESOURCE_SLICE, slice_of(devices(128)), ALL_ON) == set()
    assert create(kinds.RESOURCE_SLICE, slice_of(devices(129)), ALL_ON) == {"TooMany spec.devices"}
    extras: tuple[Tree, ...] = (
        {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        {"attributes": {"a": {"ints": [1]}}},
    )
    for extra in extras:
        for count, faults in ((64, set[str]()), (65, {"TooMany spec.devices"})):
            many = devices(count)
            many[7].update(extra)
            assert create(kinds.RESOURCE_SLICE, slice_of(many), ALL_ON) == faults, extra
    assert create(kinds.RESOURCE_SLICE, slice_of([]), ALL_ON) == set()


def test_c43_a_version_of_four_parts_is_refused() -> None:
    for version in ("6.19.14.31400000", ""):
        bad = slice_of([{"name": "gpu0", "attributes": {"driverVersion": {"version": version}}}])
        assert create(kinds.RESOURCE_SLICE, bad, ALL_ON) == {
            "Invalid spec.devices[0].attributes[driverVersion].version"
        }
