"""Slices in the API follow what a driver wants, through faults, losses and other writers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from kubedra.api import errors, kinds, resource_v1
from kubedra.client.clock import RealClock
from kubedra.sdk.nodes import NodeOwners
from kubedra.sdk.publishing import PublisherSettings, SlicePublisher
from kubedra.sdk.resources import Pool, device
from tests.unit.sdk.memory_api import MemoryApi

DRIVER = "gpu.example.com"


@asynccontextmanager
async def publishing(api: MemoryApi, node: str = "", **options: Any) -> AsyncIterator[tuple[SlicePublisher, list[str]]]:
    reports: list[str] = []
    owners = NodeOwners(api, node=node)  # type: ignore[arg-type]
    publisher = SlicePublisher(
        api,  # type: ignore[arg-type]
        PublisherSettings(driver=DRIVER, node=node),
        owners,
        RealClock(),
        report=reports.append,
        **options,
    )
    await owners.start()
    await publisher.start()
    try:
        yield publisher, reports
    finally:
        await publisher.stop()
        await owners.stop()


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition; the test's own timeout is the limit."""
    while not condition():
        await asyncio.sleep(0.005)


def slices(api: MemoryApi) -> list[resource_v1.ResourceSlice]:
    return api.all(kinds.RESOURCE_SLICE)


def pool(count: int, node: str = "n1") -> Pool:
    return Pool(devices=tuple(device(f"d-{index}", {"n": index}) for index in range(count)), node_name=node)


async def test_pools_are_published_with_the_node_as_owner(api: MemoryApi) -> None:
    async with publishing(api) as (publisher, reports):
        publisher.publish({"n1": pool(130)})
        await publisher.wait_published()
        first, second = slices(api)
        assert (len(first.spec.devices), len(second.spec.devices)) == (128, 2)
        node = api.all(kinds.NODE)[0]
        assert first.metadata.owner_references[0].uid == node.metadata.uid
        assert first.metadata.owner_references[0].controller is True
        assert not reports


async def test_nothing_is_written_again_by_a_second_publisher(api: MemoryApi) -> None:
    async with publishing(api) as (publisher, _):
        publisher.publish({"n1": pool(3)})
        await publisher.wait_published()
    api.writes.clear()
    async with publishing(api) as (publisher, _):
        publisher.publish({"n1": pool(3)})
        await publisher.wait_published()
        assert api.writes == []


async def test_lost_slices_come_back_and_foreign_ones_go(api: MemoryApi) -> None:
    async with publishing(api) as (publisher, _):
        publisher.publish({"n1": pool(3)})
        await publisher.wait_published()
        for _ in range(3):
            name = slices(api)[0].metadata.name
            await api.delete(kinds.RESOURCE_SLICE, name)
            await until(lambda name=name: slices(api) and slices(api)[0].metadata.name != name)
        stray = {"metadata": {"name": "stray"}, "spec": {"driver": DRIVER, "nodeName": "n1", "pool": {"name": "n1"}}}
        await api.create(kinds.RESOURCE_SLICE, stray)
        await until(lambda: len(slices(api)) == 1 and slices(api)[0].metadata.name != "stray")


async def test_a_slice_that_is_deleted_before_its_creation_is_answered_comes_back(api: MemoryApi) -> None:
    create = api.create
    raced = []

    async def slow_create(*arguments: Any, **options: Any) -> Any:
        new = await create(*arguments, **options)
        if new.metadata.name not in raced and len(raced) < 2:
            raced.append(new.metadata.name)
            await api.delete(kinds.RESOURCE_SLICE, new.metadata.name)
            await asyncio.sleep(0.05)
        return new

    api.create = slow_create  # type: ignore[method-assign]
    async with publishing(api) as (publisher, _):
        publisher.publish({"n1": pool(3)})
        await until(lambda: len(raced) == 2 and len(slices(api)) == 1)


