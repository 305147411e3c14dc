"""The driver checker passes drivers that keep the contract and names what others break."""

from __future__ import annotations

import itertools
import runpy
from collections.abc import Sequence
from pathlib import Path

from kubedra.api import resource_v1
from kubedra.client.clock import RealClock
from kubedra.drivers.simulated.cards import cards_of
from kubedra.drivers.simulated.driver import SimulatedNodeDriver
from kubedra.drivers.simulated.fleet import parse
from kubedra.sdk import Allocation, ContainerEdits, PreparedClaim, PreparedDevice, device, version
from kubedra.testing.drivers import driver_faults


async def test_the_simulated_driver_keeps_the_contract() -> None:
    pool = parse("kind: Fleet\npools: [{name: a, devices: [{card: H100, count: 8}]}]").pools[0]
    driver = SimulatedNodeDriver("gpu.nvidia.com", "a-0", cards_of("a-0", pool), RealClock())
    assert await driver_faults(driver, node="a-0") == []


async def test_the_example_driver_keeps_the_contract() -> None:
    path = Path(__file__).resolve().parents[3] / "examples" / "driver" / "led_driver.py"
    example = runpy.run_path(str(path))["LedDriver"]()
    assert await driver_faults(example, parameters=[{"mode": "blinking"}]) == []


class Careless:
    """Breaks everything that drivers break."""

    name = "Not A Name"

    def __init__(self) -> None:
        self.count = itertools.count()
        self.prepared: set[str] = set()

    def discover(self) -> list[resource_v1.Device]:
        return [device("gpu-0", {"boot": next(self.count), "driverVersion": version("1.2.3.4")})]

    def prepare(self, allocation: Allocation) -> Sequence[PreparedDevice]:
        self.prepared.add(allocation.uid)
        return [PreparedDevice(edits=ContainerEdits(env=(f"N{next(self.count)}",)))]

    def unprepare(self, claim: PreparedClaim) -> None:
        self.prepared.remove(claim.uid)


async def test_a_careless_driver_is_told_everything() -> None:
    faults = "\n".join(await driver_faults(Careless()))
    for expected in (
        'name: "Not A Name" is no DNS name',
        "discover gives something else each time",
        '"1.2.3.4" is not a semantic version',
        "preparing it again gives something else",
        "must be NAME=VALUE",
        "unprepared a second time: unprepare raises KeyError",
        "a claim that was never prepared: unprepare raises KeyError",
        "a device that does not exist: prepare succeeds",
    ):
        assert expected in faults, faults


class Broken:
    name = "broken.example.com"

    def discover(self) -> list[resource_v1.Device]:
        raise OSError("no bus")

    async def prepare(self, allocation: Allocation) -> Sequence[PreparedDevice]:
        raise ZeroDivisionError

    async def unprepare(self, claim: PreparedClaim) -> None:
        return None


async def test_a_driver_that_finds_nothing_is_still_asked_the_rest() -> None:
    faults = await driver_faults(Broken())
    assert faults[0].startswith("discover raises OSError") and "raise PrepareError instead" in faults[1]
