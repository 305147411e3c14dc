"""A ResourceSlice prepared for searching, once per version of the slice.

What is asked of a device again and again (its identity, what it consumes, whether it can be shared) is worked out when
the slice arrives; what is asked rarely (a column of attribute values) when it is first asked for. All of it hangs on
the slice's view and dies with it: a changed slice is a new view, nothing is updated in place.

Sets of devices of a slice are Python ints used as bit masks, bit i for the device at place i.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kubedra.allocation.amounts import needed
from kubedra.allocation.capacity import CapacityTable
from kubedra.allocation.taints import rule_matches
from kubedra.api.resource_v1 import Device, DeviceAttribute, DeviceTaint, DeviceTaintRule, ResourceSlice
from kubedra.base.quantity import Quantity
from kubedra.base.semver import Semver, SemverError

DeviceId: TypeAlias = tuple[str, str, str]
PoolId: TypeAlias = tuple[str, str]
# An attribute's value as a set: a scalar is a set of one. The tag keeps 1, True and "1" apart.
ValueSet: TypeAlias = frozenset[tuple[str, object]]


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
        "columns",
        "devices",
        "driver",
        "generation",
        "has_bindings",
        "has_groups",
        "key",
        "partitions",
        "per_device",
        "pool",
        "raw",
        "rows",
        "single_verdicts",
        "value_columns",
    )

    def __init__(self, raw: ResourceSlice, uses: CounterUses, rules: Iterable[DeviceTaintRule] = ()) -> None:
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
        # Filled by selection.py and constraints.py when first needed:
        self.columns: dict[tuple[str, str, str], tuple[object, ...]] = {}
        self.partitions: dict[object, tuple[tuple[tuple[object, ...], int, int], ...]] = {}
        self.rows: dict[object, object] = {}
        self.single_verdicts: dict[tuple[object, int], object] = {}
        self.value_columns: dict[tuple[str, bool], tuple[ValueSet | None, ...]] = {}
        self.bad: dict[int, str] | None = None

    def _taint(self, rule: DeviceTaintRule) -> None:
        for device in self.devices:
            if rule_matches(rule, *device.id):
                device.taints = (*device.taints, rule.spec.taint)

    def limit_caches(self) -> None:
        """Forget what was derived for selectors of long ago, so that ever new selectors don't eat the memory."""
        if len(self.rows) >= 48 or len(self.partitions) >= 48 or len(self.columns) >= 128:
            self.rows.clear()
            self.partitions.clear()
            self.columns.clear()
            self.single_verdicts.clear()
        if len(self.value_columns) >= 48:
            self.value_columns.clear()

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
        key = ("attribute", domain, name)
        column = self.columns.get(key)
        if column is None:
            full = f"{domain}/{name}"
            if domain == self.driver:
                # Where a device has both spellings CEL sees the qualified one.
                column = tuple(d.raw.attributes.get(full) or d.raw.attributes.get(name) for d in self.devices)
            else:
                column = tuple(d.raw.attributes.get(full) for d in self.devices)
            self.columns[key] = column
        return column  # type: ignore[return-value]

    def capacity_column(self, domain: str, name: str) -> tuple[str | None, ...]:
        """The value of the capacity that CEL sees as ``device.capacity[domain].name``, for each device."""
        key = ("capacity", domain, name)
        column = self.columns.get(key)
        if column is None:
            full = f"{domain}/{name}"
            rows = []
            for device in self.devices:
                capacity = device.raw.capacity
                item = (capacity.get(full) or capacity.get(name)) if domain == self.driver else capacity.get(full)
                rows.append(None if item is None else item.value)
            column = self.columns[key] = tuple(rows)
        return column  # type: ignore[return-value]

    def value_column(self, attribute: str, lists_allowed: bool) -> tuple[ValueSet | None, ...]:
        """The values a constraint compares, for each device; None where the device lacks the attribute."""
        key = (attribute, lists_allowed)
        column = self.value_columns.get(key)
        if column is None:
            domain, _, bare = attribute.partition("/")
            own = domain == self.driver
            rows = []
            for device in self.devices:
                value = device.raw.attributes.get(attribute)
                if value is None and own:
                    value = device.raw.attributes.get(bare)
                rows.append(None if value is None else value_set(value, lists_allowed))
            column = self.value_columns[key] = tuple(rows)
        return column


def attribute_error(name: str, attribute: DeviceAttribute, lists_allowed: bool) -> str | None:
    """Why an attribute can't be read, in upstream's words; None if it can."""
    if attribute.version is not None:
        try:
            Semver.parse(attribute.version)
        except SemverError as error:
            return f"attribute {name}: parse semantic version: {error}"
        return None
    if attribute.string is not None or attribute.int_ is not None or attribute.bool_ is not None:
        return None
    if lists_allowed and (attribute.strings or attribute.ints or attribute.bools):
        return None
    if lists_allowed and attribute.versions:
        for version in attribute.versions:
            try:
                Semver.parse(version)
            except SemverError as error:
                return f"attribute {name}: parse semantic version: {error}"
        return None
    return f"attribute {name}: unsupported attribute value"


def value_set(attribute: DeviceAttribute, lists_allowed: bool) -> ValueSet | None:
    """An attribute as a set of tagged values (versions compare as text); None if it has no usable value."""
    if attribute.string is not None:
        return frozenset((("string", attribute.string),))
    if attribute.int_ is not None:
        return frozenset((("int", attribute.int_),))
    if attribute.bool_ is not None:
        return frozenset((("bool", attribute.bool_),))
    if attribute.version is not None:
        return frozenset((("version", attribute.version),))
    if lists_allowed:
        for tag, values in (
            ("string", attribute.strings),
            ("int", attribute.ints),
            ("bool", attribute.bools),
            ("version", attribute.versions),
        ):
            if values:
                return frozenset((tag, value) for value in values)
    return None
