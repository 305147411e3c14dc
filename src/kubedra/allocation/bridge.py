"""The extended-resource bridge: pods that ask ``vendor/x: 2`` are served from device classes.

Pure: which class stands behind a resource name, who provides it on a node (the classes or a device plugin), which
requests the claim gets that stands for all of a pod's resources, and which container uses which request.

The requests are deterministic, so that a claim made by another scheduler for the same pod looks the same. Short-lived
init containers use the devices of containers that start later, and only ask for what those leave missing.

Upstream counterpart: extendeddynamicresources.go of the scheduler plugin (KEP-5004).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from kubedra.allocation.amounts import offered
from kubedra.api.core_v1 import Container, ContainerExtendedResourceRequest, Pod
from kubedra.api.meta_v1 import ObjectMeta, OwnerReference
from kubedra.api.resource_v1 import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubedra.base.quantity import Quantity, QuantityError

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
# The name of the claim before the API server gives it one: no object can have it.
PLACEHOLDER_NAME = "<extended-resources>"

Provider = Literal["classes", "device-plugin", "nobody", "node"]


@dataclass(frozen=True, slots=True)
class BridgeClaim:
    """The requests that stand for a pod's extended resources, and who uses which."""

    requests: tuple[DeviceRequest, ...] = ()
    mappings: tuple[ContainerExtendedResourceRequest, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing has to be claimed."""
        return not self.requests


class ResourceNames:
    """Which class stands behind a resource name: explicit names, and one implicit name for every class."""

    def __init__(self, classes: Iterable[DeviceClass] = ()) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self._explicit: dict[str, DeviceClass] = {}
        for device_class in classes:
            self.update(device_class)

    def update(self, new: DeviceClass | None, name: str = "") -> None:
        """A class was added, changed or deleted (None and its name)."""
        name = name or (new.metadata.name if new is not None else "")
        old = self._classes.pop(name, None)
        if new is not None:
            self._classes[name] = new
        for changed in (old, new):
            if changed is not None and changed.spec.extended_resource_name:
                self._choose(changed.spec.extended_resource_name)

    def class_for(self, resource: str) -> DeviceClass | None:
        """The class behind a name, or None. Of several with one explicit name the newest, then the first by name."""
        if resource.startswith(IMPLICIT_PREFIX):
            return self._classes.get(resource.removeprefix(IMPLICIT_PREFIX))
        return self._explicit.get(resource)

    def _choose(self, resource: str) -> None:
        rivals = [c for c in self._classes.values() if c.spec.extended_resource_name == resource]
        if not rivals:
            self._explicit.pop(resource, None)
            return
        newest = max(c.metadata.creation_timestamp for c in rivals)
        self._explicit[resource] = min(
            (c for c in rivals if c.metadata.creation_timestamp == newest), key=lambda c: c.metadata.name
        )


def container_requests(container: Container) -> Mapping[str, str]:
    """What a container requests; a limit without a request counts as one, as API defaulting does."""
    resources = container.resources
    if resources is None:
        return {}
    return {**resources.limits, **resources.requests} if resources.limits else resources.requests


def pod_resources(pod: Pod) -> dict[str, int]:
    """What the pod needs of every resource in whole numbers (the larger of init and main phase)."""
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers:
        for name, amount in _whole(container).items():
            if container.restart_policy == "Always":
                running[name] = running.get(name, 0) + amount
                peak[name] = max(peak.get(name, 0), running[name])
            else:
                peak[name] = max(peak.get(name, 0), running.get(name, 0) + amount)
    for container in pod.spec.containers:
        for name, amount in _whole(container).items():
            running[name] = running.get(name, 0) + amount
    return {name: max(peak.get(name, 0), running.get(name, 0)) for name in peak.keys() | running.keys()}


def bridged_resources(pod: Pod, names: ResourceNames) -> dict[str, DeviceClass]:
    """The resources of a pod that a device class stands behind."""
    found: dict[str, DeviceClass] = {}
    for resource, amount in pod_resources(pod).items():
        device_class = names.class_for(resource) if amount and is_extended_name(resource) else None
        if device_class is not None:
            found[resource] = device_class
    return found


def is_extended_name(resource: str) -> bool:
    """Whether a resource is neither native nor something else with a slash."""
    if resource.startswith(IMPLICIT_PREFIX):
        return True
    # Upstream looks for the text anywhere: names in a domain that only ends in it are native as well.
    native = "kubernetes.io/" in resource
    return "/" in resource and not native and not resource.startswith("requests.")


def provider(resource: str, has_class: bool, allocatable: Mapping[str, str]) -> Provider:
    """Who provides a resource on a node with these allocatable amounts.

    A device plugin that announces devices comes first; one that announces none is inactive. "node" leaves the answer
    to the check of the node's resources, "nobody" makes the node unfit (``cannot fit resource``).
    """
    text = allocatable.get(resource)
    if text is not None and offered(text).nano > 0:
        return "device-plugin"
    if has_class:
        return "classes"
    return "nobody" if text is None else "node"


def bridge_claim(pod: Pod, classes: Mapping[str, DeviceClass]) -> BridgeClaim:
    """The requests and mappings for the resources that classes provide on a node."""
    requests: dict[str, DeviceRequest] = {}
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(classes):
        _add_resource(pod, resource, classes[resource], requests, mappings)
    return BridgeClaim(tuple(requests[name] for name in sorted(requests)), tuple(mappings))


def placeholder_claim(pod: Pod, bridge: BridgeClaim, uid: str) -> ResourceClaim:
    """The claim as the allocator sees it, before the API server knows it."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=PLACEHOLDER_NAME,
            namespace=pod.metadata.namespace,
            generate_name=f"{pod.metadata.name}-extended-resources-",
            uid=uid,
            annotations={CLAIM_ANNOTATION: "true"},
            owner_references=(owner,),
        ),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=bridge.requests)),
    )


