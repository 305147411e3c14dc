"""The attributes and capacities of slices, column by column, each different column kept once.

Most nodes of a cluster carry the same cards: the column "model" of their slices is the same tuple of values. Such
columns are one object for all slices, and each knows the slices it occurs in. So a selector that nobody used before is
evaluated once for each combination of columns it reads, however many nodes there are, and the nodes that it leaves
without a device are known without looking at them.

What differs from slice to slice (uuids) is one object for each slice, and costs memory in proportion.

Upstream has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kubedra.api.resource_v1 import Device, DeviceAttribute
from kubedra.base.semver import Semver, SemverError

# ("attribute" or "capacity", domain, name); FRAME for what every selection depends on.
Key: TypeAlias = tuple[str, str, str]
FRAME: Key = ("frame", "", "")
# An attribute's value as a set: a scalar is a set of one. The tag keeps 1, True and "1" apart.
ValueSet: TypeAlias = frozenset[tuple[str, object]]


class Column:
    """One column: a value for each device of a slice (None where it lacks one), and the slices it occurs in."""

    __slots__ = ("_pattern", "_value_sets", "bad", "slices", "uniform", "values")

    def __init__(self, values: tuple[object, ...], bad: bool, uniform: bool) -> None:
        self.values = values
        self.bad = bad
        # Whether all devices have the same value.
        self.uniform = uniform
        self.slices = 0
        self._value_sets: tuple[ValueSet | None, ...] | None = None
        self._pattern: tuple[int, ...] | None = None

    def pattern(self, lists_allowed: bool) -> tuple[int, ...]:
        """Which devices have equal values; see ``pattern_of``."""
        if self._pattern is None:
            self._pattern = pattern_of(self.value_sets(lists_allowed))
        return self._pattern

    def value_sets(self, lists_allowed: bool) -> tuple[ValueSet | None, ...]:
        """The values as constraints compare them."""
        sets = self._value_sets
        if sets is None:
            sets = self._value_sets = tuple(
                value_set(value, lists_allowed) if isinstance(value, DeviceAttribute) else None for value in self.values
            )
        return sets


class Columns:
    """All columns of an inventory. Slices are known by numbers, which are used again."""

    def __init__(self, lists_convert: bool) -> None:
        self._lists_convert = lists_convert
        self._columns: dict[Key, dict[tuple[object, ...], Column]] = {}
        self._keys: dict[tuple[str, str, str], Key] = {}
        self._free: list[int] = []
        self._next = 0
        # Slices in use, and those with a device that no selector can look at.
        self.slices = 0
        self.bad_slices = 0

    def add(self, driver: str, devices: Sequence[Device]) -> tuple[int, dict[Key, Column]]:
        """Enter the devices of a slice; returns the slice's number and its columns."""
        if self._free:
            number = self._free.pop()
        else:
            number, self._next = self._next, self._next + 1
        count = len(devices)
        rows: dict[Key, list[object]] = {}
        qualified: set[tuple[Key, int]] = set()
        for index, device in enumerate(devices):
            for name, attribute in device.attributes.items():
                self._put(rows, qualified, ("attribute", driver, name), index, count, attribute)
            for name, capacity in device.capacity.items():
                self._put(rows, qualified, ("capacity", driver, name), index, count, capacity.value)
        rows[FRAME] = [driver, *(bool(device.allow_multiple_allocations) for device in devices)]
        columns = {key: self._intern(key, tuple(values), number) for key, values in rows.items()}
        bit = 1 << number
        self.slices |= bit
        if any(column.bad for column in columns.values()):
            self.bad_slices |= bit
        return number, columns

    def remove(self, number: int, columns: dict[Key, Column]) -> None:
        """Take a slice out again."""
        bit = 1 << number
        self.slices &= ~bit
        self.bad_slices &= ~bit
        for key, column in columns.items():
            column.slices &= ~bit
            if not column.slices:
                known = self._columns[key]
                known.pop(column.values, None)
                if not known:
                    del self._columns[key]
        self._free.append(number)

    def of(self, key: Key) -> Iterable[Column]:
        """The different columns under a key."""
        known = self._columns.get(key)
        return known.values() if known is not None else ()

    def count(self, key: Key) -> int:
        """How many different columns there are under a key."""
        return len(self._columns.get(key, ()))

    def _put(
        self,
        rows: dict[Key, list[object]],
        qualified: set[tuple[Key, int]],
        spelled: tuple[str, str, str],
        index: int,
        count: int,
        value: object,
    ) -> None:
        key = self._keys.get(spelled)
        kind, driver, name = spelled
        if key is None:
            domain, slash, rest = name.partition("/")
            key = (kind, domain, rest) if slash else (kind, driver, name)
            if len(self._keys) > 10000:
                self._keys.clear()
            self._keys[spelled] = key
        row = rows.get(key)
        if row is None:
            row = rows[key] = [None] * count
        # Where a device has both spellings the qualified one is seen.
        if key[1] == driver:
            if "/" in name:
                qualified.add((key, index))
            elif (key, index) in qualified:
                return
        row[index] = value

    def _intern(self, key: Key, values: tuple[object, ...], number: int) -> Column:
        known = self._columns.get(key)
        if known is None:
            known = self._columns[key] = {}
        column = known.get(values)
        if column is None:
            bad = key[0] == "attribute" and any(
                isinstance(value, DeviceAttribute) and attribute_error("", value, self._lists_convert) is not None
                for value in values
            )
            compared = values[1:] if key is FRAME else values
            column = known[values] = Column(
                values, bad, compared.count(compared[0]) == len(compared) if compared else True
            )
        column.slices |= 1 << number
        return column


def pattern_of(column: Iterable[ValueSet | None]) -> tuple[int, ...]:
    """Which places of a column have equal values, without the values: numbers in order of appearance.

    -1 stands for no value; the members of a list are told apart by their numbers, behind a number that tells how many.
    """
    numbers: dict[object, int] = {}
    pattern: list[int] = []
    for values in column:
        if not values:
            pattern.append(-1)
        elif len(values) == 1:
            (member,) = values
            pattern.append(numbers.setdefault(member, len(numbers)))
        else:
            members = sorted(numbers.setdefault(member, len(numbers)) for member in sorted(values, key=repr))
            pattern += [-2 - len(members), *members]
    return tuple(pattern)


def attribute_error(name: str, attribute: DeviceAttribute, lists_allowed: bool) -> str | None:
    """Why an attribute can't be read, in upstream's words; None if it can."""
    if attribute.string is not None or attribute.int_ is not None or attribute.bool_ is not None:
        return None
    if attribute.version is not None:
        return _version_error(name, (attribute.version,))
    if lists_allowed and (attribute.strings or attribute.ints or attribute.bools):
        return None
    if lists_allowed and attribute.versions:
        return _version_error(name, attribute.versions)
    return f"attribute {name}: unsupported attribute value"


def _version_error(name: str, versions: Iterable[str]) -> str | None:
    for version in versions:
        try:
            Semver.parse(version)
        except SemverError as error:
            return f"attribute {name}: parse semantic version: {error}"
    return None


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
