"""The device plugin protocol: how devices were handed out before DRA, and still are on nodes that did not move.

A plugin registers on the agent's ``kubelet.sock``, the agent dials back, reads a stream of device lists and asks for
the container edits of the devices it picked. Upstream counterpart: k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

import msgspec

from kubedra.wire.generated import deviceplugin_v1beta1_pb2
from kubedra.wire.transport import Channel, Service

_MESSAGES: Any = deviceplugin_v1beta1_pb2
VERSION = "v1beta1"
REGISTRATION = "v1beta1.Registration"
DEVICE_PLUGIN = "v1beta1.DevicePlugin"
HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"


class Options(msgspec.Struct, frozen=True):
    """Which optional calls a plugin wants."""

    pre_start_required: bool = False
    get_preferred_allocation_available: bool = False


class RegisterRequest(msgspec.Struct, frozen=True):
    """A plugin's announcement; ``endpoint`` is the file name of its socket in the device plugin folder."""

    version: str
    endpoint: str
    resource_name: str
    options: Options = Options()


class PluginDevice(msgspec.Struct, frozen=True):
    """One device with its health and the NUMA nodes it is near."""

    id: str
    health: str = HEALTHY
    numa_nodes: tuple[int, ...] = ()


class PreferredAllocation(msgspec.Struct, frozen=True):
    """What the agent asks before it picks devices for one container."""

    available: tuple[str, ...]
    must_include: tuple[str, ...]
    size: int


class Mount(msgspec.Struct, frozen=True):
    """A host path in a container."""

    container_path: str
    host_path: str
    read_only: bool = False


class DeviceNode(msgspec.Struct, frozen=True):
    """A device node in a container."""

    container_path: str
    host_path: str
    permissions: str = "rw"


class ContainerAllocation(msgspec.Struct, frozen=True):
    """What a container gets with its devices."""

    envs: dict[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: dict[str, str] = {}
    cdi_devices: tuple[str, ...] = ()


class DevicePlugin(Protocol):
    """What a plugin answers."""

    async def options(self) -> Options: ...

    def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]: ...

    async def preferred_allocation(self, containers: Sequence[PreferredAllocation]) -> list[tuple[str, ...]]: ...

    async def allocate(self, containers: Sequence[tuple[str, ...]]) -> list[ContainerAllocation]: ...

    async def pre_start_container(self, devices: tuple[str, ...]) -> None: ...


class DevicePluginRegistry(Protocol):
    """What the agent answers on ``kubelet.sock``; raises ``CallError`` to refuse."""

    async def register(self, request: RegisterRequest) -> None: ...


class RegistryClient:
    """A plugin's side of the registration."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def register(self, request: RegisterRequest, *, timeout: float) -> None:
        """Announce a plugin; raises ``CallError``."""
        message = _MESSAGES.RegisterRequest(
            version=request.version,
            endpoint=request.endpoint,
            resource_name=request.resource_name,
            options=_options_message(request.options),
        )
        await self._channel.call(f"/{REGISTRATION}/Register", message, _MESSAGES.Empty.FromString, timeout=timeout)


class DevicePluginClient:
    """The agent's side of a plugin; every call raises ``CallError``."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def options(self, *, timeout: float | None = None) -> Options:
        """Ask which optional calls the plugin wants."""
        answer = await self._call("GetDevicePluginOptions", _MESSAGES.Empty(), _MESSAGES.DevicePluginOptions, timeout)
        return Options(answer.pre_start_required, answer.get_preferred_allocation_available)

    async def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        """Yield complete device lists until the stream ends."""
        method = f"/{DEVICE_PLUGIN}/ListAndWatch"
        stream = self._channel.stream(method, _MESSAGES.Empty(), _MESSAGES.ListAndWatchResponse.FromString)
        async for response in stream:
            yield tuple(
                PluginDevice(device.ID, device.health, tuple(node.ID for node in device.topology.nodes))
                for device in response.devices
            )

    async def preferred_allocation(
        self, containers: Sequence[PreferredAllocation], *, timeout: float | None = None
    ) -> list[tuple[str, ...]]:
        """Ask which devices the plugin would pick, per container; the answer is a hint."""
        request = _MESSAGES.PreferredAllocationRequest()
        for container in containers:
            request.container_requests.add(
                available_deviceIDs=container.available,
                must_include_deviceIDs=container.must_include,
                allocation_size=container.size,
            )
        answer = await self._call("GetPreferredAllocation", request, _MESSAGES.PreferredAllocationResponse, timeout)
        return [tuple(container.deviceIDs) for container in answer.container_responses]

    async def allocate(
        self, containers: Sequence[tuple[str, ...]], *, timeout: float | None = None
    ) -> list[ContainerAllocation]:
        """Allocate devices and return the container edits, per container."""
        request = _MESSAGES.AllocateRequest()
        for devices in containers:
            request.container_requests.add(devices_ids=devices)
        answer = await self._call("Allocate", request, _MESSAGES.AllocateResponse, timeout)
        return [
            ContainerAllocation(
                dict(container.envs),
                tuple(Mount(mount.container_path, mount.host_path, mount.read_only) for mount in container.mounts),
                tuple(DeviceNode(node.container_path, node.host_path, node.permissions) for node in container.devices),
                dict(container.annotations),
                tuple(device.name for device in container.cdi_devices),
            )
            for container in answer.container_responses
        ]

    async def pre_start_container(self, devices: tuple[str, ...], *, timeout: float) -> None:
        """Tell the plugin that a container with these devices is about to start."""
        request = _MESSAGES.PreStartContainerRequest(devices_ids=devices)
        await self._call("PreStartContainer", request, _MESSAGES.PreStartContainerResponse, timeout)

    async def _call(self, method: str, request: Any, response: Any, timeout: float | None) -> Any:
        return await self._channel.call(f"/{DEVICE_PLUGIN}/{method}", request, response.FromString, timeout=timeout)


