"""What holds for every allocation, whatever the cluster looks like."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubedra.allocation import (
    Allocated,
    AllocationError,
    Allocator,
    DoesNotFit,
    Features,
    Inventory,
    Ledger,
    Outcome,
)
from kubedra.allocation.checker import Checker
from kubedra.allocation.claims import MAX_DEVICES
from kubedra.allocation.finder import Aborted, Finder, Found
from kubedra.api.resource_v1 import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from tests.property.allocation_worlds import World, compile_toy, fleets, matches, worlds

# KUBEDRA_EXAMPLES=5000 for a long run by hand.
EXAMPLES = int(os.environ.get("KUBEDRA_EXAMPLES", "120"))
bounded = settings(max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck))


def build(world: World, plain: bool = False, features: Features | None = None) -> Allocator:
    inventory = Inventory(compile_toy, features)
    for node in world.nodes:
        inventory.update_node(node)
    for device_class in world.classes:
        inventory.update_class(device_class)
    for slice_ in world.slices:
        inventory.update_slice(slice_)
    ledger = Ledger(features is None or features.consumable_capacity)
    for claim in world.allocated:
        ledger.update_claim(claim)
    return Allocator(inventory, ledger, plain=plain)


def checker_of(world: World) -> Checker:
    checker = Checker(matches)
    for node in world.nodes:
        checker.update_node(node)
    for device_class in world.classes:
        checker.update_class(device_class)
    for slice_ in world.slices:
        checker.update_slice(slice_)
    for claim in world.allocated:
        checker.update_claim(claim)
    return checker


def comparable(outcome: Outcome) -> object:
    if isinstance(outcome, Allocated):
        return outcome.allocations
    if isinstance(outcome, AllocationError):
        return outcome.message, outcome.node_only
    return "does not fit"


@bounded
@given(worlds(errors=True, everything=True))
def test_the_fast_search_finds_what_the_plain_one_finds(world: World) -> None:
    fast = build(world).allocate("n", world.claims)
    plain = build(world, plain=True).allocate("n", world.claims)
    event(type(plain).__name__)
    assert comparable(fast) == comparable(plain)


gates = st.builds(
    Features,
    **dict.fromkeys(
        ("admin_access", "prioritized_list", "partitionable", "taints", "consumable_capacity", "list_attributes"),
        st.sampled_from((True, True, True, False)),
    ),
    compatibility_groups=st.booleans(),
)


@bounded
@given(worlds(errors=True, everything=True), gates)
def test_so_it_does_with_any_gate_off(world: World, features: Features) -> None:
    fast = build(world, features=features).allocate("n", world.claims)
    plain = build(world, True, features).allocate("n", world.claims)
    assert comparable(fast) == comparable(plain)


@bounded
@given(worlds(errors=True, everything=True))
def test_every_allocation_passes_the_independent_checker(world: World) -> None:
    outcome = build(world).allocate("n", world.claims)
    assume(isinstance(outcome, Allocated))
    assert isinstance(outcome, Allocated)
    assert checker_of(world).check_new(list(zip(world.claims, outcome.allocations, strict=True)), "n") == []


@settings(bounded, max_examples=EXAMPLES * 2 // 3)
@given(worlds(most=2))
def test_a_solution_is_found_exactly_when_one_exists(world: World) -> None:
    outcome = build(world).allocate("n", world.claims)
    assume(not any(r.admin_access for c in world.claims for r in exact_requests(c)))
    if isinstance(outcome, AllocationError):
        assert str(MAX_DEVICES) in outcome.message
        return
    event(type(outcome).__name__)
    assert isinstance(outcome, DoesNotFit) != brute_force_fits(world)


def exact_requests(claim: ResourceClaim) -> Iterator[object]:
    return (r.exactly for r in claim.spec.devices.requests if r.exactly is not None) if claim.spec.devices else iter(())


def brute_force_fits(world: World) -> bool:
    """Try every combination and let the independent checker judge."""
    devices = [
        (s.spec.driver, s.spec.pool.name, d) for s in world.slices if not s.spec.shared_counters for d in s.spec.devices
    ]
    checker = checker_of(world)
    shares = (f"brute-{i}" for i in itertools.count())

    def results(claim: ResourceClaim) -> Iterator[tuple[DeviceRequestAllocationResult, ...]]:
        per_request = []
        assert claim.spec.devices is not None
        for request in claim.spec.devices.requests:
            options = []
            alternatives = [(request.name, request.exactly)] if request.exactly else []
            alternatives += [(f"{request.name}/{sub.name}", sub) for sub in request.first_available]  # type: ignore[misc]
            for name, wanted in alternatives:
                assert wanted is not None
                requested = dict(wanted.capacity.requests) if wanted.capacity else {}
                for chosen in itertools.combinations(devices, wanted.count or 0):
                    options.append(
                        tuple(
                            DeviceRequestAllocationResult(
                                request=name,
                                driver=driver,
                                pool=pool,
                                device=device.name,
                                tolerations=wanted.tolerations,
                                share_id=next(shares) if device.allow_multiple_allocations else None,
                                consumed_capacity={
                                    key: least_consumption(requested.get(key), capacity)
                                    for key, capacity in device.capacity.items()
                                }
                                if device.allow_multiple_allocations
                                else {},
                            )
                            for driver, pool, device in chosen
                        )
                    )
            per_request.append(options)
        for combination in itertools.product(*per_request):
            yield tuple(itertools.chain.from_iterable(combination))

    def search(claims: Sequence[ResourceClaim], done: list[tuple[ResourceClaim, AllocationResult]]) -> bool:
        if not claims:
            return True
        for chosen in results(claims[0]):
            allocation = AllocationResult(devices=DeviceAllocationResult(results=chosen))
            candidate = [*done, (claims[0], allocation)]
            problems = [v for v in checker.check_new(candidate, "n") if v.code != "node-selector-too-wide"]
            if not problems and search(claims[1:], candidate):
                return True
        return False

    return search(world.claims, [])


def least_consumption(requested: str | None, capacity: object) -> str:
    policy = getattr(capacity, "request_policy", None)
    if policy is None:
        return requested or str(getattr(capacity, "value", "0"))
    if requested is None:
        return str(policy.default)
    step = int(policy.valid_range.step)
    amount = 1 + -(-(int(requested) - 1) // step) * step
    return requested if requested == policy.default else str(amount)


@bounded
@given(worlds(), st.randoms())
def test_the_order_of_slices_and_classes_changes_nothing(world: World, random: object) -> None:
    before = comparable(build(world).allocate("n", world.claims))
    random.shuffle(world.slices)  # type: ignore[attr-defined]
    random.shuffle(world.classes)  # type: ignore[attr-defined]
    assert comparable(build(world).allocate("n", world.claims)) == before


@bounded
@given(worlds(), worlds(most=2))
def test_more_devices_claims_or_nodes_of_others_never_turn_a_fit_into_none(world: World, other: World) -> None:
    assume(isinstance(build(world).allocate("n", world.claims), Allocated))
    taken = {s.metadata.name for s in world.slices}
    for slice_ in other.slices:
        pool = replace(slice_.spec.pool, name=f"other-{slice_.spec.pool.name}")
        metadata = replace(slice_.metadata, name=f"other-{slice_.metadata.name}")
        assert metadata.name not in taken
        world.slices.append(replace(slice_, metadata=metadata, spec=replace(slice_.spec, pool=pool)))
    for claim in other.allocated:
        allocation = claim.status.allocation
        assert allocation is not None
        assert allocation.devices is not None
        results = tuple(replace(r, pool=f"other-{r.pool}") for r in allocation.devices.results)
        moved = replace(allocation, devices=replace(allocation.devices, results=results))
        metadata = replace(claim.metadata, name=f"other-{claim.metadata.name}", uid=f"other-{claim.metadata.uid}")
        world.allocated.append(replace(claim, metadata=metadata, status=replace(claim.status, allocation=moved)))
    for node in other.nodes:
        world.nodes.insert(0, replace(node, metadata=replace(node.metadata, name="another")))
    assert isinstance(build(world).allocate("n", world.claims), Allocated)


@bounded
@given(worlds())
def test_allocating_and_releasing_gives_back_the_same_state(world: World) -> None:
    allocator = build(world)
    before = allocator.ledger.snapshot()
    outcome = allocator.allocate("n", world.claims)
    assume(isinstance(outcome, Allocated))
    assert isinstance(outcome, Allocated)
    assert allocator.ledger.snapshot() == before
    mark = allocator.ledger.mark()
    for claim, allocation in zip(world.claims, outcome.allocations, strict=True):
        allocator.ledger.assume(claim.metadata.uid, allocation)
    for claim in world.claims:
        allocator.ledger.remove_claim(claim)
    assert allocator.ledger.snapshot() == before
    for claim, allocation in zip(world.claims, outcome.allocations, strict=True):
        allocator.ledger.assume(claim.metadata.uid, allocation)
    allocator.ledger.rollback(mark)
    assert allocator.ledger.snapshot() == before
    assert comparable(allocator.allocate("n", world.claims)) == comparable(outcome)


@bounded
@given(worlds(errors=True, everything=True), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=12))
def test_a_kept_index_answers_like_one_built_afresh(world: World, events: list[tuple[int, int]]) -> None:
    kept = build(world)
    finder = Finder(kept)
    slices = {s.metadata.name: s for s in world.slices}
    allocated = {c.metadata.uid: c for c in world.allocated}
    removed: list[object] = []
    for kind, number in events:
        finder.find(world.claims)
        kept.allocate("n", world.claims)
        if kind == 0 and slices:
            name = sorted(slices)[number % len(slices)]
            removed.append(slices.pop(name))
            kept.inventory.update_slice(None, name)
        elif kind == 1 and removed:
            slice_ = removed.pop(number % len(removed))
            slices[slice_.metadata.name] = slice_  # type: ignore[attr-defined,assignment]
            kept.inventory.update_slice(slice_)  # type: ignore[arg-type]
        elif kind == 2 and allocated:
            uid = sorted(allocated)[number % len(allocated)]
            kept.ledger.remove_claim(allocated.pop(uid))
        elif kind == 3:
            for claim in world.allocated:
                allocated[claim.metadata.uid] = claim
                kept.ledger.update_claim(claim)
    fresh = build(World(world.nodes, list(slices.values()), world.classes, list(allocated.values()), world.claims))
    assert kept.ledger.snapshot() == fresh.ledger.snapshot()
    expected = fresh.allocate("n", world.claims)
    assert comparable(kept.allocate("n", world.claims)) == comparable(expected)
    finding = finder.find(world.claims)
    if isinstance(expected, Allocated):
        assert isinstance(finding, Found)
        assert comparable(finding.allocated) == comparable(expected)
    elif isinstance(expected, AllocationError) and not expected.node_only:
        assert isinstance(finding, Aborted)
    else:
        assert not isinstance(finding, Found)


@bounded
@given(fleets(), st.lists(st.integers(0, 3), min_size=1, max_size=10))
def test_the_finder_finds_the_node_that_trying_all_would_find(world: World, steps: list[int]) -> None:
    allocator = build(world)
    finder = Finder(allocator)
    names = [node.metadata.name for node in world.nodes]
    held: list[str] = []
    for number, step in enumerate(steps):
        if step == 3 and held:
            allocator.ledger.remove_claim(held.pop(0))
            continue
        claim = [world.claims[step % 2]]
        expected: tuple[str, object] | None = None
        for name in names:
            outcome = allocator.allocate(name, claim)
            if isinstance(outcome, Allocated) or (isinstance(outcome, AllocationError) and not outcome.node_only):
                expected = name, comparable(outcome)
                break
        for finding in (finder.find(claim), finder.find(claim, names), finder.find(claim, 2 ** len(names) - 1)):
            if isinstance(finding, Found):
                assert expected == (finding.node, comparable(finding.allocated))
            elif isinstance(finding, Aborted):
                assert expected == (finding.node, comparable(finding.error))
            else:
                assert expected is None
        if isinstance(finding, Found):
            allocator.ledger.assume(f"pod-{number}", finding.allocated.allocations[0])
            held.append(f"pod-{number}")
