"""The checker's second part: nothing of a pool is handed out twice.

Sums are made afresh from the slices and the allocations, in nanos, device by device and counter by counter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kubedra.allocation.amounts import needed, offered
from kubedra.allocation.violations import Held, Violation
from kubedra.api.resource_v1 import Device, ResourceSlice
from kubedra.base.quantity import Quantity


def check_pool(
    pool: tuple[str, str],
    slices: Sequence[ResourceSlice],
    held: Sequence[Held],
    concerned: Collection[str] | None = None,
    charged: Collection[str] | None = None,
) -> list[Violation]:
    """Check what is held of one pool against what its slices publish.

    ``concerned``: report only what these devices have a part in (all devices if None); ``charged``: the same for
    counters and groups.
    """
    devices = {device.name: device for slice_ in slices for device in slice_.spec.devices}
    by_device: dict[str, list[Held]] = {}
    for item in held:
        by_device.setdefault(item.device, []).append(item)
    found: list[Violation] = []
    for name, holders in sorted(by_device.items()):
        if concerned is not None and name not in concerned:
            continue
        subject = f"device {pool[0]}/{pool[1]}/{name}"
        found += _check_device(subject, devices.get(name), holders)
    allocated = [devices[name] for name in by_device if name in devices]
    sets = {
        entry.counter_set
        for device in allocated
        if charged is None or device.name in charged
        for entry in device.consumes_counters
    }
    found += _check_counters(pool, slices, allocated, sets)
    return found


def _check_device(subject: str, device: Device | None, holders: Sequence[Held]) -> list[Violation]:
    whole = [holder for holder in holders if holder.share is None]
    shares = [holder for holder in holders if holder.share is not None]
    if len(whole) > 1 or (whole and shares):
        claims = ", ".join(sorted({holder.claim for holder in holders}))
        return [Violation("device-held-twice", subject, f"held by {claims}")]
    if len({holder.share for holder in shares}) < len(shares):
        return [Violation("device-held-twice", subject, "two allocations have the same share ID")]
    if device is None:
        return []
    found = []
    for key, capacity in sorted(device.capacity.items()):
        total = offered(capacity.value).nano
        taken = sum(needed(dict(share.consumed).get(key, "0")).nano for share in shares)
        if taken > total:
            detail = f"{key}: {Quantity(taken, 'BinarySI')} of {capacity.value} are taken by {len(shares)} shares"
            found.append(Violation("capacity-overcommitted", subject, detail))
    return found


def _check_counters(
    pool: tuple[str, str], slices: Sequence[ResourceSlice], allocated: Sequence[Device], sets: Collection[str]
) -> list[Violation]:
    left: dict[tuple[str, str], int] = {}
    for slice_ in slices:
        for counter_set in slice_.spec.shared_counters:
            for name, counter in counter_set.counters.items():
                left[(counter_set.name, name)] = offered(counter.value).nano
    groups: dict[str, list[frozenset[str]]] = {}
    users: dict[str, list[str]] = {}
    for device in allocated:
        for entry in device.consumes_counters:
            groups.setdefault(entry.counter_set, []).append(frozenset(entry.compatibility_groups))
            users.setdefault(entry.counter_set, []).append(device.name)
            for name, counter in entry.counters.items():
                key = (entry.counter_set, name)
                left[key] = left.get(key, 0) - needed(counter.value).nano
    found = []
    where = f"pool {pool[0]}/{pool[1]}"
    for (set_name, name), amount in sorted(left.items()):
        if amount < 0 and set_name in sets:
            detail = (
                f"counter {name} of {set_name} is overdrawn by {Quantity(-amount, 'BinarySI')} "
                f"(devices {', '.join(sorted(users.get(set_name, ())))})"
            )
            found.append(Violation("counters-overcommitted", where, detail))
    for set_name, named in sorted(groups.items()):
        common = frozenset.intersection(*named)
        if set_name in sets and any(named) and not common:
            detail = f"devices {', '.join(sorted(users[set_name]))} on counter set {set_name} share no group"
            found.append(Violation("groups-incompatible", where, detail))
    return found
