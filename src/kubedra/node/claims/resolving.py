"""Which claims a pod needs on its node, and whether it may use them: the checks before anything is touched.

Pure. The sentences are upstream's, because people search for them. Upstream counterpart: the validation pass of
PrepareResources in pkg/kubelet/cm/dra/manager.go and the resourceclaim helper library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from kubedra.api.core_v1 import Container, Pod
from kubedra.api.resource_v1 import ResourceClaim
from kubedra.wire.dra import Device

PREPARE = "NodePrepareResources"
UNPREPARE = "NodeUnprepareResources"


class PrepareError(Exception):
    """A pod's claims can't be prepared (or unprepared) now; the text is what the event says."""


class WantedClaim(msgspec.Struct, frozen=True):
    """A claim that a pod may use, reduced to what preparing needs."""

    uid: str
    name: str
    namespace: str
    drivers: tuple[str, ...]
    skip_prepare: frozenset[str] = frozenset()
    skip_unprepare: frozenset[str] = frozenset()


def claim_names(pod: Pod) -> dict[str, str]:
    """The claim object for each of the pod's claims, by the pod's name for it; raises PrepareError.

    The claim of extended resources has the empty name. A claim that the pod turned out not to need is left out.
    """
    made = {entry.name: entry for entry in pod.status.resource_claim_statuses}
    names = {}
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name:
            names[claim.name] = claim.resource_claim_name
        elif claim.name not in made:
            raise PrepareError(f'pod "{pod.metadata.namespace}/{pod.metadata.name}": ResourceClaim not created yet')
        elif name := made[claim.name].resource_claim_name:
            names[claim.name] = name
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended.resource_claim_name:
        names[""] = extended.resource_claim_name
    return names


def wanted_claims(
    pod: Pod,
    claims: Mapping[str, ResourceClaim | None],
    is_registered: Callable[[str], bool],
    *,
    optional_operations: bool = False,
) -> tuple[WantedClaim, ...]:
    """The pod's claims in its order, checked; ``claims`` are by object name, None where the API has none."""
    templates = {claim.name for claim in pod.spec.resource_claims if not claim.resource_claim_name}
    wanted = []
    for pod_name, name in claim_names(pod).items():
        claim = claims.get(name)
        if claim is None:
            raise PrepareError(f'fetch ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found')
        _check_owner(pod, claim, made=pod_name in templates or pod_name == "")
        wanted.append(_checked(pod, claim, optional_operations))
    for claim_ in wanted:
        for driver in claim_.drivers:
            # Looked up even for claims that are prepared already, as upstream does: nobody is called half.
            if driver not in claim_.skip_prepare and not is_registered(driver):
                raise PrepareError(f"DRA driver {driver} is not registered")
    return tuple(wanted)


def _check_owner(pod: Pod, claim: ResourceClaim, *, made: bool) -> None:
    if made and not any(
        owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references
    ):
        namespace = claim.metadata.namespace
        raise PrepareError(
            f"ResourceClaim {namespace}/{claim.metadata.name} was not created for Pod "
            f"{pod.metadata.namespace}/{pod.metadata.name} (Pod is not owner)"
        )


def _checked(pod: Pod, claim: ResourceClaim, optional_operations: bool) -> WantedClaim:
    meta = claim.metadata
    if not any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for):
        raise PrepareError(
            f"pod {pod.metadata.name} ({pod.metadata.uid}) is not allowed to use ResourceClaim {meta.name} ({meta.uid})"
        )
    if claim.status.allocation is None:
        raise PrepareError(f"ResourceClaim {meta.name}: not allocated")
    devices = claim.status.allocation.devices
    results = devices.results if devices is not None else ()
    drivers = tuple(dict.fromkeys(result.driver for result in results))

    def skipped(operation: str) -> frozenset[str]:
        if not optional_operations:
            return frozenset()
        return frozenset(
            driver
            for driver in drivers
            if all({operation, "*"} & set(r.skip_node_operations) for r in results if r.driver == driver)
        )

    return WantedClaim(meta.uid, meta.name, meta.namespace, drivers, skipped(PREPARE), skipped(UNPREPARE))


def container_devices(
    pod: Pod, container: Container, devices_of: Callable[[str], tuple[tuple[str, Device], ...]]
) -> tuple[tuple[str, Device], ...]:
    """The (driver, device) pairs that a container gets, in the order of its entries, each once.

    ``devices_of`` gives the prepared devices of a claim by object name. A driver may report a device for
    ``request/subrequest``: containers name the request alone. (The kubelet compares the whole text and repeats ids.)
    """
    names = {}
    for claim in pod.spec.resource_claims:
        names[claim.name] = claim.resource_claim_name or ""
    for status in pod.status.resource_claim_statuses:
        if not names.get(status.name):
            names[status.name] = status.resource_claim_name or ""
    entries = []
    if container.resources is not None:
        entries = [(names.get(entry.name, ""), entry.request) for entry in container.resources.claims]
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        entries += [
            (extended.resource_claim_name, mapping.request_name)
            for mapping in extended.request_mappings
            if mapping.container_name == container.name
        ]
    found: dict[tuple[str, Device], None] = {}
    for name, request in entries:
        for driver, device in devices_of(name) if name else ():
            requests = {part.partition("/")[0] for part in device.request_names} | set(device.request_names)
            if not request or not requests or request in requests:
                found[(driver, device)] = None
    return tuple(found)
