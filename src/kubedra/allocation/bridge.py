"""How a pod's extended resources become the requests of a claim (KEP-5004).

Each long-lived container gets a request of its own per resource. Containers of the init phase run before, so they may
use what later containers will need; only what is missing then becomes a request, and of several such the largest
serves them all. Names are made from positions, so the same pod gives the same claim every time.

Upstream counterpart: createRequestsAndMappings in extendeddynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubedra.api.core_v1 import Container, ContainerExtendedResourceRequest, Pod
from kubedra.api.resource_v1 import DeviceRequest, ExactDeviceRequest
from kubedra.base.quantity import Quantity, QuantityError


@dataclass(frozen=True, slots=True)
class Synthesis:
    """Requests by name, and which of them serve which resource of which container."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]


@dataclass(slots=True)
class _Own:
    name: str
    count: int


def synthesize(pod: Pod, classes: Mapping[str, str]) -> Synthesis:
    """Make the requests for these extended resources (resource name to class)."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    for resource in sorted(classes):
        made, mapped = _one_resource(containers, len(pod.spec.init_containers), resource)
        requests += [
            DeviceRequest(
                name=own.name,
                exactly=ExactDeviceRequest(
                    device_class_name=classes[resource], allocation_mode="ExactCount", count=own.count
                ),
            )
            for own in made
        ]
        mappings += mapped
    return Synthesis(tuple(sorted(requests, key=lambda request: request.name)), tuple(mappings))


def _one_resource(
    containers: tuple[Container, ...], inits: int, resource: str
) -> tuple[list[_Own], list[ContainerExtendedResourceRequest]]:
    lasting: dict[int, _Own] = {}
    for index, container in enumerate(containers):
        if index >= inits or container.restart_policy == "Always":
            count = _count(container, resource)
            if count:
                lasting[index] = _Own(_name(index, container, resource), count)
    mapped = [_mapping(containers[index], resource, own.name) for index, own in lasting.items()]
    largest: _Own | None = None
    passing: list[tuple[Container, list[str], _Own | None]] = []
    for index, container in enumerate(containers[:inits]):
        count = 0 if container.restart_policy == "Always" else _count(container, resource)
        if not count:
            continue
        reused: list[str] = []
        have = 0
        for later in sorted(lasting):
            if later >= index and have < count:
                reused.append(lasting[later].name)
                have += lasting[later].count
        missing = _Own(_name(index, container, resource), count - have) if have < count else None
        if missing is not None and (largest is None or missing.count > largest.count):
            largest = missing
        passing.append((container, reused, missing))
    for container, reused, missing in passing:
        mapped += [_mapping(container, resource, name) for name in reused]
        if missing is not None and largest is not None:
            mapped.append(_mapping(container, resource, largest.name))
    return [*lasting.values(), *([largest] if largest is not None else [])], mapped


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container_name=container.name, resource_name=resource, request_name=request)


def _name(index: int, container: Container, resource: str) -> str:
    names = sorted(container.resources.requests) if container.resources is not None else []
    return f"container-{index}-request-{names.index(resource)}"


def _count(container: Container, resource: str) -> int:
    text = container.resources.requests.get(resource) if container.resources is not None else None
    if text is None:
        return 0
    try:
        quantity = Quantity.parse(str(text))
    except QuantityError:
        return 0
    return quantity.value() if quantity.is_whole and quantity.sign > 0 else 0
