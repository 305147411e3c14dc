"""A fleet as an expression meets it: devices with their place, and what names and values occur among them.

Upstream has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kubedra.cel.device import DeviceInput
from kubedra.cel.library.conversions import to_string
from kubedra.cel.values import Value, type_of

if TYPE_CHECKING:
    from kubedra.api.resource_v1 import ResourceSlice

ATTRIBUTES: Final = "attributes"
CAPACITY: Final = "capacity"


@dataclass(frozen=True, slots=True)
class FleetDevice:
    """A device and where it is: driver/pool/device."""

    place: str
    device: DeviceInput


def devices_of(slices: Iterable[ResourceSlice], *, lists_supported: bool = True) -> list[FleetDevice]:
    """The devices of all slices; of each pool only those of its newest generation."""
    kept = list(slices)
    newest: dict[tuple[str, str], int] = {}
    for item in kept:
        pool = (item.spec.driver, item.spec.pool.name)
        newest[pool] = max(newest.get(pool, 0), item.spec.pool.generation or 0)
    found: list[FleetDevice] = []
    for item in kept:
        driver, pool_name = item.spec.driver, item.spec.pool.name
        if (item.spec.pool.generation or 0) < newest[driver, pool_name]:
            continue
        for device in item.spec.devices:
            place = f"{driver}/{pool_name}/{device.name}"
            found.append(FleetDevice(place, DeviceInput.of(driver, device, lists_supported=lists_supported)))
    return found


def show(value: Value) -> str:
    """A value as a person reads it in an expression."""
    if value.__class__ is str:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if value is None:
        return "null"
    if value.__class__ is list:
        return "[" + ", ".join(show(item) for item in value) + "]"
    if value.__class__ in (bool, int, float):
        return str(to_string(value))
    return str(value)


class Fleet:
    """Devices with an index of their names and values."""

    def __init__(self, devices: list[FleetDevice]) -> None:
        self.devices = devices

    def __len__(self) -> int:
        return len(self.devices)

    @cached_property
    def names(self) -> dict[str, dict[tuple[str, str], int]]:
        """("attributes" or "capacity") to (domain, id) to how many devices have it."""
        found: dict[str, dict[tuple[str, str], int]] = {ATTRIBUTES: {}, CAPACITY: {}}
        for item in self.devices:
            for kind, maps in ((ATTRIBUTES, item.device.attributes), (CAPACITY, item.device.capacity)):
                for domain, inner in maps.items():
                    for id_ in inner:
                        key = (domain, id_)
                        found[kind][key] = found[kind].get(key, 0) + 1
        return found

    def domains(self, kind: str) -> set[str]:
        """Domains that occur among attributes or capacities."""
        return {domain for domain, _ in self.names[kind]}

    def values(self, kind: str, domain: str, id_: str) -> list[Value]:
        """Distinct values of a name, most frequent first."""
        counts: dict[tuple[str, str], tuple[int, Value]] = {}
        for item in self.devices:
            maps = item.device.attributes if kind == ATTRIBUTES else item.device.capacity
            inner = maps.get(domain)
            if inner is None or id_ not in inner:
                continue
            value = inner[id_]
            key = (str(type_of(value)), show(value))
            counts[key] = (counts.get(key, (0, value))[0] + 1, value)
        return [value for _, value in sorted(counts.values(), key=lambda item: -item[0])]
