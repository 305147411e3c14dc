"""Which DRA driver instances are registered on this node, and which of them serves.

Pure. A driver may have several instances (a rolling update): the newest that is connected serves, else the newest.
When no instance of a driver is connected any more its slices are to be wiped after a while; that moment is fixed
once, later changes do not move it, a connection cancels it. Upstream counterpart: dra_plugin_manager.go of
pkg/kubelet/cm/dra/plugin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from kubedra.wire.dra import VERSIONS, Version, negotiated_name
from kubedra.wire.health import VERSIONS as HEALTH_VERSIONS
from kubedra.wire.health import Version as HealthVersion
from kubedra.wire.health import service_name as health_service_name


class RegistrationRefused(Exception):
    """A plugin can't be taken; the text is what it is told."""


class Services(msgspec.Struct, frozen=True):
    """What was negotiated with a plugin."""

    version: Version
    health: HealthVersion | None = None


def negotiate(driver: str, endpoint: str, supported: Sequence[str]) -> Services:
    """The first DRA service in the plugin's order that we speak; raises RegistrationRefused."""
    prefix = f"invalid supported gRPC versions of DRA driver plugin {driver} at endpoint {endpoint}: "
    if not driver:
        raise RegistrationRefused("DRA driver name is empty")
    if not supported:
        raise RegistrationRefused(prefix + "empty list of supported gRPC services (aka supported versions)")
    known = {negotiated_name(version): version for version in VERSIONS}
    chosen = next((known[name] for name in supported if name in known), None)
    if chosen is None:
        theirs = " ".join(f'"{name}"' for name in supported)
        ours = " ".join(f'"{name}"' for name in known)
        raise RegistrationRefused(
            f"{prefix}none of services supported by the plugin ([{theirs}]) are supported by the kubelet ([{ours}])"
        )
    health = next((version for version in HEALTH_VERSIONS if health_service_name(version) in supported), None)
    return Services(chosen, health)


class Instance(msgspec.Struct, frozen=True):
    """One registered endpoint of a driver."""

    driver: str
    endpoint: str
    socket: str
    services: Services


Change = Literal["connected", "disconnected", "unchanged"]


class DriverRegistry:
    """All instances, oldest first, and whether they are connected."""

    def __init__(self, wipe_after: float) -> None:
        self._wipe_after = wipe_after
        self._instances: dict[str, Instance] = {}
        self._connected: set[str] = set()
        self._wipes: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<DriverRegistry {sorted(self.drivers())}, wipes at {self._wipes}>"

    def drivers(self) -> frozenset[str]:
        """The names of all registered drivers."""
        return frozenset(instance.driver for instance in self._instances.values())

    def instances(self, driver: str) -> tuple[Instance, ...]:
        """A driver's instances, the one that serves first."""
        newest_first = [i for i in reversed(self._instances.values()) if i.driver == driver]
        return tuple(sorted(newest_first, key=lambda instance: instance.endpoint not in self._connected))

    def serving(self, driver: str) -> Instance | None:
        """The instance that calls go to."""
        return next(iter(self.instances(driver)), None)

    def add(self, instance: Instance) -> None:
        """A plugin registered; raises RegistrationRefused when its endpoint is taken."""
        if instance.endpoint in self._instances:
            raise RegistrationRefused(
                f"endpoint {instance.endpoint} already registered for DRA driver plugin {instance.driver}"
            )
        self._instances[instance.endpoint] = instance

    def remove(self, endpoint: str, now: float) -> Instance | None:
        """A plugin left."""
        instance = self._instances.pop(endpoint, None)
        if instance is not None:
            self._connected.discard(endpoint)
            self._review(instance.driver, now)
        return instance

    def set_connected(self, endpoint: str, connected: bool, now: float) -> None:
        """The connection to a plugin stands, or broke."""
        instance = self._instances.get(endpoint)
        if instance is None:
            return
        if connected:
            self._connected.add(endpoint)
        else:
            self._connected.discard(endpoint)
        self._review(instance.driver, now)

    def _review(self, driver: str, now: float) -> None:
        if any(i.driver == driver and i.endpoint in self._connected for i in self._instances.values()):
            self._wipes.pop(driver, None)
        else:
            self._wipes.setdefault(driver, now + self._wipe_after)

    def due_wipes(self, now: float) -> tuple[str, ...]:
        """The drivers whose slices are to be deleted now; each is told once."""
        due = tuple(driver for driver, moment in self._wipes.items() if moment <= now)
        for driver in due:
            del self._wipes[driver]
        return due
