"""Claims prepared for searching: what does not depend on the node is worked out once per pod.

Preparing also makes the checks of spec/allocator.md 3.2 that need no node. Their order matters, because the first
error wins and checks of "All" requests, which do need the node, stand between them: a problem is therefore kept as
data, with its place, and raised when the checks of a node get there.

Equal questions share one object: two requests with the same selectors, tolerations and capacity have the same ``Ask``,
and whatever is remembered about devices (masks, counts) is remembered by Ask.

Upstream counterpart: the first half of Allocate and validateDeviceRequest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kubedra.allocation.features import Features
from kubedra.allocation.inventory import Inventory
from kubedra.allocation.selection import Selection
from kubedra.api.resource_v1 import (
    CapacityRequirements,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from kubedra.base.quantity import Quantity, QuantityError

MAX_DEVICES = 32


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """What is asked of a single device."""

    selection: Selection
    tolerations: tuple[DeviceToleration, ...]
    capacity: tuple[tuple[str, Quantity], ...]
    admin: bool
    # The capacity requests as a mapping (not to be changed).
    capacity_requests: dict[str, Quantity]


@dataclass(slots=True, eq=False)
class Alternative:
    """An exact request, or one of the alternatives of a firstAvailable request."""

    name: str
    class_name: str
    device_class: DeviceClass
    ask: Ask
    all_devices: bool
    count: int
    # Places of the constraints (of the claim) that apply to it.
    constraints: tuple[int, ...] = ()
    # An earlier alternative of the request asks exactly the same.
    repeats: bool = False

    @property
    def short_name(self) -> str:
        """The name upstream uses in errors: that of the alternative without its request."""
        return self.name.rpartition("/")[2]


@dataclass(slots=True, eq=False)
class PreparedRequest:
    """A request with its alternatives; ``choice`` is false for an exact request."""

    name: str
    choice: bool
    alternatives: list[Alternative] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A match or distinct constraint on one attribute."""

    attribute: str
    distinct: bool
    requests: frozenset[str]

    def covers(self, request: str, alternative: str) -> bool:
        """Whether it applies to a request (or to "request/alternative")."""
        return not self.requests or request in self.requests or alternative in self.requests


@dataclass(slots=True, eq=False)
class PreparedClaim:
    """A claim with its requests and constraints."""

    claim: ResourceClaim
    name: str
    requests: list[PreparedRequest] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)


# A step of the checks: a node-independent failure, an All request that must look at the node, or the claim's count.
Check: TypeAlias = "str | tuple[PreparedClaim, Alternative] | PreparedClaim"


@dataclass(slots=True, eq=False)
class PreparedPod:
    """The claims of one pod, to be allocated together."""

    claims: list[PreparedClaim]
    checks: list[Check]
    # An All request under a constraint: upstream ends with an error when the search meets a conflict.
    may_conflict: bool = False
    has_admin: bool = False
    has_all: bool = False


class Asks:
    """Interns Ask objects."""

    def __init__(self, limit: int = 4096) -> None:
        self._known: dict[tuple[object, ...], Ask] = {}
        self._limit = limit

    def of(
        self,
        selection: Selection,
        tolerations: tuple[DeviceToleration, ...],
        capacity: tuple[tuple[str, Quantity], ...],
        admin: bool,
    ) -> Ask:
        """The Ask with these contents."""
        # Quantities are equal across spellings, results are not: the text is part of what is asked.
        key = (selection, tolerations, tuple((k, str(q)) for k, q in capacity), admin)
        ask = self._known.pop(key, None)
        if ask is None:
            ask = Ask(selection, tolerations, capacity, admin, dict(capacity))
        self._known[key] = ask
        if len(self._known) > self._limit:
            del self._known[next(iter(self._known))]
        return ask


def claim_name(claim: ResourceClaim) -> str:
    """A claim in messages: namespace/name."""
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def prepare(claims: Sequence[ResourceClaim], inventory: Inventory, asks: Asks) -> PreparedPod:
    """Prepare the claims of a pod. Never raises for what a claim contains: problems become checks."""
    pod = PreparedPod([], [])
    for claim in claims:
        prepared = PreparedClaim(claim, claim_name(claim))
        pod.claims.append(prepared)
        devices = claim.spec.devices
        if devices is None:
            continue
        try:
            _constraints_first(prepared, devices.constraints)
            for request in devices.requests:
                _prepare_request(pod, prepared, request, inventory, asks)
            pod.checks.append(prepared)
            _check_constraints(prepared, devices.constraints)
        except _Problem as problem:
            pod.checks.append(str(problem))
            break
    return pod


class _Problem(Exception):
    pass