async def test_a_pool_that_is_not_wanted_any_more_is_deleted(api: MemoryApi) -> None:
    async with publishing(api) as (publisher, _):
        publisher.publish({"n1": pool(3), "second": pool(2)})
        await publisher.wait_published()
        assert len(slices(api)) == 2
        publisher.publish({"second": pool(2)})
        await until(lambda: [entry.spec.pool.name for entry in slices(api)] == ["second"])
    async with publishing(api, manages=lambda entry: entry.node_name == "n1") as (publisher, _):
        await api.create(
            kinds.RESOURCE_SLICE,
            {"metadata": {"name": "other"}, "spec": {"driver": DRIVER, "nodeName": "n2", "pool": {"name": "n2"}}},
        )
        publisher.resync("second")
        publisher.resync("n2")
        await until(lambda: [entry.metadata.name for entry in slices(api)] == ["other"])


async def test_a_change_is_one_patch_with_preconditions(api: MemoryApi) -> None:
    async with publishing(api) as (publisher, _):
        publisher.publish({"n1": pool(3)})
        await publisher.wait_published()
        api.writes.clear()
        publisher.publish({"n1": pool(4)})
        await publisher.wait_published()
        assert [verb for verb, _, _ in api.writes] == ["patch"]
        assert len(slices(api)[0].spec.devices) == 4
        publisher.publish({"n1": pool(0)})
        await publisher.wait_published()
        assert slices(api)[0].spec.devices == () and len(slices(api)) == 1


async def test_slices_wait_for_their_node_and_follow_its_uid(api: MemoryApi) -> None:
    async with publishing(api) as (publisher, reports):
        publisher.publish({"n2": pool(1, "n2")})
        await publisher.wait_published()
        assert slices(api) == []
        await api.create(kinds.NODE, {"metadata": {"name": "n2"}})
        await until(lambda: len(slices(api)) == 1)
        old = slices(api)[0].metadata.owner_references[0].uid
        await api.delete(kinds.NODE, "n2")
        await api.create(kinds.NODE, {"metadata": {"name": "n2"}})
        await until(lambda: slices(api) and slices(api)[0].metadata.owner_references[0].uid != old)
        assert len(slices(api)) == 1 and not reports


async def test_faults_are_reported_and_tried_again(api: MemoryApi) -> None:
    left = [errors.ApiError(500, "InternalError", "boom"), ConnectionError("gone"), errors.bad_request("no")]
    api.fault = lambda verb, name: left.pop() if verb == "create" and left else None
    async with publishing(api) as (publisher, reports):
        publisher.publish({"n1": pool(1)})
        await until(lambda: slices(api))
        await publisher.wait_published()
        assert len(reports) == 3 and 'publishing pool "n1" of gpu.example.com failed: no' in reports[0]


async def test_dropped_fields_are_reported_once(api: MemoryApi) -> None:
    def drop(tree: dict[str, Any]) -> None:
        for entry in tree["spec"].get("devices", []) if tree["kind"] == "ResourceSlice" else []:
            entry.pop("bindsToNode", None)

    api.change = drop
    async with publishing(api) as (publisher, reports):
        publisher.publish({"n1": Pool(devices=(resource_v1.Device(name="a", binds_to_node=True),), node_name="n1")})
        await publisher.wait_published()
        api.writes.clear()
        for _ in range(3):
            publisher.resync("n1")
            await publisher.wait_published()
        assert api.writes == [] and len(reports) == 1
        assert 'pool "n1", slice #0: some fields were dropped by the apiserver' in reports[0]
        assert reports[0].endswith('devices["a"].binds_to_node')


async def test_a_broken_pool_is_reported_and_the_old_one_stays(api: MemoryApi) -> None:
    async with publishing(api) as (publisher, reports):
        publisher.publish({"n1": pool(2)})
        await publisher.wait_published()
        twice = Pool(devices=(device("a", {}), device("a", {})), node_name="n1")
        publisher.publish({"n1": twice})
        await publisher.wait_published()
        assert len(slices(api)[0].spec.devices) == 2
        assert reports == ['found duplicate device "a" in pool "n1"']


async def test_one_publisher_serves_hundreds_of_nodes(api: MemoryApi) -> None:
    for index in range(300):
        await api.create(kinds.NODE, {"metadata": {"name": f"h{index}"}})
    async with publishing(api) as (publisher, reports):
        publisher.publish({f"h{index}": pool(8, f"h{index}") for index in range(300)})
        await publisher.wait_published()
        assert len(slices(api)) == 300 and not reports
