"""A ResourceSlice prepared for searching, once per version of the slice.

What is asked of a device again and again (its identity, what it consumes, whether it can be shared) is worked out when
the slice arrives; what is asked rarely (a column of attribute values) when it is first asked for. All of it hangs on
the slice's view and dies with it: a changed slice is a new view, nothing is updated in place.

Sets of devices of a slice are Python ints used as bit masks, bit i for the device at place i.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from kubedra.allocation.amounts import needed
from kubedra.allocation.capacity import CapacityTable
from kubedra.allocation.columns import Columns, ValueSet, attribute_error, pattern_of
from kubedra.allocation.taints import rule_matches
from kubedra.api.resource_v1 import Device, DeviceAttribute, DeviceTaint, DeviceTaintRule, ResourceSlice
from kubedra.base.quantity import Quantity

DeviceId: TypeAlias = tuple[str, str, str]
PoolId: TypeAlias = tuple[str, str]


class CounterUse:
    """What one device consumes, in the order of the API: shared by all devices that consume the same."""

    __slots__ = ("groups", "items")

    def __init__(self, device: Device) -> None:
        self.items = tuple(
            ((entry.counter_set, name), needed(counter.value).nano)
            for entry in device.consumes_counters
            for name, counter in entry.counters.items()
        )
        self.groups = tuple(
            (entry.counter_set, frozenset(entry.compatibility_groups)) for entry in device.consumes_counters
        )


class CounterUses:
    """Interns CounterUse objects, so that equal consumption is the same object (MIG: 160 of 80,000)."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], CounterUse] = {}

    def of(self, device: Device) -> CounterUse | None:
        """The shared description of what a device consumes; None if it consumes nothing."""
        if not device.consumes_counters:
            return None
        key = tuple(
            (entry.counter_set, entry.compatibility_groups, *((n, c.value) for n, c in entry.counters.items()))
            for entry in device.consumes_counters
        )
        use = self._known.get(key)
        if use is None:
            if len(self._known) > 65536:
                self._known.clear()
            use = self._known[key] = CounterUse(device)
        return use


class DeviceView:
    """One device: its identity and what the candidate test needs of it."""

    __slots__ = ("_capacity", "consumes", "id", "multi", "raw", "slice", "taints", "takes")

    def __init__(self, raw: Device, slice_: SliceView, consumes: CounterUse | None) -> None:
        self.raw = raw
        self.slice = slice_
        self.id: DeviceId = (slice_.driver, slice_.pool, raw.name)
        self.consumes = consumes
        self.multi = bool(raw.allow_multiple_allocations)
        self.taints: tuple[DeviceTaint, ...] = raw.taints
        self._capacity: CapacityTable | None = None
        # What picks take, by what is asked; filled by candidates.py.
        self.takes: dict[object, dict[str, Quantity] | None] | None = None

    @property
    def name(self) -> str:
        return self.raw.name

    @property
    def capacity(self) -> CapacityTable:
        """The parsed capacities."""
        table = self._capacity
        if table is None:
            table = self._capacity = CapacityTable(self.raw.capacity)
        return table

    def __str__(self) -> str:
        return "/".join(self.id)

    def __repr__(self) -> str:
        return f"DeviceView({self})"


