"""The parts of the candidate test that no pick of the attempt changes, device by device and as bit masks.

``Attempt`` asks device by device; the fast search and the index ask for whole pools and remember the masks: what only
depends on the published side with the pool's view, what depends on the ledger with the pool's state. Both go through
the same three functions, so they can't disagree.

Every device that this mask leaves out is refused by the candidate test whatever else is picked: picks only take more.
"""

from __future__ import annotations

from kubedra.allocation.capacity import consumption
from kubedra.allocation.claims import Ask
from kubedra.allocation.columns import ValueSet
from kubedra.allocation.devices import DeviceView, bits_of
from kubedra.allocation.features import Features
from kubedra.allocation.inventory import NodeView
from kubedra.allocation.ledger import Ledger
from kubedra.allocation.pools import PoolState, PoolView
from kubedra.allocation.selection import Selection
from kubedra.allocation.taints import first_untolerated
from kubedra.base.quantity import Quantity


def publishable(device: DeviceView, features: Features) -> bool:
    """Whether no feature that is off keeps the device from everybody."""
    if not features.binding_conditions and device.raw.binding_conditions:
        return False
    if not features.partitionable and device.consumes is not None:
        return False
    return features.optional_node_operations or not device.slice.raw.spec.skip_node_operations


def tolerated(device: DeviceView, ask: Ask, features: Features) -> bool:
    """Whether the request bears the device's taints."""
    if not device.taints or not features.taints:
        return True
    return first_untolerated(device.taints, ask.tolerations) is None


def takes(device: DeviceView, ask: Ask, features: Features) -> dict[str, Quantity] | None:
    """What a pick takes of the device's capacity (not to be changed); None if policies or size refuse the request."""
    known = device.takes
    if known is None or len(known) > 32:
        known = device.takes = {}
    if ask not in known:
        known[ask] = consumption(device.capacity, ask.capacity_requests, features.fractional_ranges)
    return known[ask]


def needs_no_capacity(device: DeviceView, ask: Ask, features: Features) -> bool:
    """Whether capacity can't keep the request from the device: it is exclusive and nothing is asked."""
    if not features.consumable_capacity:
        return True
    return not ask.capacity and not device.multi and (not device.raw.capacity or device.capacity.plain)


def has_room(device: DeviceView, taken: dict[str, Quantity] | None, used: dict[str, int]) -> bool:
    """Whether a pick that takes this fits beside what is used already."""
    if taken is None:
        return False
    if not device.multi or not used:
        return True
    return all(used.get(key, 0) + taken[key].nano <= total.nano for key, total, _ in device.capacity.entries)


def selected(pool: PoolView, selection: Selection) -> tuple[int, int]:
    """Masks of the devices that pass the selectors, and of those on which one fails."""
    known = pool.cache("selected")
    row = known.get(selection)
    if row is None:
        yes = errors = 0
        for slice_, start in pool.spans:
            part = selection.row(slice_)
            yes |= part.yes << start
            errors |= part.errors << start
        row = _remember(known, selection, (yes, errors))
    return row  # type: ignore[return-value]


def published_mask(pool: PoolView, ask: Ask, features: Features) -> tuple[int, int]:
    """What the published side leaves of a pool for a request, and the devices on which a selector fails."""
    known = pool.cache("published")
    entry = known.get(ask)
    if entry is None:
        mask, errors = selected(pool, ask.selection)
        withheld, tainted, limited = _special(pool, features)
        mask &= ~withheld
        errors &= ~withheld
        for bit in bits_of(mask & tainted):
            if not tolerated(pool.devices[bit], ask, features):
                mask &= ~(1 << bit)
        for bit in bits_of(mask if ask.capacity else mask & limited):
            device = pool.devices[bit]
            if not needs_no_capacity(device, ask, features) and takes(device, ask, features) is None:
                mask &= ~(1 << bit)
        entry = _remember(known, ask, (mask, errors))
    return entry  # type: ignore[return-value]


def _special(pool: PoolView, features: Features) -> tuple[int, int, int]:
    """The devices that a feature keeps back, those with taints, and those whose capacity always has to be looked at."""
    known = pool.cache("special")
    entry = known.get(None)
    if entry is None:
        withheld = tainted = limited = 0
        for slice_, start in pool.spans:
            if slice_.raw.spec.skip_node_operations and not features.optional_node_operations:
                withheld |= slice_.all_mask << start
            if not features.binding_conditions:
                withheld |= slice_.bound << start
            if not features.partitionable:
                withheld |= slice_.consuming << start
            tainted |= slice_.tainted << start
            limited |= slice_.limited << start
        entry = known[None] = (withheld, tainted, limited)
    return entry  # type: ignore[return-value]


def free_mask(pool: PoolView, state: PoolState, ask: Ask, features: Features) -> int:
    """The devices of a pool that a request could get now."""
    mask = state.views.get(ask)
    if mask is None:
        mask, _ = published_mask(pool, ask, features)
        if mask:
            mask &= state.fitting
            if not ask.admin:
                mask &= ~state.exclusive
            if state.consumed and features.consumable_capacity:
                for bit, used in state.consumed.items():
                    if mask >> bit & 1:
                        device = pool.devices[bit]
                        if device.multi and not has_room(device, takes(device, ask, features), used):
                            mask &= ~(1 << bit)
        if len(state.views) >= 64:
            state.views.clear()
        state.views[ask] = mask
    return mask


def node_mask(node: NodeView, ledger: Ledger, ask: Ask, features: Features) -> tuple[int, bool]:
    """The devices of a node that a request could get now, and whether a selector fails on any of its devices."""
    total, failing = 0, False
    for pool, offset in node.candidates:
        _, errors = published_mask(pool, ask, features)
        if errors:
            failing = True
        mask = free_mask(pool, pool.current(ledger), ask, features)
        if mask:
            here = node.masked.get(offset)
            if here is not None:
                mask &= here
            total |= mask << offset
    return total, failing


def value_masks(pool: PoolView, attribute: str, features: Features) -> dict[ValueSet, int]:
    """The devices of a pool by what a constraint compares."""
    known = pool.cache("values")
    entry = known.get(attribute)
    if entry is None:
        masks: dict[ValueSet, int] = {}
        for slice_, start in pool.spans:
            for index, values in enumerate(slice_.value_column(attribute, features.list_attributes)):
                if values:
                    masks[values] = masks.get(values, 0) | 1 << (start + index)
        entry = _remember(known, attribute, masks)
    return entry  # type: ignore[return-value]


def _remember(known: dict[object, object], key: object, value: object) -> object:
    if len(known) >= 64:
        known.clear()
    known[key] = value
    return value


__all__ = [
    "bits_of",
    "free_mask",
    "has_room",
    "needs_no_capacity",
    "node_mask",
    "publishable",
    "published_mask",
    "selected",
    "takes",
    "tolerated",
    "value_masks",
]
