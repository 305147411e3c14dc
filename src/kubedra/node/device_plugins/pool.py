"""Which devices the device plugins of this node have, and which container holds which.

Pure. Capacity counts every device, allocatable the healthy ones. When a plugin goes away its devices count as
unhealthy; after a grace period capacity is zero too, and the name stays with "0" (as the kubelet was seen to do).
Upstream counterpart: pkg/kubelet/cm/devicemanager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from kubedra.wire.device_plugin import HEALTHY, ContainerAllocation, PluginDevice


class AllocationRefused(Exception):
    """A pod can't have the devices it asks for; the text is upstream's."""


class Assignment(msgspec.Struct, frozen=True):
    """The devices of one resource that one container holds, and what the plugin said goes with them."""

    pod_uid: str
    container: str
    resource: str
    devices: tuple[str, ...]
    response: ContainerAllocation = ContainerAllocation()


class DevicePool:
    """Devices by resource, and assignments."""

    def __init__(self, assignments: Iterable[Assignment] = (), resources: Iterable[str] = ()) -> None:
        self._devices: dict[str, dict[str, PluginDevice]] = {name: {} for name in resources}
        self._gone_since: dict[str, float] = {}
        self.assignments = list(assignments)

    def __repr__(self) -> str:
        return f"<DevicePool {self.capacity()}, {len(self.assignments)} assignments>"

    @property
    def resources(self) -> tuple[str, ...]:
        """All resource names that were ever registered."""
        return tuple(self._devices)

    def registered(self, resource: str) -> None:
        """A plugin announced itself."""
        self._devices.setdefault(resource, {})
        self._gone_since.pop(resource, None)

    def update(self, resource: str, devices: Iterable[PluginDevice]) -> bool:
        """The plugin's complete list; whether it differs from the last."""
        fresh = {device.id: device for device in devices}
        changed = self._devices.get(resource) != fresh
        self._devices[resource] = fresh
        return changed

    def gone(self, resource: str, now: float) -> None:
        """The plugin's stream ended."""
        self._gone_since.setdefault(resource, now)

    def expire(self, now: float, grace: float) -> bool:
        """Drops the devices of plugins that were away for too long; whether any were."""
        due = [name for name, since in self._gone_since.items() if since + grace <= now and self._devices.get(name)]
        for name in due:
            self._devices[name] = {}
        return bool(due)

    def capacity(self) -> dict[str, int]:
        """All devices, by resource."""
        return {name: len(devices) for name, devices in self._devices.items()}

    def allocatable(self) -> dict[str, int]:
        """The healthy devices, by resource."""
        return {name: len(self.healthy(name)) for name in self._devices}

    def healthy(self, resource: str) -> tuple[str, ...]:
        """The ids of healthy devices; none while the plugin is away."""
        if resource in self._gone_since:
            return ()
        return tuple(d.id for d in self._devices.get(resource, {}).values() if d.health == HEALTHY)

    def health(self, resource: str, device: str) -> str:
        """What is said of a device in pod statuses; a plugin's death does not change it."""
        found = self._devices.get(resource, {}).get(device)
        return found.health if found is not None else "Unknown"

    def held(self, pod_uid: str, container: str) -> tuple[Assignment, ...]:
        """What a container holds."""
        return tuple(a for a in self.assignments if (a.pod_uid, a.container) == (pod_uid, container))

    def release(self, pod_uid: str) -> bool:
        """A pod has ended; whether it held anything."""
        kept = [a for a in self.assignments if a.pod_uid != pod_uid]
        changed = len(kept) != len(self.assignments)
        self.assignments = kept
        return changed

    def free(self, resource: str) -> tuple[str, ...]:
        """Healthy devices that nobody holds."""
        taken = {device for a in self.assignments if a.resource == resource for device in a.devices}
        return tuple(device for device in self.healthy(resource) if device not in taken)

    def check(self, resource: str, count: int, reusable: Iterable[str] = ()) -> tuple[str, ...]:
        """The devices to choose from, reusable ones first; raises AllocationRefused when they are too few."""
        healthy = self.healthy(resource)
        if not healthy:
            raise AllocationRefused(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        again = tuple(device for device in reusable if device in healthy)
        candidates = (*again, *(device for device in self.free(resource) if device not in again))
        if len(candidates) < count:
            raise AllocationRefused(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {count}, Available: {len(candidates)}"
            )
        return candidates


def choose(
    candidates: tuple[str, ...], reusable: Iterable[str], preferred: Iterable[str], count: int
) -> tuple[str, ...]:
    """Reusable devices first, then what the plugin prefers, then any, in order."""
    ordered = dict.fromkeys((*reusable, *preferred, *candidates))
    return tuple(device for device in ordered if device in candidates)[:count]


def edits(assignments: Iterable[Assignment]) -> ContainerAllocation:
    """Everything that a container gets with its devices, later resources over earlier ones."""
    envs: dict[str, str] = {}
    annotations: dict[str, str] = {}
    mounts: dict[str, object] = {}
    nodes: dict[str, object] = {}
    cdi: dict[str, None] = {}
    for assignment in assignments:
        response = assignment.response
        envs |= response.envs
        annotations |= response.annotations
        mounts |= {mount.container_path: mount for mount in response.mounts}
        nodes |= {node.container_path: node for node in response.devices}
        cdi |= dict.fromkeys(response.cdi_devices)
    return ContainerAllocation(envs, tuple(mounts.values()), tuple(nodes.values()), annotations, tuple(cdi))  # type: ignore[arg-type]


def resources_status(pool: DevicePool, assignments: Iterable[Assignment]) -> tuple[Mapping[str, object], ...]:
    """The ``allocatedResourcesStatus`` entries of a container."""
    return tuple(
        {
            "name": a.resource,
            "resources": [{"resourceID": device, "health": pool.health(a.resource, device)} for device in a.devices],
        }
        for a in assignments
    )
