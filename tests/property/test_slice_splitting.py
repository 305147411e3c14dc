"""Whatever a driver publishes: slices keep the limits, lose nothing, keep the order, and settle after one round."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kubedra.api import meta_v1, resource_v1
from kubedra.sdk.resources import Pool, SliceContent, device, is_heavy, split
from kubedra.sdk.slices import StoredSlice, plan, stored_slice
from tests.unit.sdk.test_slices import OWNER, stored_by

TAINT = resource_v1.DeviceTaint(key="k", effect="NoSchedule")


def devices_from(weights: list[bool]) -> tuple[resource_v1.Device, ...]:
    return tuple(
        resource_v1.Device(name=f"d-{index}", taints=(TAINT,) if heavy else ()) for index, heavy in enumerate(weights)
    )


def kept(stored: list[resource_v1.ResourceSlice]) -> list[StoredSlice]:
    return [stored_slice(entry) for entry in stored]


runs = st.lists(st.tuples(st.booleans(), st.integers(1, 150)), max_size=6)


@given(runs, st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_splitting_keeps_limits_and_loses_nothing(runs: list[tuple[bool, int]], sets: int) -> None:
    weights = [heavy for heavy, count in runs for _ in range(count)]
    counters = tuple(resource_v1.CounterSet(name=f"c-{index}") for index in range(sets))
    pool = Pool(devices=devices_from(weights), shared_counters=counters, node_name="n1")
    contents = split(pool)
    assert tuple(entry for content in contents for entry in content.devices) == pool.devices
    assert tuple(entry for content in contents for entry in content.shared_counters) == counters
    assert contents
    for content in contents:
        assert not (content.devices and content.shared_counters)
        assert len(content.devices) <= (64 if any(map(is_heavy, content.devices)) else 128)
        assert len(content.shared_counters) <= 8
    assert all(content != SliceContent() for content in contents) or contents == (SliceContent(),)


steps = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3), st.booleans()), min_size=1, max_size=6)


@given(steps)
@settings(max_examples=60, deadline=None)
def test_every_change_settles_in_one_round_and_never_mixes_generations(steps: list[tuple[int, int, bool]]) -> None:
    stored: list[resource_v1.ResourceSlice] = []
    highest = 0
    for count, revision, lose in steps:
        if lose and stored:
            stored = stored[1:]
        pool = Pool(devices=tuple(device(f"d-{index}", {"r": revision}) for index in range(count)), node_name="n1")
        contents = split(pool)
        result = plan("x.example.com", "n1", pool, contents, kept(stored), owner=OWNER, accepted={})
        stored = stored_by(result, stored)
        again = plan("x.example.com", "n1", pool, contents, kept(stored), owner=OWNER, accepted={})
        assert len(again) == 0
        generations = {entry.spec.pool.generation for entry in stored}
        assert len(generations) == 1 and {entry.spec.pool.resource_slice_count for entry in stored} == {len(contents)}
        assert len(stored) == len(contents)
        assert min(generations) >= highest or result.creates
        highest = min(generations)
        assert _in_order(stored) == pool.devices


def _name(entry: resource_v1.ResourceSlice) -> str:
    return entry.metadata.name


def _in_order(stored: list[resource_v1.ResourceSlice]) -> tuple[resource_v1.Device, ...]:
    return tuple(one for entry in sorted(stored, key=_name) for one in entry.spec.devices)


def test_the_owner_used_here_is_a_node() -> None:
    assert meta_v1.OwnerReference(api_version="v1", kind="Node", name="n1", uid="node-uid", controller=True) == OWNER
