"""Which slices are written: as few as possible, never a mixture of two states, nothing foreign left over."""

from __future__ import annotations

import msgspec

from kubedra.api import meta_v1, resource_v1
from kubedra.sdk.resources import Pool, SliceContent, clean, device, pool_problems, split, version
from kubedra.sdk.slices import Accepted, Plan, digest, dropped_fields, index_of, plan, stored_slice

OWNER = meta_v1.OwnerReference(api_version="v1", kind="Node", name="n1", uid="node-uid", controller=True)


def pool_of(*sizes: int, **changes: object) -> Pool:
    devices = tuple(device(f"d-{index}", {"index": index}) for index in range(sum(sizes)))
    return msgspec.structs.replace(Pool(devices=devices, node_name="n1"), **changes)  # type: ignore[arg-type]


def planned(pool: Pool, stored: list[resource_v1.ResourceSlice], contents: tuple[SliceContent, ...] = ()) -> Plan:
    kept = [stored_slice(entry) for entry in stored]
    return plan("x.example.com", "n1", pool, contents or split(pool), kept, owner=OWNER, accepted={})


def stored_by(result: Plan, before: list[resource_v1.ResourceSlice]) -> list[resource_v1.ResourceSlice]:
    """What the API holds after a plan."""
    gone = {entry.name for entry in result.deletes}
    after = {entry.metadata.name: entry for entry in before if entry.metadata.name not in gone}
    revision = 100 + len(before)
    for update in result.updates:
        after[update.stored.name] = msgspec.structs.replace(after[update.stored.name], spec=update.spec)
    for create in result.creates:
        revision += 1
        meta = meta_v1.ObjectMeta(
            name=create.generate_name + "abcde",
            uid=f"uid-{revision}",
            resource_version=str(revision),
            owner_references=(OWNER,),
        )
        after[meta.name] = resource_v1.ResourceSlice(metadata=meta, spec=create.spec)
    return list(after.values())


def test_names_are_numbered_so_that_order_survives() -> None:
    result = planned(pool_of(300), [])
    assert [create.generate_name for create in result.creates] == [
        "00000-x.example.com-n1-",
        "00001-x.example.com-n1-",
        "00002-x.example.com-n1-",
    ]
    assert [len(create.spec.devices) for create in result.creates] == [128, 128, 44]
    assert {create.spec.pool.resource_slice_count for create in result.creates} == {3}
    assert index_of("0000a-x-n1-abcde") == 10 and index_of("gpu-slice") is None


def test_nothing_is_written_when_nothing_changed() -> None:
    stored = stored_by(planned(pool_of(300), []), [])
    assert len(planned(pool_of(300), stored)) == 0


def test_one_changed_slice_is_one_write_and_keeps_the_generation() -> None:
    stored = stored_by(planned(pool_of(300), []), [])
    pool = pool_of(300)
    changed = msgspec.structs.replace(pool, devices=(*pool.devices[:-1], device("d-299", {"index": 299, "hot": True})))
    result = planned(changed, stored)
    assert (len(result.deletes), len(result.updates), len(result.creates)) == (0, 1, 0)
    assert result.updates[0].index == 2 and result.updates[0].spec.pool.generation == 1


def test_two_changed_slices_or_another_count_raise_the_generation_and_rewrite_all() -> None:
    stored = stored_by(planned(pool_of(300), []), [])
    result = planned(pool_of(400), stored)
    assert (len(result.deletes), len(result.updates), len(result.creates)) == (0, 3, 1)
    specs = [*(update.spec for update in result.updates), *(create.spec for create in result.creates)]
    assert {spec.pool.generation for spec in specs} == {2} and {spec.pool.resource_slice_count for spec in specs} == {4}
    fewer = planned(pool_of(200), stored)
    assert len(fewer.deletes) == 1 and {update.spec.pool.generation for update in fewer.updates} == {2}


def test_a_lost_slice_raises_the_generation_and_comes_back() -> None:
    stored = stored_by(planned(pool_of(300), []), [])
    result = planned(pool_of(300), [entry for entry in stored if index_of(entry.metadata.name) != 1])
    assert [create.index for create in result.creates] == [1] and len(result.updates) == 2
    assert result.creates[0].spec.pool.generation == 2


def test_foreign_old_and_doubled_slices_are_deleted() -> None:
    stored = stored_by(planned(pool_of(10), []), [])
    double = msgspec.structs.replace(stored[0], metadata=msgspec.structs.replace(stored[0].metadata, name="00000-y"))
    odd = msgspec.structs.replace(stored[0], metadata=msgspec.structs.replace(stored[0].metadata, name="by-hand"))
    old_spec = msgspec.structs.replace(stored[0].spec, pool=resource_v1.ResourcePool(name="n1", resource_slice_count=1))
    old = msgspec.structs.replace(
        stored[0], spec=old_spec, metadata=msgspec.structs.replace(stored[0].metadata, name="00000-old")
    )
    result = planned(pool_of(10), [*stored, double, odd, old])
    assert len(result.deletes) == 3 and not result.creates and not result.updates


def test_a_slice_of_a_node_that_was_created_anew_is_replaced() -> None:
    stored = stored_by(planned(pool_of(10), []), [])
    meta = msgspec.structs.replace(
        stored[0].metadata, owner_references=(msgspec.structs.replace(OWNER, uid="uid of the node before"),)
    )
    result = planned(pool_of(10), [msgspec.structs.replace(stored[0], metadata=meta)])
    assert len(result.deletes) == 1 and len(result.creates) == 1


