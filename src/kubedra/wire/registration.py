"""Plugin registration: the agent finds a socket, asks who is there, and says whether it took the plugin.

Upstream counterpart: k8s.io/kubelet/pkg/apis/pluginregistration.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from kubedra.wire.generated import pluginregistration_v1_pb2
from kubedra.wire.transport import Channel, Service

_MESSAGES: Any = pluginregistration_v1_pb2
SERVICE = "pluginregistration.Registration"
DRA_PLUGIN = "DRAPlugin"
DEVICE_PLUGIN = "DevicePlugin"


class PluginInfo(msgspec.Struct, frozen=True):
    """Who a plugin is: its type, its driver name, the socket of its service and the services it has there."""

    type: str
    name: str
    endpoint: str
    supported_versions: tuple[str, ...]


class RegistrationService(Protocol):
    """What a plugin answers."""

    async def get_info(self) -> PluginInfo: ...

    async def notify(self, registered: bool, error: str) -> None: ...


class RegistrationClient:
    """The agent's side."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def get_info(self, *, timeout: float) -> PluginInfo:
        """Ask who is there; raises ``CallError``."""
        answer = await self._channel.call(
            f"/{SERVICE}/GetInfo", _MESSAGES.InfoRequest(), _MESSAGES.PluginInfo.FromString, timeout=timeout
        )
        return PluginInfo(answer.type, answer.name, answer.endpoint, tuple(answer.supported_versions))

    async def notify(self, registered: bool, error: str, *, timeout: float) -> None:
        """Tell the plugin the outcome; raises ``CallError``."""
        await self._channel.call(
            f"/{SERVICE}/NotifyRegistrationStatus",
            _MESSAGES.RegistrationStatus(plugin_registered=registered, error=error),
            _MESSAGES.RegistrationStatusResponse.FromString,
            timeout=timeout,
        )


def registration_service(service: RegistrationService) -> Service:
    """Return ``service`` as a gRPC service."""

    async def get_info(_: Any) -> Any:
        info = await service.get_info()
        return _MESSAGES.PluginInfo(
            type=info.type, name=info.name, endpoint=info.endpoint, supported_versions=info.supported_versions
        )

    async def notify(request: Any) -> Any:
        await service.notify(request.plugin_registered, request.error)
        return _MESSAGES.RegistrationStatusResponse()

    result = Service(SERVICE)
    result.unary("GetInfo", _MESSAGES.InfoRequest.FromString, get_info)
    result.unary("NotifyRegistrationStatus", _MESSAGES.RegistrationStatus.FromString, notify)
    return result
