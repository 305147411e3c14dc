"""Pools as a node sees them, and what is left in them.

A ``PoolView`` is the published side: which slices of a pool count on a node, whether the pool is complete and valid,
its devices in search order and its counters. It is shared by all nodes that see the same slices.
A ``PoolState`` is the other side: what the ledger leaves of it. It is derived when first needed and kept until the
pool's version in the ledger changes.

The rules of completeness look odd and are upstream's: slices that are relevant for the node decide first, and only if
their number is not the announced one is the rest of the cluster consulted (spec/allocator.md 3.1).

Upstream counterpart: pools_experimental.go. Not copied: counters keyed by the name of the pool alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from kubedra.allocation.amounts import offered
from kubedra.allocation.devices import CounterUse, DeviceView, PoolId, SliceView
from kubedra.allocation.features import Features
from kubedra.allocation.ledger import Ledger, PoolUse
from kubedra.base.node_selectors import matches_node_selector

Completeness = Literal["complete", "incomplete", "invalid"]
Need = tuple[tuple[int, int], ...]
# Compatibility groups of the devices that use a counter set: a set of names (empty: they name none), or None for
# devices that contradict each other already.
Groups = frozenset[str]


class _Fingerprint:
    __slots__ = ("_hash", "_parts")

    def __init__(self, parts: tuple[object, ...]) -> None:
        self._parts = parts
        self._hash = hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Fingerprint) and self._parts == other._parts)


class PoolView:
    """A pool as seen from the nodes for which the same slices are relevant."""

    __slots__ = (
        "_caches",
        "bits",
        "counter_index",
        "devices",
        "elsewhere",
        "expected",
        "found",
        "generation",
        "has_bindings",
        "has_shared",
        "key",
        "needs",
        "problem",
        "spans",
        "state",
        "state_of",
        "totals",
    )

    def __init__(
        self,
        relevant: Sequence[SliceView],
        others: Sequence[SliceView],
        found: int,
        complete: bool,
        partitionable: bool = True,
    ) -> None:
        first = relevant[0]
        self.key: PoolId = first.key
        self.generation = first.generation
        self.expected = first.raw.spec.pool.resource_slice_count
        self.found = found
        self.state: Completeness = "complete" if complete else "incomplete"
        self.problem = "" if complete else f"{found}/{self.expected} slices of generation {self.generation}"
        self.devices: tuple[DeviceView, ...] = ()
        self.elsewhere: tuple[DeviceView, ...] = ()
        self.spans: tuple[tuple[SliceView, int], ...] = ()
        self.bits: dict[str, int] = {}
        self.counter_index: dict[tuple[str, str], int] = {}
        self.totals: tuple[int, ...] = ()
        self.needs: dict[CounterUse, Need] = {}
        self.has_bindings = any(slice_.has_bindings for slice_ in relevant)
        self.has_shared = any(device.multi for slice_ in relevant for device in slice_.devices)
        self.state_of: tuple[Ledger, int, PoolState] | None = None
        self._caches: dict[object, object] = {}
        if complete:
            self._fill(sorted(relevant, key=lambda s: s.name), others, partitionable)

    def _fill(self, relevant: list[SliceView], others: Sequence[SliceView], partitionable: bool) -> None:
        devices: list[DeviceView] = []
        spans = []
        counters: dict[tuple[str, str], int] = {}
        sets: set[str] = set()
        for slice_ in relevant:
            if slice_.raw.spec.shared_counters:
                continue
            spans.append((slice_, len(devices)))
            for device in slice_.devices:
                if device.name in self.bits:
                    return self._spoil(f"duplicate device name {device.name}")
                self.bits[device.name] = len(devices)
                devices.append(device)
        elsewhere = []
        for slice_ in (*relevant, *sorted(others, key=lambda s: s.name)):
            for counter_set in slice_.raw.spec.shared_counters:
                if counter_set.name in sets:
                    return self._spoil(f"duplicate counter set name {counter_set.name}")
                sets.add(counter_set.name)
                for name, counter in counter_set.counters.items():
                    counters[(counter_set.name, name)] = offered(counter.value).nano
        for slice_ in others:
            if not slice_.raw.spec.shared_counters:
                elsewhere += [device for device in slice_.devices if device.consumes is not None]
        self.counter_index = {key: index for index, key in enumerate(counters)}
        self.totals = tuple(counters.values())
        for device in (*devices, *elsewhere):
            use = device.consumes
            if use is not None and partitionable and use not in self.needs:
                problem = self._resolve(use, sets)
                if problem:
                    return self._spoil(problem)
        self.devices, self.elsewhere, self.spans = tuple(devices), tuple(elsewhere), tuple(spans)
        return None

    def _resolve(self, use: CounterUse, sets: set[str]) -> str:
        for set_name, _ in use.groups:
            if set_name not in sets:
                return f"counter set {set_name} not found"
        need: dict[int, int] = {}
        for key, amount in use.items:
            index = self.counter_index.get(key)
            if index is None:
                return f"counter {key[1]} not found in counter set {key[0]}"
            need[index] = need.get(index, 0) + amount
        self.needs[use] = tuple(need.items())
        return ""

    def _spoil(self, problem: str) -> None:
        self.state, self.problem = "invalid", problem
        self.bits, self.needs = {}, {}

    def cache(self, kind: object) -> dict[object, object]:
        """A dictionary of things derived from this view, for the modules that derive them."""
        return self._caches.setdefault(kind, {})  # type: ignore[return-value]

    def fingerprint(self) -> object:
        """What the devices consume and can share, without their names, for comparing pools of different nodes."""
        known = self.cache("fingerprint")
        if None not in known:
            devices = tuple(
                (
                    device.consumes and (device.consumes.items, device.consumes.groups),
                    tuple((k, q.nano, repr(i.request_policy)) for k, q, i in device.capacity.entries)
                    if device.multi
                    else None,
                )
                for device in self.devices
            )
            # The hash is worked out once; equality still compares everything.
            known[None] = _Fingerprint((devices, tuple(self.counter_index), self.totals))
        return known[None]

    def current(self, ledger: Ledger) -> PoolState:
        """What the ledger leaves of the pool."""
        use = ledger.use_of(self.key)
        known = self.state_of
        if known is not None and known[0] is ledger and known[1] == use.version:
            return known[2]
        state = PoolState(self, use)
        self.state_of = (ledger, use.version, state)
        return state

    def __repr__(self) -> str:
        return f"PoolView({self.key[0]}/{self.key[1]}, generation {self.generation}, {self.state})"


class PoolState:
    """What is left of a pool: bit masks over the devices of its view, counters, groups, consumed capacity."""

    __slots__ = ("consumed", "exclusive", "fitting", "groups", "left", "overcommitted", "shared", "views")

    def __init__(self, view: PoolView, use: PoolUse) -> None:
        bits = view.bits
        exclusive = shared = 0
        self.consumed: dict[int, dict[str, int]] = {}
        for name in use.exclusive:
            bit = bits.get(name)
            if bit is not None:
                exclusive |= 1 << bit
        for name in use.shares:
            bit = bits.get(name)
            if bit is not None:
                shared |= 1 << bit
                self.consumed[bit] = use.consumed(name)
                if not view.devices[bit].multi:
                    # It could be shared once: those who hold shares of it still do.
                    exclusive |= 1 << bit
        self.exclusive = exclusive
        self.shared = shared
        self.groups: dict[str, Groups | None] = {}
        self.left: tuple[int, ...] = view.totals
        self.fitting = (1 << len(view.devices)) - 1
        self.overcommitted = False
        # Candidate masks by what is asked; filled by candidates.py.
        self.views: dict[object, int] = {}
        if view.needs:
            self._count(view, use)

    def _count(self, view: PoolView, use: PoolUse) -> None:
        left = list(view.totals)
        taken = use.exclusive.keys() | use.shares.keys()
        if taken:
            for device in (*view.devices, *view.elsewhere):
                if device.consumes is not None and device.name in taken:
                    for index, amount in view.needs[device.consumes]:
                        left[index] -= amount
                    join_groups(self.groups, device.consumes)
        self.left = tuple(left)
        self.overcommitted = any(amount < 0 for amount in left)
        verdicts = {use_: self._fits(need, use_) for use_, need in view.needs.items()}
        for bit, device in enumerate(view.devices):
            # A share pays the counters of its device once: further shares need none.
            if device.consumes is not None and not verdicts[device.consumes] and not self.shared >> bit & 1:
                self.fitting &= ~(1 << bit)

    def _fits(self, need: Need, use: CounterUse) -> bool:
        # An over-committed set keeps all consuming devices of the pool back, also those that use another set.
        if self.overcommitted:
            return False
        left = self.left
        return all(left[index] >= amount for index, amount in need) and groups_allow(self.groups, use)


def groups_allow(groups: Mapping[str, Groups | None], use: CounterUse) -> bool:
    """Whether a device may join those that use its counter sets."""
    for set_name, mine in use.groups:
        if set_name not in groups:
            continue
        present = groups[set_name]
        if present is None or bool(present) != bool(mine) or (mine and not mine & present):
            return False
    return True


def join_groups(groups: dict[str, Groups | None], use: CounterUse) -> None:
    """Add a device to those that use its counter sets."""
    for set_name, mine in use.groups:
        if set_name not in groups:
            groups[set_name] = mine
            continue
        present = groups[set_name]
        if present is None or bool(present) != bool(mine) or (mine and not mine & present):
            groups[set_name] = None
        else:
            groups[set_name] = present & mine


def is_relevant(slice_: SliceView, labels: Mapping[str, str], node: str) -> bool:
    """Whether a slice without a node name has devices for this node."""
    spec = slice_.raw.spec
    if spec.all_nodes:
        return True
    if spec.node_selector is not None:
        return matches_node_selector(spec.node_selector, labels, node)
    if spec.per_device_node_selection:
        return any(device_on_node(device, labels, node) for device in slice_.devices)
    return False


def device_on_node(device: DeviceView, labels: Mapping[str, str], node: str) -> bool:
    """The node selection of one device, for slices with perDeviceNodeSelection."""
    raw = device.raw
    if raw.node_name is not None:
        return raw.node_name == node
    if raw.all_nodes:
        return True
    return raw.node_selector is not None and matches_node_selector(raw.node_selector, labels, node)


def usable(slice_: SliceView, features: Features) -> bool:
    """Whether the allocator looks at a slice at all."""
    spec = slice_.raw.spec
    return features.partitionable or not (spec.per_device_node_selection or spec.shared_counters)
