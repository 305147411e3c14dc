"""The candidate test: may this device be picked for this request now, and what does the pick use up?

The only place that says what makes a device fit. The plain search, the fast search and the explanations all ask here.
An ``Attempt`` is one node, one pod, and what has been picked so far. Everything a pick changes goes through a trail, so
undoing is exact by construction, whatever step refused the device.

The order of the tests is upstream's (spec/allocator.md 3.4).

Upstream counterpart: allocateDevice. Not copied: its partial rollbacks (defects 1-4 of spec/dra-1.37.md 4.10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kubedra.allocation.candidates import has_room, needs_no_capacity, takes, tolerated
from kubedra.allocation.claims import Alternative, Ask, PreparedPod
from kubedra.allocation.columns import ValueSet
from kubedra.allocation.constraints import State, added
from kubedra.allocation.devices import DeviceView, SliceView
from kubedra.allocation.features import Features
from kubedra.allocation.inventory import NodeView
from kubedra.allocation.ledger import Ledger
from kubedra.allocation.pools import Groups, PoolState, groups_allow, join_groups
from kubedra.base.quantity import Quantity


class Refusal(IntEnum):
    """Why a device can't be picked."""

    NONE = 0
    IN_USE = 1
    COUNTERS = 2
    TAINT = 3
    CONSTRAINT = 4
    CAPACITY = 5


@dataclass(frozen=True, slots=True)
class Pick:
    """A device picked for a request."""

    bit: int
    claim: int
    alternative: Alternative
    consumed: dict[str, Quantity] | None


_MISSING: Any = object()


