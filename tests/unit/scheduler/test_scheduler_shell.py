"""The scheduler against an API server in the same process: what is written, in which order, and what is undone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import core_v1, kinds
from kubedra.api.errors import ApiError
from kubedra.api.resource_v1 import ResourceClaim
from kubedra.scheduler.claim_writes import FINALIZER
from kubedra.scheduler.queue import QueueSettings
from kubedra.scheduler.scheduler import Scheduler
from kubedra.scheduler.settings import SchedulerSettings
from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings

FAST = SchedulerSettings(
    queue=QueueSettings(initial_backoff=0.05, max_backoff=0.1), binding_poll=0.05, gate_report_after=0.05
)


class World:
    """A server, a client, and schedulers that come and go."""

    def __init__(self, client: InProcessClient) -> None:
        self.client = client
        self.running: asyncio.Task[None] | None = None

    def start(self, client: Any = None) -> Scheduler:
        scheduler = Scheduler(client or self.client, FAST)
        self.running = asyncio.create_task(scheduler.run())
        return scheduler

    async def kill(self) -> None:
        if self.running is not None:
            self.running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.running
            self.running = None

    async def node(self, name: str = "n1", **spec: Any) -> None:
        status = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}
        tree = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}
        await self.client.create(kinds.NODE, tree)
        await self.client.patch(kinds.NODE, name, {"status": status}, subresource="status")
        await self.client.patch(kinds.NODE, name, {"spec": {"taints": spec.get("taints")}})

    async def devices(self, *names: str, node: str = "n1", **device: Any) -> None:
        spec = {
            "driver": "d.example",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": name, **device} for name in names],
        }
        await self.create(kinds.RESOURCE_SLICE, f"{node}-d", spec)

    async def device_class(self, name: str = "gpu", **more: Any) -> None:
        selector = {"cel": {"expression": 'device.driver == "d.example"'}}
        await self.create(kinds.DEVICE_CLASS, name, {"selectors": [selector], **more})

    async def claim(self, name: str) -> None:
        request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
        await self.create(kinds.RESOURCE_CLAIM, name, {"devices": {"requests": [request]}})

    async def pod(self, name: str, *claims: str, requests: dict[str, str] | None = None, **spec: Any) -> None:
        resources = {"requests": requests or {}, "limits": requests or {}}
        body = {
            "containers": [{"name": "c", "image": "i", "resources": resources}],
            "resourceClaims": [{"name": item, "resourceClaimName": item} for item in claims],
            **spec,
        }
        await self.create(kinds.POD, name, body)

    async def create(self, kind: kinds.Kind[Any], name: str, spec: dict[str, Any]) -> None:
        namespace = "default" if kind.namespaced else ""
        tree = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
        await self.client.create(kind, tree, namespace)

    async def get_pod(self, name: str) -> core_v1.Pod:
        return await self.client.get(kinds.POD, name, "default")

    async def get_claim(self, name: str) -> ResourceClaim:
        return await self.client.get(kinds.RESOURCE_CLAIM, name, "default")

    async def bound(self, name: str) -> core_v1.Pod:
        async def is_bound() -> core_v1.Pod | None:
            found = await self.get_pod(name)
            return found if found.spec.node_name else None

        return await until(is_bound)

    async def told(self, name: str, text: str) -> core_v1.Pod:
        async def is_told() -> core_v1.Pod | None:
            found = await self.get_pod(name)
            messages = [c.message for c in found.status.conditions if c.type == "PodScheduled" and c.status == "False"]
            return found if any(text in message for message in messages) else None

        return await until(is_told)


async def until(probe: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(20):
        while True:
            found = await probe()
            if found:
                return found
            await asyncio.sleep(0.01)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    server = Server(ServerSettings(data_dir=tmp_path / "data", http=False))
    await server.start()
    made = World(InProcessClient(server))
    try:
        yield made
    finally:
        await made.kill()
        await server.stop()


class Failing:
    """A client whose first matching request fails."""

    def __init__(self, client: InProcessClient, method: str, matches: Callable[..., bool]) -> None:
        self._client = client
        self._method = method
        self._matches = matches
        self.failed = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._client, name)
        if name != self._method:
            return real

        async def maybe(*arguments: Any, **options: Any) -> Any:
            if not self.failed and self._matches(*arguments, **options):
                self.failed += 1
                raise ApiError(500, "InternalError", "made up")
            return await real(*arguments, **options)

        return maybe


class LostAnswer:
    """A client of a server that carries out one matching request, dies before it answers, and comes back."""

    def __init__(self, client: InProcessClient, matches: Callable[..., bool]) -> None:
        self._client = client
        self._matches = matches
        self.died = asyncio.Event()
        self.up = asyncio.Event()
        self.up.set()

    async def watch(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        async for event in self._client.watch(*arguments, **options):
            await self.up.wait()
            yield event

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._client, name)

        async def maybe(*arguments: Any, **options: Any) -> Any:
            if not self.up.is_set():
                raise ConnectionError("nobody listens")
            if not self.died.is_set() and self._matches(*arguments, **options):
                self.up.clear()
                self.died.set()
                await real(*arguments, **options)
                raise ConnectionError("the connection was closed")
            return await real(*arguments, **options)

        return maybe


@pytest.mark.parametrize("step", ["claim", "pod"])
async def test_a_write_whose_answer_is_lost_is_not_taken_for_one_that_was_not_made(world: World, step: str) -> None:
    def matches(*arguments: Any, **options: Any) -> bool:
        if step == "claim":
            return arguments[0] is kinds.RESOURCE_CLAIM and options.get("subresource") == "status"
        return str(arguments[1]).endswith("/binding")

    await world.node()
    await world.device_class()
    await world.devices("x")
    await world.claim("c")
    await world.claim("d")
    client = LostAnswer(world.client, matches)
    scheduler = world.start(client)
    await world.pod("p", "c")
    async with asyncio.timeout(20):
        await client.died.wait()
    await asyncio.sleep(0.1)
    assert scheduler.store.ledger.holders(("d.example", "n1", "x"))
    client.up.set()
    await world.pod("q", "d")
    bound = await world.bound("p")
    await world.told("q", "cannot allocate all claims")
    claim = await world.get_claim("c")
    assert [consumer.uid for consumer in claim.status.reserved_for] == [bound.metadata.uid]
    assert (await world.get_claim("d")).status.allocation is None


async def test_claim_first_then_pod(world: World) -> None:
    world.start()
    await world.node()
    await world.device_class()
    await world.devices("x")
    await world.claim("c")
    await world.pod("p", "c")
    bound = await world.bound("p")
    claim = await world.get_claim("c")
    assert bound.spec.node_name == "n1"
    assert claim.metadata.finalizers == (FINALIZER,)
    assert claim.status.allocation is not None
    assert claim.status.allocation.devices is not None
    assert [result.device for result in claim.status.allocation.devices.results] == ["x"]
    assert [consumer.uid for consumer in claim.status.reserved_for] == [bound.metadata.uid]


async def test_a_pending_pod_says_why_and_is_tried_again_when_that_changes(world: World) -> None:
    world.start()
    await world.node()
    await world.device_class()
    await world.devices("x")
    await world.claim("c")
    await world.claim("d")
    await world.pod("p", "c")
    await world.bound("p")
    await world.pod("q", "d")
    told = await world.told("q", "cannot allocate all claims")
    (condition,) = (c for c in told.status.conditions if c.type == "PodScheduled")
    assert condition.reason == "Unschedulable"
    assert condition.message.startswith(
        "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1 nodes are"
        " available: 1 Preemption is not helpful for scheduling. Claim default/d, request r: "
    )
    await world.node("n2")
    await world.devices("y", node="n2")
    assert (await world.bound("q")).spec.node_name == "n2"


async def test_a_pod_that_waits_for_its_claim_says_so(world: World) -> None:
    world.start()
    await world.node()
    await world.pod("p", "late")
    await world.told("p", 'resourceclaim "late" not found')
    await world.device_class()
    await world.devices("x")
    await world.claim("late")
    await world.bound("p")


@pytest.mark.parametrize("step", ["claim", "pod"])
async def test_a_failed_step_is_undone_and_tried_again(world: World, step: str) -> None:
    def fails(*arguments: Any, **options: Any) -> bool:
        if step == "claim":
            return arguments[0] is kinds.RESOURCE_CLAIM and options.get("subresource") == "status"
        return str(arguments[1]).endswith("/binding")

    client = Failing(world.client, "patch" if step == "claim" else "request", fails)
    scheduler = world.start(client)
    await world.node()
    await world.device_class()
    await world.devices("x")
    await world.claim("c")
    await world.pod("p", "c")
    bound = await world.bound("p")
    assert client.failed == 1
    claim = await world.get_claim("c")
    assert [consumer.uid for consumer in claim.status.reserved_for] == [bound.metadata.uid]
    await until(lambda: _settled(scheduler))


async def _settled(scheduler: Scheduler) -> bool:
    return len(scheduler.queue) == 0 and not any(scheduler.view.is_assumed(pod.uid) for pod in scheduler.view.pods())


async def test_a_scheduler_that_dies_between_claim_and_pod_leaves_work_that_the_next_one_ends(world: World) -> None:
    await world.node()
    await world.node("n2")
    await world.device_class()
    await world.devices("x")
    await world.devices("y", node="n2")
    await world.claim("c")
    stuck = Failing(world.client, "request", lambda method, path, **_: False)
    reached = asyncio.Event()

    async def never(*arguments: Any, **options: Any) -> Any:
        if str(arguments[1]).endswith("/binding"):
            reached.set()
            await asyncio.Event().wait()
        return await world.client.request(*arguments, **options)

    stuck.request = never  # type: ignore[attr-defined]
    world.start(stuck)
    await world.pod("p", "c")
    async with asyncio.timeout(20):
        await reached.wait()
    before = (await world.get_claim("c")).status.allocation
    assert before is not None
    await world.kill()
    world.start()
    bound = await world.bound("p")
    after = await world.get_claim("c")
    assert after.status.allocation == before
    assert [consumer.uid for consumer in after.status.reserved_for] == [bound.metadata.uid]


async def report(world: World, claim: str, **conditions: str) -> None:
    """What a controller says about the device of a claim."""
    entries = [
        {"type": name, "status": status, "reason": "R", "message": "msg", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for name, status in conditions.items()
    ]
    device = {"driver": "d.example", "pool": "n1", "device": "x", "conditions": entries}
    await world.client.patch(
        kinds.RESOURCE_CLAIM, claim, {"status": {"devices": [device]}}, "default", subresource="status"
    )


async def waiting_for_devices(world: World) -> None:
    world.start()
    await world.node()
    await world.device_class()
    await world.devices("x", bindingConditions=["ready"], bindingFailureConditions=["broken"])
    await world.claim("c")
    await world.pod("p", "c")

    async def is_nominated() -> bool:
        return (await world.get_pod("p")).status.nominated_node_name == "n1"

    await until(is_nominated)
    assert not (await world.get_pod("p")).spec.node_name


async def test_a_pod_waits_for_its_devices_to_be_ready(world: World) -> None:
    await waiting_for_devices(world)
    await report(world, "c", ready="True")
    assert (await world.bound("p")).status.nominated_node_name == ""


async def test_a_device_that_fails_is_given_back_and_another_attempt_made(world: World) -> None:
    await waiting_for_devices(world)
    await report(world, "c", broken="True")

    async def is_fresh() -> bool:
        status = (await world.get_claim("c")).status
        return status.allocation is not None and not status.devices and bool(status.reserved_for)

    await until(is_fresh)
    await report(world, "c", ready="True")
    await world.bound("p")


async def test_a_pod_deleted_while_it_waits_leaves_no_reservation(world: World) -> None:
    await waiting_for_devices(world)
    await world.client.delete(kinds.POD, "p", "default", grace_period_seconds=0)

    async def is_free() -> bool:
        return not (await world.get_claim("c")).status.reserved_for

    await until(is_free)


async def test_an_extended_resource_gets_its_claim(world: World) -> None:
    world.start()
    await world.node()
    await world.device_class("gpu", extendedResourceName="example.com/gpu")
    await world.devices("x", "y")
    await world.pod("p", requests={"example.com/gpu": "2"})
    bound = await world.bound("p")
    status = bound.status.extended_resource_claim_status
    assert status is not None
    assert [(m.container_name, m.request_name) for m in status.request_mappings] == [("c", "container-0-request-0")]
    claim = await world.get_claim(status.resource_claim_name)
    assert claim.metadata.owner_references[0].uid == bound.metadata.uid
    assert [consumer.uid for consumer in claim.status.reserved_for] == [bound.metadata.uid]


async def test_a_volume_that_would_have_to_be_bound_keeps_the_pod_pending(world: World) -> None:
    world.start()
    await world.node()
    await world.pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}])
    await world.told("p", "spec.volumes[0].persistentVolumeClaim")
    assert not (await world.get_pod("p")).spec.node_name


async def test_pods_of_another_scheduler_are_left_alone(world: World) -> None:
    world.start()
    await world.node()
    await world.pod("theirs", schedulerName="other")
    await world.pod("ours")
    await world.bound("ours")
    assert not (await world.get_pod("theirs")).spec.node_name
