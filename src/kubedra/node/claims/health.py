"""How the devices of drivers with health information are, and what pod statuses say of them.

Pure. A report is the whole list of a driver and is believed for the time it names; after that, and when the stream
ends, the device counts as Unknown. Upstream counterpart: healthinfo.go of pkg/kubelet/cm/dra, which notices an
expiry only by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kubedra.api.core_v1 import Container, Pod
from kubedra.wire.dra import Device
from kubedra.wire.health import DeviceHealth, HealthStatus

MESSAGE_BYTES = 1024


class _Report(msgspec.Struct, frozen=True):
    health: HealthStatus
    message: str
    until: float


class HealthReports:
    """The last report of every driver."""

    def __init__(self, default_timeout: float) -> None:
        self._default_timeout = default_timeout
        self._reports: dict[str, dict[tuple[str, str], _Report]] = {}

    def update(self, driver: str, devices: tuple[DeviceHealth, ...] | None, now: float) -> bool:
        """A driver reported, or its stream ended (None); whether anything changed."""
        before = {key: (r.health, r.message) for key, r in self._reports.get(driver, {}).items()}
        fresh = {
            (device.pool_name, device.device_name): _Report(
                device.health,
                _cut(device.message),
                now + (device.health_check_timeout_seconds or self._default_timeout),
            )
            for device in devices or ()
        }
        self._reports[driver] = fresh
        return before != {key: (r.health, r.message) for key, r in fresh.items()}

    def expire(self, now: float) -> bool:
        """Forgets what is too old to be believed; whether anything was."""
        changed = False
        for driver, reports in self._reports.items():
            kept = {key: report for key, report in reports.items() if report.until > now}
            changed |= len(kept) != len(reports)
            self._reports[driver] = kept
        return changed

    def of(self, driver: str, device: Device) -> tuple[HealthStatus, str]:
        """Health and message of a device."""
        report = self._reports.get(driver, {}).get((device.pool_name, device.device_name))
        return (report.health, report.message) if report is not None else ("Unknown", "")


def _cut(message: str) -> str:
    encoded = message.encode()
    return message if len(encoded) <= MESSAGE_BYTES else encoded[: MESSAGE_BYTES - 3].decode(errors="ignore") + "..."


def resources_status(
    pod: Pod,
    container: Container,
    devices_of: Callable[[Container], tuple[tuple[str, Device], ...]],
    reports: HealthReports,
) -> tuple[dict[str, Any], ...]:
    """The ``allocatedResourcesStatus`` entries of a container, in the order of its claims."""
    if container not in pod.spec.containers or container.resources is None:
        return ()
    entries = []
    for entry in container.resources.claims:
        one = msgspec.structs.replace(
            container, resources=msgspec.structs.replace(container.resources, claims=(entry,))
        )
        # The claim of extended resources is left out by looking at a pod without it.
        resources = []
        for driver, device in devices_of(one):
            health, message = reports.of(driver, device)
            name = (
                device.cdi_device_ids[0]
                if device.cdi_device_ids
                else f"{driver}/{device.pool_name}/{device.device_name}"
            )
            resources.append({"resourceID": name, "health": health} | ({"message": message} if message else {}))
        if resources:
            label = f"claim:{entry.name}" + (f"/{entry.request}" if entry.request else "")
            entries.append({"name": label, "resources": resources})
    return tuple(entries)
