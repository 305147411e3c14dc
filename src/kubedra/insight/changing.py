"""Changed copies of claims and pods: what a remedy would write. Objects are values, so every change is a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kubedra.api.resource_v1 import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from kubedra.insight.decision import Claims

Ask = ExactDeviceRequest | DeviceSubRequest
ClaimChange = Callable[[Claims], Claims]

replace = msgspec.structs.replace


def in_claim(name: str, change: Callable[..., ResourceClaim], *arguments: Any) -> ClaimChange:
    """Change the claim of that namespace/name by ``change(claim, *arguments)``."""

    def apply(claims: Claims) -> Claims:
        return tuple(change(c, *arguments) if full_name(c) == name else c for c in claims)

    return apply


def full_name(claim: ResourceClaim) -> str:
    """``namespace/name``."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}" if claim.metadata.namespace else claim.metadata.name


def with_devices(claim: ResourceClaim, **changes: Any) -> ResourceClaim:
    """The claim with other members of spec.devices."""
    devices = replace(claim.spec.devices or DeviceClaim(), **changes)
    return replace(claim, spec=replace(claim.spec, devices=devices))


def with_ask(claim: ResourceClaim, request: str, change: Callable[[Any], Any]) -> ResourceClaim:
    """The claim with a request (or "request/alternative") changed."""
    name, slash, sub = request.partition("/")

    def one(item: DeviceRequest) -> DeviceRequest:
        if item.name != name:
            return item
        if slash:
            return replace(item, first_available=tuple(change(s) if s.name == sub else s for s in item.first_available))
        return replace(item, exactly=change(item.exactly)) if item.exactly is not None else item

    devices = claim.spec.devices or DeviceClaim()
    return with_devices(claim, requests=tuple(one(item) for item in devices.requests))


def ask_of(claim: ResourceClaim, request: str) -> Ask | None:
    """The exact request, or the alternative, of that name."""
    name, slash, sub = request.partition("/")
    for item in claim.spec.devices.requests if claim.spec.devices is not None else ():
        if item.name == name:
            if slash:
                return next((s for s in item.first_available if s.name == sub), None)
            return item.exactly
    return None


def selector_replaced(claim: ResourceClaim, request: str, index: int, expression: str | None) -> ResourceClaim:
    """The claim with one selector of a request replaced, or dropped (None)."""

    def change(ask: Any) -> Any:
        selectors = list(ask.selectors)
        if expression is None:
            del selectors[index]
        else:
            selectors[index] = DeviceSelector(cel=CELDeviceSelector(expression=expression))
        return replace(ask, selectors=tuple(selectors))

    return with_ask(claim, request, change)


def constraint_dropped(claim: ResourceClaim, index: int) -> ResourceClaim:
    """The claim without one constraint."""
    constraints = list((claim.spec.devices or DeviceClaim()).constraints)
    del constraints[index]
    return with_devices(claim, constraints=tuple(constraints))


def constraint_on(claim: ResourceClaim, index: int, attribute: str) -> ResourceClaim:
    """The claim with one constraint on another attribute."""
    constraints = list((claim.spec.devices or DeviceClaim()).constraints)
    old = constraints[index]
    changed = {"match_attribute": attribute} if old.match_attribute else {"distinct_attribute": attribute}
    constraints[index] = replace(old, **changed)
    return with_devices(claim, constraints=tuple(constraints))


def toleration_added(claim: ResourceClaim, request: str, toleration: DeviceToleration) -> ResourceClaim:
    """The claim with a request that bears one more taint."""
    return with_ask(claim, request, lambda ask: replace(ask, tolerations=(*ask.tolerations, toleration)))


def count_lowered(claim: ResourceClaim, request: str, count: int) -> ResourceClaim:
    """The claim with another count."""
    return with_ask(claim, request, lambda ask: replace(ask, allocation_mode="ExactCount", count=count))


def capacity_lowered(claim: ResourceClaim, request: str, name: str, amount: str) -> ResourceClaim:
    """The claim that asks for another amount of a capacity."""

    def change(ask: Any) -> Any:
        requests = dict(ask.capacity.requests) if ask.capacity is not None else {}
        requests[name] = amount
        return replace(ask, capacity=replace(ask.capacity, requests=requests))

    return with_ask(claim, request, change)