def test_a_generation_of_the_driver_wins_when_it_is_higher() -> None:
    stored = stored_by(planned(pool_of(10, generation=7), []), [])
    assert stored[0].spec.pool.generation == 7
    assert len(planned(pool_of(10, generation=3), stored)) == 0
    assert planned(pool_of(10, generation=9), stored).updates[0].spec.pool.generation == 9


def test_times_that_the_api_adds_to_taints_are_no_change() -> None:
    taint = resource_v1.DeviceTaint(key="k", effect="NoSchedule")
    pool = Pool(devices=(resource_v1.Device(name="a", taints=(taint,)),), node_name="n1")
    stored = stored_by(planned(pool, []), [])
    timed = msgspec.structs.replace(taint, time_added="2026-01-01T00:00:00Z")
    spec = msgspec.structs.replace(stored[0].spec, devices=(resource_v1.Device(name="a", taints=(timed,)),))
    assert len(planned(pool, [msgspec.structs.replace(stored[0], spec=spec)])) == 0


def test_dropped_fields_are_named_and_not_asked_for_again() -> None:
    pool = Pool(
        devices=(resource_v1.Device(name="a", binds_to_node=True), resource_v1.Device(name="b")), node_name="n1"
    )
    stored = stored_by(planned(pool, []), [])
    wanted = stored[0].spec
    kept = msgspec.structs.replace(wanted, devices=(resource_v1.Device(name="a"), resource_v1.Device(name="b")))
    assert dropped_fields(wanted, kept) == ['devices["a"].binds_to_node']
    now = [msgspec.structs.replace(stored[0], spec=kept)]
    accepted = {0: Accepted(digest(wanted), digest(kept))}
    assert len(planned(pool, now)) == 1
    kept_now = [stored_slice(entry) for entry in now]
    assert len(plan("x.example.com", "n1", pool, split(pool), kept_now, owner=OWNER, accepted=accepted)) == 0


def test_an_empty_pool_is_one_empty_slice() -> None:
    result = planned(Pool(node_name="n1"), [])
    assert len(result.creates) == 1 and result.creates[0].spec.devices == ()


def test_one_heavy_device_halves_the_limit_of_its_slice_only() -> None:
    light = [device(f"l-{index}", {}) for index in range(128)]
    taint = resource_v1.DeviceTaint(key="k", effect="NoSchedule")
    heavy = resource_v1.Device(name="h", taints=(taint,))
    sizes = [len(content.devices) for content in split(Pool(devices=(*light, heavy, *light), all_nodes=True))]
    assert sizes == [128, 64, 65]
    assert [len(content.devices) for content in split(Pool(devices=(heavy, *light), all_nodes=True))] == [64, 65]


def test_counter_sets_have_slices_of_their_own_before_the_devices() -> None:
    counters = tuple(
        resource_v1.CounterSet(name=f"c-{index}", counters={"m": resource_v1.Counter(value="1")}) for index in range(9)
    )
    contents = split(Pool(devices=(device("a", {}),), shared_counters=counters, all_nodes=True))
    assert [len(content.shared_counters) for content in contents] == [8, 1, 0]
    assert [len(content.devices) for content in contents] == [0, 0, 1]


def test_a_broken_pool_is_refused_with_every_reason() -> None:
    consumed = resource_v1.DeviceCounterConsumption(counter_set="s", counters={"q": resource_v1.Counter(value="1")})
    missing = resource_v1.DeviceCounterConsumption(counter_set="t", counters={})
    pool = Pool(
        devices=(
            resource_v1.Device(name="a", consumes_counters=(consumed, missing)),
            resource_v1.Device(name="a"),
            resource_v1.Device(name="Bad_Name"),
        ),
        shared_counters=(resource_v1.CounterSet(name="s"), resource_v1.CounterSet(name="s")),
    )
    problems = pool_problems("p", pool)
    assert 'found duplicate device "a" in pool "p"' in problems
    assert 'found duplicate counter set "s" in pool "p"' in problems
    assert 'counter set "t" referenced by device "a" not found' in problems
    assert 'counter "q" referenced by device "a" not found in counter set "s"' in problems
    assert any("exactly one of node_name" in problem for problem in problems)
    assert any("Bad_Name" in problem for problem in problems)


def test_a_bad_attribute_costs_the_attribute_and_not_the_slice() -> None:
    bad = device(
        "a",
        {
            "driverVersion": version("6.19.14.31400000"),
            "long": "x" * 65,
            "bad name": 1,
            "ok": "y",
            "n": resource_v1.DeviceAttribute(),
        },
        memory="0.5Gi",
        odd="many",
    )
    cleaned, dropped = clean(Pool(devices=(bad,), all_nodes=True))
    assert set(cleaned.devices[0].attributes) == {"ok"}
    assert cleaned.devices[0].capacity["memory"].value == "512Mi" and "odd" not in cleaned.devices[0].capacity
    assert len(dropped) == 5
    assert any("6.19.14.31400000" in sentence for sentence in dropped)


def test_more_than_32_attributes_are_cut() -> None:
    many = device("a", {f"a{index}": index for index in range(40)}, memory="1Gi")
    cleaned, dropped = clean(Pool(devices=(many,), all_nodes=True))
    assert len(cleaned.devices[0].attributes) == 31 and len(dropped) == 9
