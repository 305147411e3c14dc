"""A creation whose answer is lost is not made twice: the server picks the name, so nothing else would notice."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.client.clock import RealClock
from kubedra.controllers.manager import ControllerManager, ControllerSettings
from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings


class LostAnswers:
    """A client whose creations of a kind are made, while server and watches are gone before they are answered."""

    def __init__(self, client: InProcessClient, kind: kinds.Kind[Any]) -> None:
        self._client = client
        self._kind = kind
        self.lost = 0
        self.up = asyncio.Event()
        self.up.set()

    async def watch(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        async for event in self._client.watch(*arguments, **options):
            await self.up.wait()
            yield event

    async def create(self, kind: kinds.Kind[Any], *arguments: Any, **options: Any) -> Any:
        lose = kind is self._kind and self.lost < 2
        if lose:
            self.up.clear()
        made = await self._client.create(kind, *arguments, **options)
        if lose:
            self.lost += 1
            # The server is back before the watches are.
            asyncio.get_running_loop().call_later(0.3, self.up.set)
            raise ConnectionError("the connection was closed")
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[InProcessClient]:
    server = Server(ServerSettings(data_dir=tmp_path / "data", http=False))
    await server.start()
    try:
        yield InProcessClient(server)
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def controllers(client: Any) -> AsyncIterator[None]:
    running = asyncio.create_task(ControllerManager(client, ControllerSettings(ca=""), RealClock()).run())
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def counted(client: InProcessClient, kind: kinds.Kind[Any], count: int) -> int:
    """How many objects there are once there have been so many, and some time has passed."""
    async with asyncio.timeout(20):
        while len((await client.list(kind, "default")).items) < count:
            await asyncio.sleep(0.02)
    await asyncio.sleep(1.0)
    return len((await client.list(kind, "default")).items)


async def test_a_pod_gets_one_claim(client: InProcessClient) -> None:
    lossy = LostAnswers(client, kinds.RESOURCE_CLAIM)
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    template = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    await client.create(kinds.RESOURCE_CLAIM_TEMPLATE, template, "default")
    async with controllers(lossy):
        spec = {
            "containers": [{"name": "c", "image": "i"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        }
        await client.create(kinds.POD, {"metadata": {"name": "p"}, "spec": spec}, "default")
        assert await counted(client, kinds.RESOURCE_CLAIM, 1) == 1
        pod = await client.get(kinds.POD, "p", "default")
        (claim,) = (await client.list(kinds.RESOURCE_CLAIM, "default")).items
        assert [s.resource_claim_name for s in pod.status.resource_claim_statuses] == [claim.metadata.name]
    assert lossy.lost == 1


async def test_a_replica_set_makes_as_many_pods_as_it_should(client: InProcessClient) -> None:
    lossy = LostAnswers(client, kinds.POD)
    async with controllers(lossy):
        labels = {"app": "a"}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": pod}
        await client.create(kinds.REPLICA_SET, {"metadata": {"name": "a"}, "spec": spec}, "default")
        assert await counted(client, kinds.POD, 3) == 3
    assert lossy.lost == 2
