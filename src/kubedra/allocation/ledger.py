"""What is taken: one entry for each allocated device, or for each share of a device.

Keyed (driver, pool, device[, share]) and grouped by pool, so that the state of a pool can be derived again when, and
only when, something of that pool changed (``PoolUse.version``). Claims are remembered by key: an updated claim replaces
what its former version took. The same device may stand in the ledger twice (two claims of which one is wrong); it is
free again when both have gone.

Every change is undoable: ``mark`` and ``rollback`` let "what if this claim went away" be asked without a copy.

Results with admin access take nothing. A result with a share ID takes capacity when DRAConsumableCapacity is on; when
it is off, or without a share ID, the whole device is taken.

Upstream counterpart: AllocatedState of structured/schedulerapi and allocateddevices.go of the scheduler plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kubedra.allocation.devices import DeviceId, PoolId
from kubedra.api.resource_v1 import AllocationResult, ResourceClaim
from kubedra.base.quantity import Quantity, QuantityError

ClaimKey: TypeAlias = str
Share: TypeAlias = tuple[ClaimKey, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One device that a claim holds; ``share`` is None when it holds the whole device."""

    device: DeviceId
    share: str | None = None
    consumed: tuple[tuple[str, int], ...] = ()


class PoolUse:
    """What is taken of one pool: device names to the claims that hold them."""

    __slots__ = ("exclusive", "shares", "version")

    def __init__(self) -> None:
        self.version = 0
        self.exclusive: dict[str, list[ClaimKey]] = {}
        self.shares: dict[str, dict[Share, tuple[tuple[str, int], ...]]] = {}

    def consumed(self, device: str) -> dict[str, int]:
        """The capacity that all shares of a device take together, in nanos."""
        total: dict[str, int] = {}
        for amounts in self.shares.get(device, {}).values():
            for key, nano in amounts:
                total[key] = total.get(key, 0) + nano
        return total


_NOTHING = PoolUse()


class Ledger:
    """The taken devices of a cluster."""

    def __init__(self, consumable_capacity: bool = True) -> None:
        self._consumable = consumable_capacity
        self._pools: dict[PoolId, PoolUse] = {}
        self._claims: dict[ClaimKey, tuple[Entry, ...]] = {}
        self._undo: list[Callable[[], None]] | None = None
        # Pools that changed, in order: consumers remember how far they read and catch up.
        self.changes: list[PoolId] = []
        self.first_change = 0

    def use_of(self, pool: PoolId) -> PoolUse:
        """What is taken of a pool (do not change it)."""
        return self._pools.get(pool, _NOTHING)

    def holders(self, device: DeviceId) -> tuple[ClaimKey, ...]:
        """The claims that hold a device or a share of it."""
        use = self._pools.get(device[:2], _NOTHING)
        shared = tuple(claim for claim, _ in use.shares.get(device[2], {}))
        return (*use.exclusive.get(device[2], ()), *shared)

    def entries_of(self, claim: ClaimKey) -> tuple[Entry, ...]:
        """What a claim holds."""
        return self._claims.get(claim, ())

    def claims(self) -> tuple[ClaimKey, ...]:
        """The keys of all claims that hold something."""
        return tuple(self._claims)

    def update_claim(self, claim: ResourceClaim) -> None:
        """Take over a claim's allocation: what it held before is given back first."""
        self.set_entries(claim_key(claim), entries_of_allocation(claim.status.allocation, self._consumable))

    def remove_claim(self, claim: ResourceClaim | ClaimKey) -> None:
        """Give back what a claim holds."""
        self.set_entries(claim if isinstance(claim, str) else claim_key(claim), ())

    def assume(self, key: ClaimKey, allocation: AllocationResult) -> None:
        """Take the devices of an allocation that is decided and not yet written."""
        self.set_entries(key, entries_of_allocation(allocation, self._consumable))

    def set_entries(self, key: ClaimKey, entries: Iterable[Entry]) -> None:
        """Replace what a claim holds."""
        new = tuple(entries)
        old = self._claims.get(key, ())
        if new == old:
            return
        for entry in old:
            self._release(key, entry)
        for entry in new:
            self._take(key, entry)
        if new:
            self._claims[key] = new
        else:
            del self._claims[key]
        if self._undo is not None:
            self._undo.append(lambda: self.set_entries(key, old))

    def mark(self) -> int:
        """Start remembering changes (or go on); returns a mark for ``rollback``."""
        if self._undo is None:
            self._undo = []
        return len(self._undo)

    def rollback(self, mark: int) -> None:
        """Undo all changes since the mark."""
        undo, self._undo = self._undo or [], None
        while len(undo) > mark:
            undo.pop()()
        self._undo = undo if mark else None

    def snapshot(self) -> dict[str, object]:
        """The whole content as plain values, for comparing two ledgers."""
        return {
            "claims": dict(self._claims),
            "pools": {
                pool: (
                    {name: sorted(claims) for name, claims in use.exclusive.items()},
                    {name: dict(sorted(shares.items())) for name, shares in use.shares.items()},
                )
                for pool, use in self._pools.items()
                if use.exclusive or use.shares
            },
        }

    def _take(self, key: ClaimKey, entry: Entry) -> None:
        use = self._touch(entry.device)
        name = entry.device[2]
        if entry.share is None:
            use.exclusive.setdefault(name, []).append(key)
        else:
            use.shares.setdefault(name, {})[(key, entry.share)] = entry.consumed

    def _release(self, key: ClaimKey, entry: Entry) -> None:
        use = self._touch(entry.device)
        name = entry.device[2]
        if entry.share is None:
            holders = use.exclusive[name]
            holders.remove(key)
            if not holders:
                del use.exclusive[name]
        else:
            shares = use.shares[name]
            shares.pop((key, entry.share), None)
            if not shares:
                del use.shares[name]

    def _touch(self, device: DeviceId) -> PoolUse:
        pool = device[:2]
        use = self._pools.get(pool)
        if use is None:
            use = self._pools[pool] = PoolUse()
        use.version += 1
        changes = self.changes
        changes.append(pool)
        if len(changes) > 20000:
            del changes[:10000]
            self.first_change += 10000
        return use


def claim_key(claim: ResourceClaim) -> ClaimKey:
    """What a claim is called in the ledger: its uid, else namespace/name."""
    return claim.metadata.uid or f"{claim.metadata.namespace}/{claim.metadata.name}"


def entries_of_allocation(allocation: AllocationResult | None, consumable_capacity: bool) -> tuple[Entry, ...]:
    """What an allocation takes."""
    if allocation is None or allocation.devices is None:
        return ()
    entries = []
    for result in allocation.devices.results:
        if result.admin_access:
            continue
        device = (result.driver, result.pool, result.device)
        if result.share_id is not None and consumable_capacity:
            entries.append(Entry(device, result.share_id, _amounts(result.consumed_capacity)))
        else:
            entries.append(Entry(device))
    return tuple(entries)


def _amounts(consumed: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    amounts = []
    for key, text in consumed.items():
        try:
            nano = Quantity.parse(text).nano
        except QuantityError:
            continue
        # A stored negative amount must not make room.
        amounts.append((key, max(nano, 0)))
    return tuple(amounts)
