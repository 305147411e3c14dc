"""Where the devices go: for each request, how many are left after each thing that rules devices out.

Counted with the same masks that the search uses, over the whole cluster at once and for the best single node, because
a request needs its devices on one node: forty free devices are no help when no node has four.

Each device counts once over the cluster, however many nodes can reach it.

Upstream has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kubedra.allocation.candidates import (
    bits_of,
    free_mask,
    needs_no_capacity,
    publishable,
    published_mask,
    selected,
    takes,
    tolerated,
    value_masks,
)
from kubedra.allocation.claims import Alternative, PreparedClaim, PreparedPod
from kubedra.allocation.devices import SliceView
from kubedra.allocation.features import Features
from kubedra.allocation.inventory import Inventory, NodeView
from kubedra.allocation.ledger import Ledger
from kubedra.allocation.pools import PoolView


@dataclass(slots=True)
class Step:
    """One thing that rules devices out, and what is left after it.

    ``count``: devices over the cluster; ``best``: most on one node, ``node`` that node. ``text``: the selector, the
    constraint, or "".
    """

    code: str
    text: str = ""
    count: int = 0
    best: int = 0
    node: str = ""


@dataclass(slots=True)
class Waterfall:
    """The steps of one request (or alternative). ``needed`` is 0 for a request for all devices."""

    claim: str
    request: str
    class_name: str
    needed: int
    steps: list[Step] = field(default_factory=list)
    # Claims (ledger keys) that hold devices which would do, with how many, most first.
    holders: list[tuple[str, int]] = field(default_factory=list)
    # Selectors that fail: (node, device) of some.
    failing: list[tuple[str, str]] = field(default_factory=list)
    untolerated: dict[str, int] = field(default_factory=dict)
    # What is left on each node after the steps of NODE_STEPS and then each constraint.
    nodes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def stopped_by(self) -> Step | None:
        """The first step that takes the count below the need, or None if a node has enough to the end.

        Where there never were enough, the step everybody asks about: what is free.
        """
        need = max(self.needed, 1)
        before = None
        for step in self.steps:
            if step.best < need and (step.count == 0 if before is None else step.best < before):
                return step
            before = step.best
        if before is not None and before < need:
            return next((step for step in self.steps if step.code == "free"), self.steps[-1])
        return None

    def before(self, step: Step) -> Step | None:
        """The step before a step."""
        place = self.steps.index(step)
        return self.steps[place - 1] if place else None


# Codes of steps, in order. "selector" occurs once for each selector.
CODES = {
    "published": "devices in any slice",
    "current": "devices in complete and valid pools of the newest generation",
    "class": "devices that pass a selector of the class",
    "selector": "devices that pass a selector of the request",
    "reachable": "devices that the nodes in question can reach",
    "usable": "devices that no feature gate keeps back",
    "tolerated": "devices without a taint that the request does not tolerate",
    "size": "devices large enough for the requested capacity",
    "free": "devices that nobody holds",
    "room": "devices for which counters and capacity are left",
    "constraint": "devices that can agree with a constraint",
}


def waterfalls(inventory: Inventory, ledger: Ledger, pod: PreparedPod, nodes: Sequence[str]) -> list[Waterfall]:
    """One waterfall for each request and alternative of the pod's claims."""
    views = [inventory.node_view(name) for name in nodes]
    invalid = {pool.key for view in views for pool in view.invalid}
    current = [slice_ for slice_ in _current_slices(inventory) if slice_.key not in invalid]
    return [
        _waterfall(inventory, ledger, claim, alternative, views, current)
        for claim in pod.claims
        for request in claim.requests
        for alternative in request.alternatives
    ]


def _current_slices(inventory: Inventory) -> list[SliceView]:
    current = []
    for slices in inventory.pools.values():
        generation = max(slice_.generation for slice_ in slices.values())
        newest = [slice_ for slice_ in slices.values() if slice_.generation == generation]
        local = {slice_.raw.spec.node_name for slice_ in newest}
        expected = newest[0].raw.spec.pool.resource_slice_count
        # A pool name that every node uses for itself is complete node by node.
        if len(newest) == expected or (None not in local and len(newest) == expected * len(local)):
            current += newest
    return current


def _waterfall(
    inventory: Inventory,
    ledger: Ledger,
    claim: PreparedClaim,
    alternative: Alternative,
    views: Sequence[NodeView],
    current: Sequence[SliceView],
) -> Waterfall:
    needed = 0 if alternative.all_devices else alternative.count
    fall = Waterfall(claim.name, alternative.name, alternative.class_name, needed)
    devices = sum(len(slice_.devices) for slice_ in inventory.slices.values())
    fall.steps.append(Step("published", "", devices, devices))
    complete = sum(len(slice_.devices) for slice_ in current)
    fall.steps.append(Step("current", "", complete, complete))
    _selector_steps(fall, alternative, current)
    _node_steps(fall, inventory, ledger, claim, alternative, views)
    return fall


def _selector_steps(fall: Waterfall, alternative: Alternative, current: Sequence[SliceView]) -> None:
    selection = alternative.ask.selection
    if not selection.texts:
        return
    lost = [0] * (len(selection.texts) + 1)
    for slice_ in current:
        for verdict, count in selection.verdict_counts(slice_):
            if not verdict.ok:
                lost[min(max(verdict.step, 0), len(lost) - 1)] += count
            if verdict.error and len(fall.failing) < 3:
                fall.failing.append(("", f"{slice_.driver}/{slice_.pool}"))
    left = fall.steps[-1].count
    for place, text in enumerate(selection.texts):
        left -= lost[place]
        fall.steps.append(Step("class" if place < selection.classes else "selector", text, left, left))


