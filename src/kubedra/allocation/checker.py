"""An independent check of allocations: is what stands in the API right?

It answers from API objects alone and shares no code with the search (it imports none of the search's modules), so that
an error in the search does not hide itself. It is slow and simple on purpose: lists, loops, exact sums.

Two parts: what concerns one claim (``checker_claims``: its devices exist, match, are enough, agree with its
constraints, tolerations, policies and node) and what concerns what is shared (``checker_totals``: no device, counter
set, compatibility group or capacity is handed out twice). ``check_new`` runs both for an allocation that is about to be
written, on the pools it touches; ``check_cluster`` for everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from kubedra.allocation.checker_claims import Derive, PoolSlices, check_claim, newest, seen_from
from kubedra.allocation.checker_totals import check_pool
from kubedra.allocation.violations import CheckFeatures, Held, Violation
from kubedra.api.core_v1 import Node
from kubedra.api.resource_v1 import AllocationResult, Device, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice

# Whether a device (of a driver) passes a CEL expression; raises ValueError when it can't be evaluated.
Matches: TypeAlias = Callable[[str, Device, str], bool]
T = TypeVar("T")
_Pool: TypeAlias = tuple[str, str]


class Checker:
    """Holds API objects, sorted by pool, and checks them."""

    def __init__(self, matches: Matches, features: CheckFeatures | None = None, derive: Derive | None = None) -> None:
        self._matches = matches
        self._derive = derive
        self._features = features or CheckFeatures()
        self._slices: dict[_Pool, dict[str, ResourceSlice]] = {}
        self._pool_of_slice: dict[str, _Pool] = {}
        self._classes: dict[str, DeviceClass] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._nodes: dict[str, Node] = {}
        self._claims: dict[str, ResourceClaim] = {}
        self._claims_of_pool: dict[_Pool, dict[str, ResourceClaim]] = {}

    # -- objects ------------------------------------------------------------------------------------------------------

    def update_slice(self, new: ResourceSlice | None, name: str = "") -> None:
        """A slice was added, changed or (None and its name) deleted."""
        name = name or (new.metadata.name if new is not None else "")
        old = self._pool_of_slice.pop(name, None)
        if old is not None:
            self._slices[old].pop(name, None)
        if new is not None:
            pool = (new.spec.driver, new.spec.pool.name)
            self._slices.setdefault(pool, {})[name] = new
            self._pool_of_slice[name] = pool

    def update_class(self, new: DeviceClass | None, name: str = "") -> None:
        """A class was added, changed or deleted."""
        _update(self._classes, new, name or (new.metadata.name if new is not None else ""))

    def update_taint_rule(self, new: DeviceTaintRule | None, name: str = "") -> None:
        """A taint rule was added, changed or deleted."""
        _update(self._rules, new, name or (new.metadata.name if new is not None else ""))

    def update_node(self, new: Node | None, name: str = "") -> None:
        """A node was added, changed or deleted."""
        _update(self._nodes, new, name or (new.metadata.name if new is not None else ""))

    def update_claim(self, new: ResourceClaim | None, key: str = "") -> None:
        """A claim was added, changed or deleted; the key is its uid, else namespace/name."""
        key = key or (_key(new) if new is not None else "")
        old = self._claims.pop(key, None)
        if old is not None:
            for pool in _pools(old.status.allocation):
                self._claims_of_pool[pool].pop(key, None)
        if new is not None and new.status.allocation is not None:
            self._claims[key] = new
            for pool in _pools(new.status.allocation):
                self._claims_of_pool.setdefault(pool, {})[key] = new

    # -- checks -------------------------------------------------------------------------------------------------------

    def check_new(
        self, new: Sequence[tuple[ResourceClaim, AllocationResult]], node: str, strict: bool = True
    ) -> list[Violation]:
        """Check allocations that are about to be written for one pod on a node.

        ``strict``: also what only holds at the time of allocation (taints, the devices of All requests).
        """
        found: list[Violation] = []
        keys = {_key(claim) for claim, _ in new}
        touched: set[_Pool] = set()
        for claim, allocation in new:
            found += self._check_claim(claim, allocation, node, strict)
            touched.update(_pools(allocation))
        for pool in sorted(touched):
            held = self._held(pool, keys)
            mine: list[Held] = []
            for claim, allocation in new:
                mine += _held_by(claim, allocation, pool, self._features)
            slices = seen_from(tuple(self._slices.get(pool, {}).values()), self._nodes.get(node))
            # Further shares of a device change nothing for the counters: it has paid for them already.
            before = {item.device for item in held}
            devices = {item.device for item in mine}
            found += check_pool(pool, slices, [*held, *mine], devices, devices - before)
        return found

    def check_cluster(self) -> list[Violation]:
        """Check every allocation and every pool."""
        found: list[Violation] = []
        for _, claim in sorted(self._claims.items()):
            if claim.status.allocation is not None:
                found += self._check_claim(claim, claim.status.allocation, "", False)
        for pool in sorted(self._claims_of_pool):
            slices = newest(self._slices.get(pool, {}).values())
            found += check_pool(pool, slices, self._held(pool, ()))
        return found

    def _check_claim(
        self, claim: ResourceClaim, allocation: AllocationResult, node: str, strict: bool
    ) -> list[Violation]:
        pools: dict[_Pool, PoolSlices] = {
            pool: tuple(self._slices.get(pool, {}).values()) for pool in _pools(allocation)
        }
        return check_claim(
            claim,
            allocation,
            pools=pools,
            all_pools=lambda: [tuple(slices.values()) for slices in self._slices.values()],
            classes=self._classes,
            rules=tuple(self._rules.values()),
            nodes=self._nodes,
            node=node,
            strict=strict,
            matches=self._matches,
            features=self._features,
            derive=self._derive,
        )

    def _held(self, pool: _Pool, without: Iterable[str]) -> list[Held]:
        held: list[Held] = []
        for key, claim in sorted(self._claims_of_pool.get(pool, {}).items()):
            if key not in without and claim.status.allocation is not None:
                held += _held_by(claim, claim.status.allocation, pool, self._features)
        return held


def _held_by(claim: ResourceClaim, allocation: AllocationResult, pool: _Pool, features: CheckFeatures) -> list[Held]:
    name = f"{claim.metadata.namespace}/{claim.metadata.name}"
    return [
        Held(
            name,
            result.device,
            (result.share_id or None) if features.consumable_capacity else None,
            tuple(result.consumed_capacity.items()),
        )
        for result in (allocation.devices.results if allocation.devices else ())
        if (result.driver, result.pool) == pool and not result.admin_access
    ]


def _pools(allocation: AllocationResult | None) -> set[_Pool]:
    if allocation is None or allocation.devices is None:
        return set()
    return {(result.driver, result.pool) for result in allocation.devices.results}


def _key(claim: ResourceClaim) -> str:
    return claim.metadata.uid or f"{claim.metadata.namespace}/{claim.metadata.name}"


def _update(objects: dict[str, T], new: T | None, name: str) -> None:
    if new is None:
        objects.pop(name, None)
    else:
        objects[name] = new
