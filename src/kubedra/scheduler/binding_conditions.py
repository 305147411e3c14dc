"""Devices that must be made ready before their pod may be bound (KEP-5007).

Upstream: isClaimReadyForBinding in plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kubedra.api import meta_v1
from kubedra.api.resource_v1 import DeviceRequestAllocationResult, ResourceClaim
from kubedra.base.clock import parse_time


@dataclass(frozen=True, slots=True)
class Failed:
    """A device reports that it will not become ready."""

    message: str
    drivers: tuple[str, ...] = ()


def has_conditions(claim: ResourceClaim) -> bool:
    """Whether any allocated device must be waited for."""
    return any(result.binding_conditions for result in results(claim))


def results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    """The allocated devices."""
    allocation = claim.status.allocation
    return allocation.devices.results if allocation is not None and allocation.devices is not None else ()


def check(claim: ResourceClaim) -> bool | Failed:
    """True: all devices are ready. False: wait. Failed: one of them never will be."""
    ready = True
    for result in results(claim):
        if not result.binding_conditions:
            continue
        conditions = _conditions(claim, result)
        for name in result.binding_failure_conditions:
            found = conditions.get(name)
            if found is not None and found.status == "True":
                return Failed(
                    f"device binding failed: claim={claim.metadata.name}, reason={found.reason},"
                    f' message="{found.message}"',
                    (result.driver,),
                )
        for name in result.binding_conditions:
            found = conditions.get(name)
            if found is None or found.status != "True":
                ready = False
    return ready


def timed_out(claim: ResourceClaim, now: datetime, timeout: float) -> bool:
    """Whether the devices had their time: it runs from the allocation and is shared by all pods of the claim."""
    allocation = claim.status.allocation
    if allocation is None or not allocation.allocation_timestamp:
        return False
    try:
        started = parse_time(allocation.allocation_timestamp)
    except ValueError:
        return False
    return (now - started).total_seconds() > timeout


def unusable(claim: ResourceClaim, now: datetime, timeout: float) -> bool:
    """Whether an allocated claim can't serve a pod because its devices failed, or did not get ready in time."""
    if not has_conditions(claim):
        return False
    state = check(claim)
    return isinstance(state, Failed) or (state is False and timed_out(claim, now, timeout))


def _conditions(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> dict[str, meta_v1.Condition]:
    """The conditions of the device; of a shared device only those of this share count, when shares are told apart."""
    named = [
        status
        for status in claim.status.devices
        if (status.driver, status.pool, status.device) == (result.driver, result.pool, result.device)
    ]
    exact = [status for status in named if status.share_id == (result.share_id or "")]
    return {condition.type: condition for status in (exact or named) for condition in status.conditions}