class SliceView:
    """One version of a ResourceSlice."""

    __slots__ = (
        "all_mask",
        "bad",
        "bound",
        "columns",
        "consuming",
        "devices",
        "driver",
        "generation",
        "has_bindings",
        "has_groups",
        "key",
        "limited",
        "number",
        "per_device",
        "pool",
        "raw",
        "rows",
        "single_verdicts",
        "tainted",
    )

    def __init__(
        self, raw: ResourceSlice, uses: CounterUses, columns: Columns, rules: Iterable[DeviceTaintRule] = ()
    ) -> None:
        spec = raw.spec
        self.raw = raw
        self.driver = spec.driver
        self.pool = spec.pool.name
        self.key: PoolId = (spec.driver, spec.pool.name)
        self.generation = spec.pool.generation
        self.per_device = bool(spec.per_device_node_selection)
        self.devices = tuple(DeviceView(device, self, uses.of(device)) for device in spec.devices)
        self.all_mask = (1 << len(self.devices)) - 1
        self.has_bindings = any(device.binding_conditions for device in spec.devices)
        self.has_groups = any(e.compatibility_groups for d in spec.devices for e in d.consumes_counters)
        for rule in rules:
            self._taint(rule)
        # Devices with taints, with binding conditions, and those whose capacity always has to be looked at.
        self.tainted = self.bound = self.limited = self.consuming = 0
        for index, device in enumerate(self.devices):
            bit = 1 << index
            if device.taints:
                self.tainted |= bit
            if device.raw.binding_conditions:
                self.bound |= bit
            if device.consumes is not None:
                self.consuming |= bit
            if device.multi or any(item.request_policy for item in device.raw.capacity.values()):
                self.limited |= bit
        self.number, self.columns = columns.add(spec.driver, spec.devices)
        # Filled by selection.py, for selectors whose answers can't be shared with other slices:
        self.rows: dict[object, object] = {}
        self.single_verdicts: dict[tuple[object, int], object] = {}
        self.bad: dict[int, str] | None = None if any(c.bad for c in self.columns.values()) else {}

    def _taint(self, rule: DeviceTaintRule) -> None:
        for device in self.devices:
            if rule_matches(rule, *device.id):
                device.taints = (*device.taints, rule.spec.taint)

    def limit_caches(self) -> None:
        """Forget what was derived for selectors of long ago, so that ever new selectors don't eat the memory."""
        if len(self.rows) >= 48:
            self.rows.clear()
            self.single_verdicts.clear()

    @property
    def name(self) -> str:
        return self.raw.metadata.name

    def __repr__(self) -> str:
        return f"SliceView({self.name}, {self.driver}/{self.pool} generation {self.generation})"

    def bad_devices(self, lists_allowed: bool) -> Mapping[int, str]:
        """Devices with an attribute that can't be read at all, and why: every selector fails on them."""
        if self.bad is None:
            found = {}
            for index, device in enumerate(self.devices):
                for name, attribute in device.raw.attributes.items():
                    error = attribute_error(name, attribute, lists_allowed)
                    if error:
                        found[index] = error
                        break
            self.bad = found
        return self.bad

    def column(self, domain: str, name: str) -> tuple[DeviceAttribute | None, ...]:
        """The attribute that CEL sees as ``device.attributes[domain].name``, for each device."""
        column = self.columns.get(("attribute", domain, name))
        return column.values if column is not None else (None,) * len(self.devices)  # type: ignore[return-value]

    def capacity_column(self, domain: str, name: str) -> tuple[str | None, ...]:
        """The value of the capacity that CEL sees as ``device.capacity[domain].name``, for each device."""
        column = self.columns.get(("capacity", domain, name))
        return column.values if column is not None else (None,) * len(self.devices)  # type: ignore[return-value]

    def pattern(self, attribute: str, lists_allowed: bool) -> tuple[int, ...]:
        """Which devices have equal values of an attribute; see ``columns.pattern_of``."""
        domain, slash, name = attribute.partition("/")
        column = self.columns.get(("attribute", domain, name)) if slash else None
        if column is None:
            return pattern_of(self.value_column(attribute, lists_allowed))
        return column.pattern(lists_allowed)

    def value_column(self, attribute: str, lists_allowed: bool) -> tuple[ValueSet | None, ...]:
        """The values a constraint compares, for each device; None where the device lacks the attribute."""
        domain, slash, name = attribute.partition("/")
        if not slash:
            # Validation refuses such a constraint; what is stored finds the attribute that is spelled like it.
            domain, name = self.driver, attribute
        column = self.columns.get(("attribute", domain, name))
        return column.value_sets(lists_allowed) if column is not None else (None,) * len(self.devices)


def bits_of(mask: int) -> Iterator[int]:
    """The places of the set bits, lowest first."""
    if mask.bit_length() > 256:
        # Arithmetic on long integers costs their length for each bit; searching their digits doesn't.
        digits = bin(mask)[:1:-1]
        place = digits.find("1")
        while place >= 0:
            yield place
            place = digits.find("1", place + 1)
        return
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
