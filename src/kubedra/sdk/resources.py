"""What a driver publishes, and how it is cut into ResourceSlices.

Pure: pools in, slices and reasons out. An author hands over devices in order of priority; the limits of a slice (128
devices, 64 when one of them has taints, counters or list attributes, 8 counter sets) are ours to keep, so a driver
with 129 devices works. A device with one bad attribute loses the attribute and not the whole slice. Upstream
counterpart: k8s.io/dynamic-resource-allocation/resourceslice, whose callers split by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubedra.api import core_v1, resource_v1
from kubedra.base import names
from kubedra.base.quantity import Quantity, QuantityError
from kubedra.base.semver import Semver, SemverError

DEVICES_PER_SLICE = 128
HEAVY_DEVICES_PER_SLICE = 64
COUNTER_SETS_PER_SLICE = 8
LONGEST_VALUE = 64
MOST_ATTRIBUTES = 32


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """The devices of one pool, and which nodes reach them: exactly one of the four node fields is set.

    ``generation`` is only for drivers that number their pools themselves; the publisher counts otherwise.
    """

    devices: tuple[resource_v1.Device, ...] = ()
    shared_counters: tuple[resource_v1.CounterSet, ...] = ()
    node_name: str = ""
    node_selector: core_v1.NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    generation: int = 0


class SliceContent(msgspec.Struct, frozen=True):
    """What distinguishes the slices of a pool: devices, or counter sets."""

    devices: tuple[resource_v1.Device, ...] = ()
    shared_counters: tuple[resource_v1.CounterSet, ...] = ()


def text(value: str) -> resource_v1.DeviceAttribute:
    """Return a string attribute."""
    return resource_v1.DeviceAttribute(string=value)


def number(value: int) -> resource_v1.DeviceAttribute:
    """Return an integer attribute."""
    return resource_v1.DeviceAttribute(int_=value)


def flag(value: bool) -> resource_v1.DeviceAttribute:
    """Return a boolean attribute."""
    return resource_v1.DeviceAttribute(bool_=value)


def version(value: str) -> resource_v1.DeviceAttribute:
    """Return a version attribute; the text must be a semantic version (three numbers)."""
    return resource_v1.DeviceAttribute(version=value)


def device(
    name: str, attributes: Mapping[str, str | int | bool | resource_v1.DeviceAttribute], **capacity: str
) -> resource_v1.Device:
    """Return a device from plain Python values: ``device("gpu-0", {"model": "x"}, memory="80Gi")``."""
    return resource_v1.Device(
        name=name,
        attributes={key: _attribute(value) for key, value in attributes.items()},
        capacity={key: resource_v1.DeviceCapacity(value=value) for key, value in capacity.items()},
    )


def _attribute(value: str | int | bool | resource_v1.DeviceAttribute) -> resource_v1.DeviceAttribute:
    if isinstance(value, resource_v1.DeviceAttribute):
        return value
    if isinstance(value, bool):
        return flag(value)
    return number(value) if isinstance(value, int) else text(value)


def pool_problems(name: str, pool: Pool) -> list[str]:
    """Return what makes a pool unusable as a whole, in the words of the upstream library where it has them."""
    problems = []
    chosen = (pool.node_name != "") + (pool.node_selector is not None)
    if chosen + pool.all_nodes + pool.per_device_node_selection != 1:
        problems.append(
            f'pool "{name}": exactly one of node_name, node_selector, all_nodes, per_device_node_selection is required'
        )
    sets: dict[str, resource_v1.CounterSet] = {}
    for counters in pool.shared_counters:
        if counters.name in sets:
            problems.append(f'found duplicate counter set "{counters.name}" in pool "{name}"')
        sets[counters.name] = counters
    seen: set[str] = set()
    for entry in pool.devices:
        if entry.name in seen:
            problems.append(f'found duplicate device "{entry.name}" in pool "{name}"')
        seen.add(entry.name)
        if names.dns_label(entry.name):
            problems.append(f'device "{entry.name}" in pool "{name}": {names.dns_label(entry.name)[0]}')
        for consumed in entry.consumes_counters:
            known = sets.get(consumed.counter_set)
            if known is None:
                problems.append(f'counter set "{consumed.counter_set}" referenced by device "{entry.name}" not found')
                continue
            problems.extend(
                f'counter "{counter}" referenced by device "{entry.name}" not found in counter set "{known.name}"'
                for counter in consumed.counters
                if counter not in known.counters
            )
    return problems


def clean(pool: Pool) -> tuple[Pool, list[str]]:
    """Return the pool with canonical quantities and without attributes the API would refuse, and what was dropped."""
    dropped: list[str] = []
    devices = tuple(_clean_device(entry, dropped) for entry in pool.devices)
    return msgspec.structs.replace(pool, devices=devices), dropped


def split(pool: Pool) -> tuple[SliceContent, ...]:
    """Return the contents of the pool's slices in order; a pool without devices is one empty slice, not none."""
    contents = [
        SliceContent(shared_counters=pool.shared_counters[start : start + COUNTER_SETS_PER_SLICE])
        for start in range(0, len(pool.shared_counters), COUNTER_SETS_PER_SLICE)
    ]
    current: list[resource_v1.Device] = []
    heavy = False
    for entry in pool.devices:
        entry_heavy = heavy or is_heavy(entry)
        if len(current) >= (HEAVY_DEVICES_PER_SLICE if entry_heavy else DEVICES_PER_SLICE):
            contents.append(SliceContent(devices=tuple(current)))
            current, entry_heavy = [], is_heavy(entry)
        current.append(entry)
        heavy = entry_heavy
    if current or not contents:
        contents.append(SliceContent(devices=tuple(current)))
    return tuple(contents)