def _constraints_first(prepared: PreparedClaim, constraints: Sequence[DeviceConstraint]) -> None:
    for constraint in constraints:
        attribute = constraint.match_attribute or constraint.distinct_attribute
        prepared.constraints.append(
            Constraint(attribute, not constraint.match_attribute, frozenset(constraint.requests))
        )


def _check_constraints(prepared: PreparedClaim, constraints: Sequence[DeviceConstraint]) -> None:
    for index, constraint in enumerate(constraints):
        if not constraint.match_attribute and not constraint.distinct_attribute:
            raise _Problem(
                f"claim {prepared.name}, constraint #{index}: empty constraint (unsupported constraint type?)"
            )


def _prepare_request(
    pod: PreparedPod, claim: PreparedClaim, request: DeviceRequest, inventory: Inventory, asks: Asks
) -> None:
    features = inventory.features
    where = f"claim {claim.name}, request {request.name}"
    if request.first_available:
        if not features.prioritized_list:
            raise _Problem(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
        prepared = PreparedRequest(request.name, True)
        for sub in request.first_available:
            name = f"{request.name}/{sub.name}"
            _prepare_alternative(pod, claim, prepared, sub, name, inventory, asks)
    else:
        prepared = PreparedRequest(request.name, False)
        exactly = request.exactly or ExactDeviceRequest()
        _prepare_alternative(pod, claim, prepared, exactly, request.name, inventory, asks)
    claim.requests.append(prepared)


def _prepare_alternative(
    pod: PreparedPod,
    claim: PreparedClaim,
    request: PreparedRequest,
    raw: ExactDeviceRequest | DeviceSubRequest,
    name: str,
    inventory: Inventory,
    asks: Asks,
) -> None:
    features = inventory.features
    where = f"claim {claim.name}, request {name.rpartition('/')[2]}"
    admin_access = raw.admin_access if isinstance(raw, ExactDeviceRequest) else None
    selectors = []
    for index, selector in enumerate(raw.selectors):
        if selector.cel is None:
            raise _Problem(f"{where}, selector #{index}: CEL expression empty (unsupported selector type?)")
        selectors.append(selector.cel.expression)
    if admin_access is not None and not features.admin_access:
        raise _Problem(f"{where}: admin access is requested, but the feature is disabled")
    if not raw.device_class_name:
        raise _Problem(f"{where}: missing device class name (unsupported request type?)")
    device_class = inventory.classes.get(raw.device_class_name)
    if device_class is None:
        wanted = raw.device_class_name
        raise _Problem(
            f'{where}: could not retrieve device class {wanted}: deviceclass.resource.k8s.io "{wanted}" not found'
        )
    class_selectors = []
    for index, selector in enumerate(device_class.spec.selectors):
        if selector.cel is None:
            raise _Problem(
                f"class {raw.device_class_name}, selector #{index}: CEL expression empty (unsupported selector type?)"
            )
        class_selectors.append(selector.cel.expression)
    capacity = _capacity(raw.capacity, where, request.choice, features)
    if raw.allocation_mode not in ("ExactCount", "All"):
        raise _Problem(f"{where}: unsupported count mode {raw.allocation_mode}")
    all_devices = raw.allocation_mode == "All"
    # A stored count below zero asks for nothing, as zero does; the API server takes neither.
    count = 0 if all_devices else max(raw.count or 0, 0)
    derived: tuple[tuple[str, str], ...] = ()
    if features.derived_attributes:
        derived = tuple((item.name, item.expression) for item in raw.derived_attributes)
    ask = asks.of(
        inventory.selections.of(tuple(class_selectors), tuple(selectors), derived),
        raw.tolerations,
        capacity,
        bool(admin_access),
    )
    constraints = tuple(i for i, c in enumerate(claim.constraints) if c.covers(request.name, name))
    alternative = Alternative(name, raw.device_class_name, device_class, ask, all_devices, count, constraints)
    alternative.repeats = any(
        (a.ask, a.all_devices, a.count, a.constraints) == (ask, all_devices, count, constraints)
        for a in request.alternatives
    )
    request.alternatives.append(alternative)
    if all_devices:
        pod.has_all = True
        pod.checks.append((claim, alternative))
        if constraints:
            pod.may_conflict = True
    if ask.admin:
        pod.has_admin = True


def _capacity(
    capacity: CapacityRequirements | None, where: str, choice: bool, features: Features
) -> tuple[tuple[str, Quantity], ...]:
    if capacity is None or not capacity.requests:
        return ()
    if not features.consumable_capacity:
        if choice:
            where = where.replace(", request ", ", subrequest ")
        raise _Problem(f"{where}: has capacity requests, but the DRAConsumableCapacity feature is disabled")
    try:
        return tuple(sorted((key, Quantity.parse(value)) for key, value in capacity.requests.items()))
    except QuantityError as error:
        raise _Problem(f"{where}: invalid capacity request: {error}") from None