# The steps that are counted node by node, in the order of ``Waterfall.nodes``.
NODE_STEPS = ("reachable", "usable", "tolerated", "size", "free", "room")


def _node_steps(
    fall: Waterfall,
    inventory: Inventory,
    ledger: Ledger,
    claim: PreparedClaim,
    alternative: Alternative,
    views: Sequence[NodeView],
) -> None:
    features = inventory.features
    steps = [Step(code) for code in NODE_STEPS]
    constraints = [claim.constraints[index] for index in alternative.constraints]
    groups = [Step("constraint", f"{_kind(c.distinct)} {c.attribute}") for c in constraints]
    holders: dict[str, int] = {}
    seen: dict[PoolView, list[int]] = {}
    reached: dict[PoolView, int] = {}
    for view in views:
        here_counts = [0] * len(steps)
        last: list[tuple[PoolView, int]] = []
        for pool, offset in view.candidates:
            masks = seen.get(pool)
            if masks is None:
                masks = seen[pool] = _pool_masks(fall, pool, ledger, alternative, features, holders)
            here = view.masked.get(offset)
            if here is None:
                reached[pool] = -1
                here_counts = [n + mask.bit_count() for n, mask in zip(here_counts, masks, strict=True)]
                last.append((pool, masks[-1]))
            else:
                reached[pool] = reached.get(pool, 0) | here
                here_counts = [n + (mask & here).bit_count() for n, mask in zip(here_counts, masks, strict=True)]
                last.append((pool, masks[-1] & here))
        for step, count in zip(steps, here_counts, strict=True):
            if count > step.best:
                step.best, step.node = count, view.name
        for step, constraint in zip(groups, constraints, strict=True):
            best = _best_group(last, constraint.attribute, constraint.distinct, features)
            if best > step.best:
                step.count, step.best, step.node = best, best, view.name
            here_counts.append(best)
        fall.nodes[view.name] = tuple(here_counts)
    _count_once(steps, seen, reached)
    fall.steps.append(steps[0])
    for before, step in pairwise(steps):
        # Steps that rule nothing out are not worth a line, except the one everybody asks about.
        if step.count != before.count or step.best != before.best or step.code == "free":
            fall.steps.append(step)
    fall.steps += groups
    fall.holders = sorted(holders.items(), key=lambda item: (-item[1], item[0]))


def _count_once(steps: list[Step], seen: dict[PoolView, list[int]], reached: dict[PoolView, int]) -> None:
    """Count devices over the cluster. Views of one pool may have slices in common, whose devices count once."""
    users: dict[SliceView, int] = {}
    for pool in seen:
        for slice_, _ in pool.spans:
            users[slice_] = users.get(slice_, 0) + 1
    shared: list[dict[SliceView, int]] = [{} for _ in steps]
    for pool, masks in seen.items():
        here = reached[pool]
        if all(users[slice_] == 1 for slice_, _ in pool.spans):
            for step, mask in zip(steps, masks, strict=True):
                step.count += (mask & here).bit_count()
            continue
        for slices, mask in zip(shared, masks, strict=True):
            for slice_, start in pool.spans:
                slices[slice_] = slices.get(slice_, 0) | ((mask & here) >> start & slice_.all_mask)
    for step, slices in zip(steps, shared, strict=True):
        step.count += sum(mask.bit_count() for mask in slices.values())


def _kind(distinct: bool) -> str:
    return "distinctAttribute" if distinct else "matchAttribute"


def _pool_masks(
    fall: Waterfall,
    pool: PoolView,
    ledger: Ledger,
    alternative: Alternative,
    features: Features,
    holders: dict[str, int],
) -> list[int]:
    ask = alternative.ask
    chosen, errors = selected(pool, ask.selection)
    if errors and len(fall.failing) < 3:
        bit = (errors & -errors).bit_length() - 1
        fall.failing.append(("", str(pool.devices[bit])))
    usable = bearable = large = 0
    if published_mask(pool, ask, features)[0] == chosen:
        usable = bearable = large = chosen
    else:
        for bit in bits_of(chosen):
            device = pool.devices[bit]
            if not publishable(device, features):
                continue
            usable |= 1 << bit
            if not tolerated(device, ask, features):
                for taint in device.taints:
                    name = f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"
                    fall.untolerated[name] = fall.untolerated.get(name, 0) + 1
                continue
            bearable |= 1 << bit
            if needs_no_capacity(device, ask, features) or takes(device, ask, features) is not None:
                large |= 1 << bit
    state = pool.current(ledger)
    free = large if ask.admin else large & ~state.exclusive
    if large & (state.exclusive | state.shared):
        use = ledger.use_of(pool.key)
        for device_name, claims in use.exclusive.items():
            if large >> pool.bits.get(device_name, len(pool.devices)) & 1:
                for holder in claims:
                    holders[holder] = holders.get(holder, 0) + 1
        for device_name, shares in use.shares.items():
            if large >> pool.bits.get(device_name, len(pool.devices)) & 1:
                for holder, _ in shares:
                    holders[holder] = holders.get(holder, 0) + 1
    return [chosen, usable, bearable, large, free, free_mask(pool, state, ask, features)]


def _best_group(pools: Iterable[tuple[PoolView, int]], attribute: str, distinct: bool, features: Features) -> int:
    counts: dict[object, int] = {}
    for pool, mask in pools:
        if not mask:
            continue
        for values, devices in value_masks(pool, attribute, features).items():
            count = (devices & mask).bit_count()
            if count:
                for element in values:
                    counts[element] = counts.get(element, 0) + count
    if distinct:
        return len(counts)
    return max(counts.values(), default=0)
