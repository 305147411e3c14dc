"""What monitoring agents ask a node agent: which container of which pod holds which devices.

Upstream counterpart: k8s.io/kubelet/pkg/apis/podresources/v1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from kubedra.wire.generated import podresources_v1_pb2
from kubedra.wire.transport import Channel, Service

_MESSAGES: Any = podresources_v1_pb2
SERVICE = "v1.PodResourcesLister"


class ContainerDevices(msgspec.Struct, frozen=True):
    """Device plugin devices of one resource."""

    resource_name: str
    device_ids: tuple[str, ...]
    numa_nodes: tuple[int, ...] = ()


class ClaimResource(msgspec.Struct, frozen=True):
    """One prepared device of a claim."""

    driver_name: str
    pool_name: str
    device_name: str
    cdi_devices: tuple[str, ...] = ()
    share_id: str | None = None


class DynamicResource(msgspec.Struct, frozen=True):
    """A claim that a container names, with all its prepared devices."""

    claim_name: str
    claim_namespace: str
    claim_resources: tuple[ClaimResource, ...] = ()


class ContainerResources(msgspec.Struct, frozen=True):
    """What one container holds."""

    name: str
    devices: tuple[ContainerDevices, ...] = ()
    cpu_ids: tuple[int, ...] = ()
    dynamic_resources: tuple[DynamicResource, ...] = ()


class PodResources(msgspec.Struct, frozen=True):
    """What one pod holds."""

    name: str
    namespace: str
    containers: tuple[ContainerResources, ...] = ()


class PodResourcesService(Protocol):
    """What an agent answers; ``get`` raises ``CallError`` for a pod it does not know."""

    async def list(self) -> Sequence[PodResources]: ...

    async def allocatable(self) -> Sequence[ContainerDevices]: ...

    async def get(self, name: str, namespace: str) -> PodResources: ...


class PodResourcesClient:
    """A monitoring agent's side; every call raises ``CallError``."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def list(self, *, timeout: float | None = None) -> tuple[PodResources, ...]:
        """Return every active pod with what it holds."""
        request, response = _MESSAGES.ListPodResourcesRequest(), _MESSAGES.ListPodResourcesResponse.FromString
        answer = await self._channel.call(f"/{SERVICE}/List", request, response, timeout=timeout)
        return tuple(_read_pod(pod) for pod in answer.pod_resources)

    async def allocatable(self, *, timeout: float | None = None) -> tuple[ContainerDevices, ...]:
        """Return the device plugin devices that the node has."""
        request, response = _MESSAGES.AllocatableResourcesRequest(), _MESSAGES.AllocatableResourcesResponse.FromString
        answer = await self._channel.call(f"/{SERVICE}/GetAllocatableResources", request, response, timeout=timeout)
        return tuple(_read_devices(devices) for devices in answer.devices)

    async def get(self, name: str, namespace: str, *, timeout: float | None = None) -> PodResources:
        """Return what one pod holds."""
        request = _MESSAGES.GetPodResourcesRequest(pod_name=name, pod_namespace=namespace)
        response = _MESSAGES.GetPodResourcesResponse.FromString
        answer = await self._channel.call(f"/{SERVICE}/Get", request, response, timeout=timeout)
        return _read_pod(answer.pod_resources)


def pod_resources_service(service: PodResourcesService) -> Service:
    """Return ``service`` as a gRPC service."""

    async def list_pods(_: Any) -> Any:
        response = _MESSAGES.ListPodResourcesResponse()
        for pod in await service.list():
            _write_pod(pod, response.pod_resources.add())
        return response

    async def allocatable(_: Any) -> Any:
        response = _MESSAGES.AllocatableResourcesResponse()
        for devices in await service.allocatable():
            _write_devices(devices, response.devices.add())
        return response

    async def get(request: Any) -> Any:
        response = _MESSAGES.GetPodResourcesResponse()
        _write_pod(await service.get(request.pod_name, request.pod_namespace), response.pod_resources)
        return response

    result = Service(SERVICE)
    result.unary("List", _MESSAGES.ListPodResourcesRequest.FromString, list_pods)
    result.unary("GetAllocatableResources", _MESSAGES.AllocatableResourcesRequest.FromString, allocatable)
    result.unary("Get", _MESSAGES.GetPodResourcesRequest.FromString, get)
    return result


def _write_devices(devices: ContainerDevices, message: Any) -> None:
    message.resource_name = devices.resource_name
    message.device_ids.extend(devices.device_ids)
    for node in devices.numa_nodes:
        message.topology.nodes.add(ID=node)


def _read_devices(message: Any) -> ContainerDevices:
    nodes = tuple(node.ID for node in message.topology.nodes)
    return ContainerDevices(message.resource_name, tuple(message.device_ids), nodes)


def _write_pod(pod: PodResources, message: Any) -> None:
    message.name, message.namespace = pod.name, pod.namespace
    for container in pod.containers:
        added = message.containers.add(name=container.name, cpu_ids=container.cpu_ids)
        for devices in container.devices:
            _write_devices(devices, added.devices.add())
        for claim in container.dynamic_resources:
            resources = added.dynamic_resources.add(claim_name=claim.claim_name, claim_namespace=claim.claim_namespace)
            for resource in claim.claim_resources:
                entry = resources.claim_resources.add(
                    driver_name=resource.driver_name, pool_name=resource.pool_name, device_name=resource.device_name
                )
                for name in resource.cdi_devices:
                    entry.cdi_devices.add(name=name)
                if resource.share_id is not None:
                    entry.share_id = resource.share_id


def _read_pod(message: Any) -> PodResources:
    return PodResources(
        message.name,
        message.namespace,
        tuple(
            ContainerResources(
                container.name,
                tuple(_read_devices(devices) for devices in container.devices),
                tuple(container.cpu_ids),
                tuple(
                    DynamicResource(
                        claim.claim_name,
                        claim.claim_namespace,
                        tuple(
                            ClaimResource(
                                resource.driver_name,
                                resource.pool_name,
                                resource.device_name,
                                tuple(device.name for device in resource.cdi_devices),
                                resource.share_id if resource.HasField("share_id") else None,
                            )
                            for resource in claim.claim_resources
                        ),
                    )
                    for claim in container.dynamic_resources
                ),
            )
            for container in message.containers
        ),
    )
