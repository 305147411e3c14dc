"""Checks that an author's driver keeps what the SDK relies on, without an agent, an API or hardware of a cluster.

An agent asks again whatever it asked before, in any order, after any crash; ``driver_faults`` asks a driver in that
way and returns a sentence for everything that would go wrong in a cluster. Upstream has no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubedra.api import resource_v1
from kubedra.base import names
from kubedra.cdi.spec import ContainerEdits, Device, Spec, validate
from kubedra.sdk.driver import AllocatedDevice, Allocation, Driver, PreparedClaim, PreparedDevice, PrepareError, call
from kubedra.sdk.resources import Pool, clean, pool_problems


async def driver_faults(driver: Driver, *, node: str = "node-1", parameters: Sequence[Any] = ()) -> list[str]:
    """Return what is wrong with ``driver``; ``parameters`` go into every allocation, as a claim's would."""
    return await _Checker(driver, node, tuple(parameters)).run()


class _Checker:
    def __init__(self, driver: Driver, node: str, parameters: tuple[Any, ...]) -> None:
        self._driver = driver
        self._node = node
        self._parameters = parameters
        self._faults: list[str] = []

    async def run(self) -> list[str]:
        self._check_name()
        pools = await self._check_discovery()
        for name, pool in pools.items():
            for entry in pool.devices[:4]:
                await self._check_claim(f"device {name}/{entry.name}", self._allocation(name, [entry]))
            if len(pool.devices) > 1:
                await self._check_claim(f"pool {name}", self._allocation(name, list(pool.devices[:4])))
        await self._check_strangers()
        return self._faults

    def _check_name(self) -> None:
        name = self._driver.name
        if len(name) > 63 or names.dns_subdomain(name):
            self._faults.append(f'name: "{name}" is no DNS name of at most 63 characters')

    async def _check_discovery(self) -> Mapping[str, Pool]:
        try:
            first, second = await self._discover(), await self._discover()
        except Exception as error:
            self._faults.append(f"discover raises {error!r}")
            return {}
        if first != second:
            self._faults.append("discover gives something else each time, so slices would be written for ever")
        for name, pool in first.items():
            self._faults.extend(f"discover: {problem}" for problem in pool_problems(name, pool))
            self._faults.extend(f"discover: {dropped}" for dropped in clean(pool)[1])
        return first

    async def _discover(self) -> dict[str, Pool]:
        found: Any = await call(self._driver.discover)
        if isinstance(found, Mapping):
            return dict(found)
        return {self._node: Pool(devices=tuple(found), node_name=self._node)}

    def _allocation(self, pool: str, devices: list[resource_v1.Device]) -> Allocation:
        return Allocation(
            namespace="default",
            name="claim",
            uid="11111111-2222-3333-4444-555555555555",
            devices=tuple(
                AllocatedDevice(request="request", pool=pool, device=entry.name, configs=self._parameters)
                for entry in devices
            ),
        )

    async def _check_claim(self, what: str, allocation: Allocation) -> None:
        claim = PreparedClaim(
            namespace=allocation.namespace, name=allocation.name, uid=allocation.uid, devices=allocation.devices
        )
        first = await self._prepare(what, allocation)
        if first is None:
            return
        again = await self._prepare(f"{what}, prepared a second time", allocation)
        if again is not None and again != first:
            self._faults.append(f"{what}: preparing it again gives something else, but an agent may ask twice")
        await self._unprepare(what, claim)
        await self._unprepare(f"{what}, unprepared a second time", claim)
        await self._prepare(f"{what}, prepared again after it was unprepared", allocation)
        await self._unprepare(what, claim)

    async def _prepare(self, what: str, allocation: Allocation) -> list[PreparedDevice] | None:
        try:
            prepared = list(await call(self._driver.prepare, allocation))
        except Exception as error:
            self._faults.append(f"{what}: prepare raises {error!r}")
            return None
        if len(prepared) != len(allocation.devices):
            self._faults.append(f"{what}: prepare returns {len(prepared)} devices for {len(allocation.devices)}")
        devices = tuple(
            Device(f"device-{index}", entry.edits)
            for index, entry in enumerate(prepared)
            if entry.edits != ContainerEdits()
        )
        if devices:
            problems = validate(Spec(f"{self._driver.name}/claim", devices=devices))
            self._faults.extend(f"{what}: {problem}" for problem in problems)
        return prepared

    async def _unprepare(self, what: str, claim: PreparedClaim) -> None:
        try:
            await call(self._driver.unprepare, claim)
        except Exception as error:
            self._faults.append(f"{what}: unprepare raises {error!r}")

    async def _check_strangers(self) -> None:
        unknown = PreparedClaim(namespace="default", name="never-seen", uid="99999999-2222-3333-4444-555555555555")
        await self._unprepare("a claim that was never prepared", unknown)
        stranger = self._allocation(self._node, [resource_v1.Device(name="no-such-device")])
        try:
            await call(self._driver.prepare, stranger)
        except PrepareError:
            return
        except Exception as error:
            self._faults.append(f"a device that does not exist: prepare raises {error!r}; raise PrepareError instead")
            return
        self._faults.append("a device that does not exist: prepare succeeds, so a container would start without it")