def _add_resource(
    pod: Pod,
    resource: str,
    device_class: DeviceClass,
    requests: dict[str, DeviceRequest],
    mappings: list[ContainerExtendedResourceRequest],
) -> None:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    inits = len(pod.spec.init_containers)
    # (index, request name, count) of the containers that run side by side to the end
    lasting: list[tuple[int, str, int]] = []
    short: list[tuple[int, Container, int]] = []
    for index, container in enumerate(containers):
        amount = _whole(container).get(resource, 0)
        if not amount:
            continue
        if index < inits and container.restart_policy != "Always":
            short.append((index, container, amount))
            continue
        name = _request_name(index, container, resource)
        requests[name] = _request(name, device_class, amount)
        lasting.append((index, name, amount))
        mappings.append(_mapping(container, resource, name))
    largest: tuple[str, int] | None = None
    own: list[tuple[Container, list[str], bool]] = []
    for index, container, amount in short:
        used, missing = [], amount
        for other, name, count in lasting:
            if other >= index and missing > 0:
                used.append(name)
                missing -= count
        if missing > 0 and (largest is None or missing > largest[1]):
            largest = (_request_name(index, container, resource), missing)
        own.append((container, used, missing > 0))
    if largest is not None:
        requests[largest[0]] = _request(largest[0], device_class, largest[1])
    for container, used, needs_own in own:
        mappings += [_mapping(container, resource, name) for name in used]
        if needs_own and largest is not None:
            mappings.append(_mapping(container, resource, largest[0]))


def _whole(container: Container) -> dict[str, int]:
    """The requests of a container that are whole and not zero."""
    found: dict[str, int] = {}
    for name, text in container_requests(container).items():
        try:
            quantity = Quantity.parse(text)
        except QuantityError:
            continue
        amount = quantity.as_int64()
        if amount is not None and amount > 0:
            found[name] = amount
    return found


def _request_name(index: int, container: Container, resource: str) -> str:
    return f"container-{index}-request-{sorted(container_requests(container)).index(resource)}"


def _request(name: str, device_class: DeviceClass, count: int) -> DeviceRequest:
    exactly = ExactDeviceRequest(
        device_class_name=device_class.metadata.name, allocation_mode="ExactCount", count=count
    )
    return DeviceRequest(name=name, exactly=exactly)


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container_name=container.name, resource_name=resource, request_name=request)