def registry_service(registry: DevicePluginRegistry) -> Service:
    """Return ``registry`` as the gRPC service of ``kubelet.sock``."""

    async def register(request: Any) -> Any:
        options = Options(
            request.options.pre_start_required,
            request.options.get_preferred_allocation_available,
        )
        await registry.register(
            RegisterRequest(request.version, request.endpoint, request.resource_name, options),
        )
        return _MESSAGES.Empty()

    result = Service(REGISTRATION)
    result.unary("Register", _MESSAGES.RegisterRequest.FromString, register)
    return result


def device_plugin_service(plugin: DevicePlugin) -> Service:
    """Return ``plugin`` as a gRPC service."""

    async def options(_: Any) -> Any:
        return _options_message(await plugin.options())

    async def list_and_watch(_: Any) -> AsyncIterator[Any]:
        async for devices in plugin.list_and_watch():
            response = _MESSAGES.ListAndWatchResponse()
            for device in devices:
                added = response.devices.add(ID=device.id, health=device.health)
                for node in device.numa_nodes:
                    added.topology.nodes.add(ID=node)
            yield response

    async def preferred(request: Any) -> Any:
        response = _MESSAGES.PreferredAllocationResponse()
        containers = [
            PreferredAllocation(tuple(c.available_deviceIDs), tuple(c.must_include_deviceIDs), c.allocation_size)
            for c in request.container_requests
        ]
        for devices in await plugin.preferred_allocation(containers):
            response.container_responses.add(deviceIDs=devices)
        return response

    async def allocate(request: Any) -> Any:
        response = _MESSAGES.AllocateResponse()
        for answer in await plugin.allocate([tuple(c.devices_ids) for c in request.container_requests]):
            added = response.container_responses.add(envs=answer.envs, annotations=answer.annotations)
            for mount in answer.mounts:
                added.mounts.add(
                    container_path=mount.container_path, host_path=mount.host_path, read_only=mount.read_only
                )
            for node in answer.devices:
                added.devices.add(
                    container_path=node.container_path, host_path=node.host_path, permissions=node.permissions
                )
            for name in answer.cdi_devices:
                added.cdi_devices.add(name=name)
        return response

    async def pre_start(request: Any) -> Any:
        await plugin.pre_start_container(tuple(request.devices_ids))
        return _MESSAGES.PreStartContainerResponse()

    result = Service(DEVICE_PLUGIN)
    result.unary("GetDevicePluginOptions", _MESSAGES.Empty.FromString, options)
    result.stream("ListAndWatch", _MESSAGES.Empty.FromString, list_and_watch)
    result.unary("GetPreferredAllocation", _MESSAGES.PreferredAllocationRequest.FromString, preferred)
    result.unary("Allocate", _MESSAGES.AllocateRequest.FromString, allocate)
    result.unary("PreStartContainer", _MESSAGES.PreStartContainerRequest.FromString, pre_start)
    return result


def _options_message(options: Options) -> Any:
    return _MESSAGES.DevicePluginOptions(
        pre_start_required=options.pre_start_required,
        get_preferred_allocation_available=options.get_preferred_allocation_available,
    )
