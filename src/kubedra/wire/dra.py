"""Preparing and unpreparing devices: the DRA service as the agent calls it and as a driver answers it.

v1 and v1beta1 have the same messages under different names, so one record and one service object serve both. The
names in the *negotiation* (``v1.DRAPlugin``) are not the names on the *wire* (``k8s.io.kubelet.pkg.apis.dra.v1…``):
the former are what a driver lists when it registers. Upstream counterpart: k8s.io/kubelet/pkg/apis/dra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from kubedra.wire.generated import dra_v1_pb2, dra_v1beta1_pb2
from kubedra.wire.transport import Channel, Service

Version = Literal["v1", "v1beta1"]
VERSIONS: tuple[Version, ...] = ("v1", "v1beta1")
_MESSAGES: dict[Version, Any] = {"v1": dra_v1_pb2, "v1beta1": dra_v1beta1_pb2}


def negotiated_name(version: Version) -> str:
    """Return what a driver lists in ``supported_versions`` for this version."""
    return f"{version}.DRAPlugin"


def service_name(version: Version) -> str:
    """Return the service's name on the wire."""
    return f"k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin"


class Claim(msgspec.Struct, frozen=True):
    """The claim that a call is about."""

    namespace: str
    uid: str
    name: str


class Device(msgspec.Struct, frozen=True):
    """A prepared device: for which requests it is, and by which CDI ids a container gets it."""

    request_names: tuple[str, ...]
    pool_name: str
    device_name: str
    cdi_device_ids: tuple[str, ...] = ()
    share_id: str | None = None


class PrepareResult(msgspec.Struct, frozen=True):
    """The outcome for one claim: devices, or an error."""

    devices: tuple[Device, ...] = ()
    error: str = ""


class DraService(Protocol):
    """What a driver answers; every claim of a request must have an entry in the answer."""

    async def prepare(self, claims: Sequence[Claim]) -> Mapping[str, PrepareResult]: ...

    async def unprepare(self, claims: Sequence[Claim]) -> Mapping[str, str]:
        """Return the error per claim uid; an empty text is success."""
        ...


class DraClient:
    """The agent's side of the service, for the version that was negotiated."""

    def __init__(self, channel: Channel, version: Version) -> None:
        self._channel = channel
        self._messages = _MESSAGES[version]
        self._service = service_name(version)
        self.version = version

    async def prepare(self, claims: Sequence[Claim], *, timeout: float) -> dict[str, PrepareResult]:
        """Call NodePrepareResources; raises ``CallError``. The answer is what the driver said, unchecked."""
        request = self._messages.NodePrepareResourcesRequest()
        for claim in claims:
            request.claims.add(namespace=claim.namespace, uid=claim.uid, name=claim.name)
        response = await self._channel.call(
            f"/{self._service}/NodePrepareResources",
            request,
            self._messages.NodePrepareResourcesResponse.FromString,
            timeout=timeout,
        )
        return {
            uid: PrepareResult(
                tuple(
                    Device(
                        tuple(device.request_names),
                        device.pool_name,
                        device.device_name,
                        tuple(device.cdi_device_ids),
                        device.share_id if device.HasField("share_id") else None,
                    )
                    for device in result.devices
                ),
                result.error,
            )
            for uid, result in response.claims.items()
        }

    async def unprepare(self, claims: Sequence[Claim], *, timeout: float) -> dict[str, str]:
        """Call NodeUnprepareResources and return the error per claim uid ("" is success); raises ``CallError``."""
        request = self._messages.NodeUnprepareResourcesRequest()
        for claim in claims:
            request.claims.add(namespace=claim.namespace, uid=claim.uid, name=claim.name)
        response = await self._channel.call(
            f"/{self._service}/NodeUnprepareResources",
            request,
            self._messages.NodeUnprepareResourcesResponse.FromString,
            timeout=timeout,
        )
        return {uid: result.error for uid, result in response.claims.items()}


def dra_service(service: DraService, version: Version) -> Service:
    """Return ``service`` as a gRPC service of this version."""
    messages = _MESSAGES[version]

    def read(request: Any) -> list[Claim]:
        return [Claim(claim.namespace, claim.uid, claim.name) for claim in request.claims]

    async def prepare(request: Any) -> Any:
        response = messages.NodePrepareResourcesResponse()
        for uid, result in (await service.prepare(read(request))).items():
            entry = response.claims[uid]
            entry.error = result.error
            for device in result.devices:
                added = entry.devices.add(
                    request_names=device.request_names,
                    pool_name=device.pool_name,
                    device_name=device.device_name,
                    cdi_device_ids=device.cdi_device_ids,
                )
                if device.share_id is not None:
                    added.share_id = device.share_id
        return response

    async def unprepare(request: Any) -> Any:
        response = messages.NodeUnprepareResourcesResponse()
        for uid, error in (await service.unprepare(read(request))).items():
            response.claims[uid].error = error
        return response

    result = Service(service_name(version))
    result.unary("NodePrepareResources", messages.NodePrepareResourcesRequest.FromString, prepare)
    result.unary("NodeUnprepareResources", messages.NodeUnprepareResourcesRequest.FromString, unprepare)
    return result