def is_heavy(entry: resource_v1.Device) -> bool:
    """Return whether the device lowers the limit of its slice to 64."""
    return bool(entry.taints or entry.consumes_counters) or any(
        value.ints or value.bools or value.strings or value.versions for value in entry.attributes.values()
    )


def _clean_device(entry: resource_v1.Device, dropped: list[str]) -> resource_v1.Device:
    attributes = {}
    for key, value in entry.attributes.items():
        problem = _attribute_problem(key, value)
        if problem:
            dropped.append(f'device "{entry.name}": attribute "{key}" is left out: {problem}')
        else:
            attributes[key] = value
    capacity = {}
    for key, amount in entry.capacity.items():
        try:
            canonical = str(Quantity.parse(amount.value))
        except QuantityError as error:
            dropped.append(f'device "{entry.name}": capacity "{key}" is left out: "{amount.value}": {error}')
            continue
        unchanged = canonical == amount.value
        capacity[key] = amount if unchanged else msgspec.structs.replace(amount, value=canonical)
    for key in list(attributes)[max(0, MOST_ATTRIBUTES - len(capacity)) :]:
        dropped.append(f'device "{entry.name}": attribute "{key}" is left out: at most {MOST_ATTRIBUTES} are allowed')
        del attributes[key]
    if attributes == entry.attributes and capacity == entry.capacity:
        return entry
    return msgspec.structs.replace(entry, attributes=attributes, capacity=capacity)


def _attribute_problem(key: str, value: resource_v1.DeviceAttribute) -> str:
    domain, slash, name = key.rpartition("/")
    faults: Iterable[str] = names.c_identifier(name) or (names.dns_subdomain(domain) if slash else ())
    for fault in faults:
        return f'the name "{key}" is not allowed: {fault}'
    if value.version is not None:
        try:
            Semver.parse(value.version)
        except SemverError as error:
            return f'"{value.version}" is not a semantic version ({error})'
    for content in (value.string, value.version):
        if content is not None and len(content.encode()) > LONGEST_VALUE:
            return f'"{content}" is longer than {LONGEST_VALUE} bytes'
    present: list[Any] = [value.string, value.version, value.int_, value.bool_]
    lists = [value.ints, value.bools, value.strings, value.versions]
    if sum(item is not None for item in present) + sum(bool(item) for item in lists) != 1:
        return "exactly one value must be given"
    return ""