class Attempt:
    """The state of one search."""

    __slots__ = (
        "_capacity",
        "_groups",
        "_left",
        "_trail",
        "claim_picked",
        "constraints",
        "counts",
        "devices",
        "exclusive",
        "features",
        "node",
        "picked",
        "picks",
        "pod",
        "shared",
        "states",
    )

    def __init__(self, node: NodeView, ledger: Ledger, pod: PreparedPod, features: Features) -> None:
        self.node = node
        self.pod = pod
        self.features = features
        self.devices: Sequence[DeviceView] = node.devices
        self.states: list[PoolState] = []
        exclusive = shared = 0
        for pool, offset in node.candidates:
            state = pool.current(ledger)
            self.states.append(state)
            exclusive |= state.exclusive << offset
            shared |= state.shared << offset
        # Devices that other pods hold as a whole; devices of which shares are held (by anyone).
        self.exclusive = exclusive
        self.shared: list[int] = [shared]
        self.picked: list[int] = [0]
        self.claim_picked = [0] * len(pod.claims)
        self.counts = [0] * len(pod.claims)
        self.constraints: list[list[State]] = [[None] * len(claim.constraints) for claim in pod.claims]
        self.picks: list[Pick] = []
        self._left: list[list[int] | None] = [None] * len(self.states)
        self._groups: list[dict[str, Groups | None] | None] = [None] * len(self.states)
        self._capacity: dict[int, dict[str, int]] = {}
        self._trail: list[tuple[Any, Any, Any]] = []

    def has_capacity(self, bit: int, ask: Ask) -> bool:
        """Whether the device can serve the request's capacity now."""
        device, features = self.devices[bit], self.features
        if needs_no_capacity(device, ask, features):
            return True
        return has_room(device, takes(device, ask, features), self.consumed(bit))

    # -- what picks change --------------------------------------------------------------------------------------------

    def in_use(self, bit: int, claim: int, ask: Ask) -> bool:
        """Whether the device is not to be had as a whole any more."""
        multi = self.features.consumable_capacity and self.devices[bit].multi
        if ask.admin:
            return not multi and bool(self.claim_picked[claim] >> bit & 1)
        return bool((self.exclusive | self.picked[0]) >> bit & 1)

    def pick(self, bit: int, claim: int, alternative: Alternative) -> Refusal:
        """Pick a device, or say why not (then nothing has changed)."""
        mark = len(self._trail)
        refusal = self._pick(bit, claim, alternative)
        if refusal:
            self._rewind(mark)
        return refusal

    def mark(self) -> tuple[int, int]:
        """A place to return to with ``undo``."""
        return len(self._trail), len(self.picks)

    def undo(self, mark: tuple[int, int]) -> None:
        """Undo all picks since the mark."""
        self._rewind(mark[0])
        del self.picks[mark[1] :]

    def left(self, pool: int) -> Sequence[int]:
        """The counters left in a pool."""
        mine = self._left[pool]
        return self.states[pool].left if mine is None else mine

    def groups(self, pool: int) -> dict[str, Groups | None]:
        """The compatibility groups in force on the counter sets of a pool."""
        mine = self._groups[pool]
        return self.states[pool].groups if mine is None else mine

    def counter_state(self) -> object:
        """What is left of counters and compatibility groups, for comparing two states of this attempt."""
        return tuple(
            (index, tuple(left), tuple(sorted((self._groups[index] or {}).items(), key=lambda item: item[0])))
            for index, left in enumerate(self._left)
            if left is not None
        )

    def consumed(self, bit: int) -> dict[str, int]:
        """What is taken of the capacities of a device, in nanos."""
        mine = self._capacity.get(bit)
        if mine is not None:
            return mine
        pool, offset = self.pool_of(bit)
        return self.states[pool].consumed.get(bit - offset, {})

    def pool_of(self, bit: int) -> tuple[int, int]:
        """The pool of a device (its place among the node's candidates) and its offset."""
        candidates = self.node.candidates
        for index in range(len(candidates) - 1, -1, -1):
            if candidates[index][1] <= bit and candidates[index][0].devices:
                return index, candidates[index][1]
        raise IndexError(bit)

    def values(self, attribute: str, alternative: Alternative, bit: int) -> ValueSet | None:
        """The values of an attribute for constraints: a derived one of that name comes before the published one."""
        pool, offset = self.pool_of(bit)
        slice_, start = self.span(pool, bit - offset)
        selection = alternative.ask.selection
        if selection.derived:
            verdict = selection.verdict(slice_, bit - offset - start)
            for name, values in verdict.derived:
                if name == attribute:
                    return values
        return slice_.value_column(attribute, self.features.list_attributes)[bit - offset - start]

    def span(self, pool: int, local: int) -> tuple[SliceView, int]:
        """The slice of a device of a pool, and the place of its first device."""
        spans = self.node.candidates[pool][0].spans
        for slice_, start in reversed(spans):
            if start <= local and slice_.devices:
                return slice_, start
        raise IndexError(local)

    def _pick(self, bit: int, claim: int, alternative: Alternative) -> Refusal:
        ask = alternative.ask
        if self.in_use(bit, claim, ask):
            return Refusal.IN_USE
        device = self.devices[bit]
        features = self.features
        multi = features.consumable_capacity and device.multi
        if device.consumes is not None:
            if not features.partitionable:
                return Refusal.COUNTERS
            # The first share pays for the device, further ones don't.
            if not (multi and self.shared[0] >> bit & 1) and not self._charge(bit, device):
                return Refusal.COUNTERS
        if not tolerated(device, ask, features):
            return Refusal.TAINT
        if alternative.constraints:
            states = self.constraints[claim]
            constraints = self.pod.claims[claim].constraints
            for index in alternative.constraints:
                constraint = constraints[index]
                state = added(states[index], self.values(constraint.attribute, alternative, bit), constraint.distinct)
                if state is None:
                    return Refusal.CONSTRAINT
                self._set(states, index, state)
        consumed = None
        if not needs_no_capacity(device, ask, features):
            taken = takes(device, ask, features)
            if taken is None or not has_room(device, taken, self.consumed(bit)):
                return Refusal.CAPACITY
            if multi:
                consumed = taken
                total = dict(self.consumed(bit))
                for key, quantity in taken.items():
                    total[key] = total.get(key, 0) + quantity.nano
                self._put(self._capacity, bit, total)
                self._set(self.shared, 0, self.shared[0] | 1 << bit)
        if not multi:
            self._set(self.picked, 0, self.picked[0] | 1 << bit)
            self._set(self.claim_picked, claim, self.claim_picked[claim] | 1 << bit)
        self._set(self.counts, claim, self.counts[claim] + 1)
        self.picks.append(Pick(bit, claim, alternative, consumed))
        return Refusal.NONE

    def _charge(self, bit: int, device: DeviceView) -> bool:
        pool, _ = self.pool_of(bit)
        state = self.states[pool]
        use = device.consumes
        if state.overcommitted or use is None:
            return False
        need = self.node.candidates[pool][0].needs[use]
        left = self.left(pool)
        if not all(left[index] >= amount for index, amount in need) or not groups_allow(self.groups(pool), use):
            return False
        mine = self._left[pool]
        if mine is None:
            mine = self._left[pool] = list(state.left)
        for index, amount in need:
            self._set(mine, index, mine[index] - amount)
        groups = dict(self.groups(pool))
        join_groups(groups, use)
        self._set(self._groups, pool, groups)
        return True

    def _set(self, container: list[Any], key: int, value: Any) -> None:
        self._trail.append((container, key, container[key]))
        container[key] = value

    def _put(self, container: dict[int, Any], key: int, value: Any) -> None:
        self._trail.append((container, key, container.get(key, _MISSING)))
        container[key] = value

    def _rewind(self, mark: int) -> None:
        trail = self._trail
        while len(trail) > mark:
            container, key, old = trail.pop()
            if old is _MISSING:
                del container[key]
            else:
                container[key] = old
