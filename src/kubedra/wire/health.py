"""Device health: a stream in which each message is the complete list of a driver's devices.

Upstream counterpart: k8s.io/kubelet/pkg/apis/dra-health; v1 and v1alpha1 have the same messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal, Protocol

import msgspec

from kubedra.wire.generated import dra_health_v1_pb2, dra_health_v1alpha1_pb2
from kubedra.wire.transport import Channel, Service

Version = Literal["v1", "v1alpha1"]
VERSIONS: tuple[Version, ...] = ("v1", "v1alpha1")
_MESSAGES: dict[Version, Any] = {"v1": dra_health_v1_pb2, "v1alpha1": dra_health_v1alpha1_pb2}
HealthStatus = Literal["Unknown", "Healthy", "Unhealthy"]
_STATUS: tuple[HealthStatus, ...] = ("Unknown", "Healthy", "Unhealthy")


def service_name(version: Version) -> str:
    """Return the service's name, which is the same on the wire and in the negotiation."""
    return f"{version}.DRAResourceHealth"


class DeviceHealth(msgspec.Struct, frozen=True):
    """How one device is, since when, and for how long that may be believed without a new message."""

    pool_name: str
    device_name: str
    health: HealthStatus
    last_updated_time: int = 0
    health_check_timeout_seconds: int = 0
    message: str = ""


class HealthService(Protocol):
    """What a driver with health information answers: the full list now and after every change."""

    def watch_health(self) -> AsyncIterator[tuple[DeviceHealth, ...]]: ...


class HealthClient:
    """The agent's side."""

    def __init__(self, channel: Channel, version: Version) -> None:
        self._channel = channel
        self._version: Version = version

    async def watch(self) -> AsyncIterator[tuple[DeviceHealth, ...]]:
        """Yield complete lists until the stream ends; raises ``CallError``."""
        messages = _MESSAGES[self._version]
        method = f"/{service_name(self._version)}/NodeWatchResources"
        stream = self._channel.stream(
            method, messages.NodeWatchResourcesRequest(), messages.NodeWatchResourcesResponse.FromString
        )
        async for response in stream:
            yield tuple(
                DeviceHealth(
                    entry.device.pool_name,
                    entry.device.device_name,
                    _STATUS[entry.health] if 0 <= entry.health < len(_STATUS) else "Unknown",
                    entry.last_updated_time,
                    entry.health_check_timeout_seconds,
                    entry.message,
                )
                for entry in response.devices
            )


def health_service(service: HealthService, version: Version) -> Service:
    """Return ``service`` as a gRPC service of this version."""
    messages = _MESSAGES[version]

    async def watch(_: Any) -> AsyncIterator[Any]:
        async for devices in service.watch_health():
            response = messages.NodeWatchResourcesResponse()
            for device in devices:
                entry = response.devices.add(
                    health=_STATUS.index(device.health),
                    last_updated_time=device.last_updated_time,
                    health_check_timeout_seconds=device.health_check_timeout_seconds,
                    message=device.message,
                )
                entry.device.pool_name = device.pool_name
                entry.device.device_name = device.device_name
            yield response

    result = Service(service_name(version))
    result.stream("NodeWatchResources", messages.NodeWatchResourcesRequest.FromString, watch)
    return result
