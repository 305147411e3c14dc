"""Devices in the words of people: "8 × NVIDIA H100 80GB HBM3" instead of eight names.

Drivers have no common attribute for a model, so the usual ones are tried; a device without any goes by its driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kubedra.allocation.devices import DeviceView
from kubedra.allocation.inventory import NodeView
from kubedra.api.resource_v1 import Device

NO_DEVICES = "no devices"

# In this order: what a person would call the device.
_MODEL_NAMES = ("productName", "model", "modelName", "product", "card", "name", "deviceName", "profile", "type")


def model(device: Device, driver: str) -> str:
    """What kind of device it is: its partition profile or model, else the driver."""
    attributes = device.attributes
    found = ""
    for name in _MODEL_NAMES:
        value = attributes.get(name) or attributes.get(f"{driver}/{name}")
        if value is not None and value.string:
            found = value.string
            break
    profile = attributes.get("profile") or attributes.get(f"{driver}/profile")
    if profile is not None and profile.string and profile.string != found:
        return f"{profile.string} of {found}" if found else profile.string
    return found or f"device of {driver}"


def summary(devices: Iterable[tuple[Device, str]], most: int = 3) -> str:
    """``8 × A100, 2 × ConnectX-7``; the most frequent first."""
    counts = Counter(model(device, driver) for device, driver in devices)
    return counted(counts, most)


def counted(counts: Counter[str], most: int = 3) -> str:
    """``8 × A100, 2 × ConnectX-7`` from counts."""
    if not counts:
        return NO_DEVICES
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) == most + 1:
        most += 1
    parts = [f"{count} × {name}" for name, count in ordered[:most]]
    if len(ordered) > most:
        rest = sum(count for _, count in ordered[most:])
        parts.append(f"{rest} of {len(ordered) - most} other kinds")
    return ", ".join(parts)


class Summaries:
    """What nodes have. Remembers by which attribute a driver names its models: fleets have thousands of devices."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of_view(self, view: NodeView) -> str:
        """The devices in the complete pools of a node."""
        total: Counter[str] = Counter()
        for pool, offset in view.candidates:
            mask = view.masked.get(offset)
            devices = pool.devices
            if mask is not None:
                devices = tuple(device for bit, device in enumerate(devices) if mask >> bit & 1)
            total.update([self._model(device) for device in devices])
        if not total and (view.incomplete or view.invalid):
            return "no usable devices"
        return counted(total)

    def _model(self, device: DeviceView) -> str:
        driver = device.slice.driver
        name = self._names.get(driver)
        if name is not None and device.consumes is None:
            value = device.raw.attributes.get(name)
            if value is not None and value.string:
                return value.string
        found = model(device.raw, driver)
        if name is None:
            names = (n for n in _MODEL_NAMES if (v := device.raw.attributes.get(n)) is not None and v.string == found)
            self._names[driver] = next(names, "")
        return found
