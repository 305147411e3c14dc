"""How much of a device's capacity one allocation takes.

A request is rounded up to what the device's policy allows; every capacity of the device is accounted for, also those
that the request doesn't mention (policy default, else the whole amount). The arithmetic of ranges works on whole units
(fractions rounded up first), or on thousandths where DRAFractionalCapacityRange is on and the range has fractions.

Negative requests are refused here as well as by the API server: one that is stored already must not free capacity.

Upstream counterpart: consumable_capacity.go. Not copied: the default shortcut compares amounts, not structs.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubedra.allocation.amounts import needed, offered
from kubedra.api.resource_v1 import CapacityRequestPolicyRange, DeviceCapacity
from kubedra.base.quantity import Quantity


class CapacityTable:
    """The capacities of one device, parsed. ``plain``: a request for nothing always fits a device that is free."""

    __slots__ = ("entries", "keys", "plain")

    def __init__(self, raw: Mapping[str, DeviceCapacity]) -> None:
        self.entries = tuple((key, offered(item.value), item) for key, item in raw.items())
        self.keys = raw.keys()
        self.plain = not any(item.request_policy for item in raw.values())


def consumption(table: CapacityTable, requests: Mapping[str, Quantity], fractional: bool) -> dict[str, Quantity] | None:
    """What an allocation with these requests takes of each capacity, or None if the device can't serve them."""
    if not requests.keys() <= table.keys:
        return None
    taken: dict[str, Quantity] = {}
    for key, total, item in table.entries:
        request = requests.get(key)
        if request is not None and request.nano < 0:
            return None
        amount = _amount(request, total, item, fractional)
        if amount is None or amount.nano > total.nano:
            return None
        taken[key] = amount
    return taken


def _amount(request: Quantity | None, total: Quantity, item: DeviceCapacity, fractional: bool) -> Quantity | None:
    policy = item.request_policy
    if policy is None:
        return total if request is None else request
    default = needed(policy.default) if policy.default is not None else None
    if request is None:
        request = default
    if request is None:
        return total
    if default is not None and request == default:
        return request
    if policy.valid_range is not None:
        return _in_range(request, policy.valid_range, fractional)
    if policy.valid_values:
        values = [needed(value) for value in policy.valid_values]
        return next((value for value in values if value >= request), None)
    return request


def _in_range(request: Quantity, limits: CapacityRequestPolicyRange, fractional: bool) -> Quantity | None:
    low = needed(limits.min) if limits.min else None
    high = needed(limits.max) if limits.max else None
    step = needed(limits.step) if limits.step else None
    amount = request
    if low is not None and amount < low:
        amount = low
    elif low is not None and step is not None and step.nano > 0:
        milli = fractional and not all(q.is_whole for q in (low, step, high) if q is not None)
        if milli:
            base, size, wanted = low.milli_value(), step.milli_value(), request.milli_value()
        else:
            base, size, wanted = low.value(), step.value(), request.value()
        rounded = base + -(-(wanted - base) // size) * size
        amount = Quantity.of_milli(rounded, "BinarySI") if milli else Quantity.of(rounded, "BinarySI")
    if high is not None and amount > high:
        return None
    return amount
