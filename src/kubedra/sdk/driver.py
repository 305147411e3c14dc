"""What a driver author writes, and the records that come and go.

An author names the driver and writes three methods: ``discover`` (which devices are here), ``prepare`` (make the
devices of a claim usable and say what a container with them gets) and ``unprepare`` (undo that). Each may be plain or
``async``; plain ones run in a thread. Everything else is the SDK's: sockets, registration, idempotence, exclusivity,
checkpoints, CDI files, slices, metadata files, conditions. ``examples/driver`` has a complete driver.

Both ``prepare`` and ``unprepare`` may be called again after a crash for a claim whose call did not finish: they must
bring about a state, not a step. Upstream counterpart: kubeletplugin.DRAPlugin of k8s.io/dynamic-resource-allocation.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import msgspec

from kubedra.api import resource_v1
from kubedra.cdi.spec import ContainerEdits
from kubedra.sdk.resources import Pool
from kubedra.wire.health import DeviceHealth

T = TypeVar("T")
MaybeAwaitable: TypeAlias = T | Awaitable[T]


class AllocatedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device of a claim. ``request`` may be ``request/subrequest``; ``configs`` are the opaque parameters for this
    driver and request, those of the class first: a later one wins."""

    request: str
    pool: str
    device: str
    share_id: str | None = None
    admin_access: bool = False
    consumed_capacity: dict[str, str] = {}
    configs: tuple[Any, ...] = ()

    @property
    def main_request(self) -> str:
        """The request without the subrequest."""
        return self.request.partition("/")[0]


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that is to be prepared, with the devices of this driver alone."""

    namespace: str
    name: str
    uid: str
    devices: tuple[AllocatedDevice, ...]
    pod_claim_name: str = ""


class PreparedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """What came of preparing one device.

    ``edits`` is what a container with the device gets; ``cdi_ids`` are further CDI devices that exist already.
    ``data`` and ``network_data`` go into claim.status.devices, ``attributes`` into the metadata file (default: those
    that were published).
    """

    edits: ContainerEdits = ContainerEdits()
    cdi_ids: tuple[str, ...] = ()
    data: Any = None
    network_data: resource_v1.NetworkDeviceData | None = None
    attributes: dict[str, resource_v1.DeviceAttribute] | None = None


class PreparedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that is to be unprepared, as it was prepared (or was about to be when the driver died)."""

    namespace: str
    name: str
    uid: str
    devices: tuple[AllocatedDevice, ...] = ()


class PrepareError(Exception):
    """Raise it in ``prepare`` or ``unprepare`` with a sentence for the pod's event; the agent tries again."""


Discovered = Iterable[resource_v1.Device] | Mapping[str, Pool]


class Driver(Protocol):
    """The three methods and the driver's name (a DNS name that the author owns)."""

    @property
    def name(self) -> str: ...

    def discover(self) -> MaybeAwaitable[Discovered]:
        """Return the devices of this node in order of priority (they become one pool named after the node), or pools
        by name."""
        ...

    def prepare(self, allocation: Allocation) -> MaybeAwaitable[Sequence[PreparedDevice]]:
        """Return one ``PreparedDevice`` per entry of ``allocation.devices``, in that order."""
        ...

    def unprepare(self, claim: PreparedClaim) -> MaybeAwaitable[None]:
        """Undo; succeeds too when nothing was prepared."""
        ...


@runtime_checkable
class HealthSource(Protocol):
    """A driver that also knows how its devices are: complete lists, now and after every change."""

    def health(self) -> AsyncIterator[Sequence[DeviceHealth]]: ...


async def call(method: Callable[..., MaybeAwaitable[T]], *arguments: Any) -> T:
    """Call an author's method: async ones on the loop, plain ones in a thread."""
    if inspect.iscoroutinefunction(method):
        result: Any = method(*arguments)
    else:
        result = await asyncio.to_thread(method, *arguments)
    return cast("T", await result if inspect.isawaitable(result) else result)


def allocation_of(driver: str, claim: resource_v1.ResourceClaim) -> Allocation:
    """Return what ``claim`` gives to ``driver``; results and parameters of other drivers are left out."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation and allocation.devices else ()
    configs = allocation.devices.config if allocation and allocation.devices else ()
    mine = [config for config in configs if config.opaque is not None and config.opaque.driver == driver]
    # Class parameters come first whatever their place, so that a claim's win.
    mine.sort(key=lambda config: config.source != "FromClass")
    return Allocation(
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        pod_claim_name=claim.metadata.annotations.get("resource.kubernetes.io/pod-claim-name", ""),
        devices=tuple(
            AllocatedDevice(
                request=result.request,
                pool=result.pool,
                device=result.device,
                share_id=result.share_id,
                admin_access=bool(result.admin_access),
                consumed_capacity=result.consumed_capacity,
                configs=tuple(
                    config.opaque.parameters
                    for config in mine
                    if config.opaque is not None and _applies(config.requests, result.request)
                ),
            )
            for result in results
            if result.driver == driver
        ),
    )


def _applies(requests: Sequence[str], request: str) -> bool:
    return not requests or request in requests or request.partition("/")[0] in requests
