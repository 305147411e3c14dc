"""Hollow nodes: registered in a batch, their pods run and end without processes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from kubedra.api import kinds
from kubedra.node.hollow import EXIT_CODE, RUN_SECONDS, HollowNode, HollowNodes, HollowSettings
from tests.unit.node.fake_api import FakeApi
from tests.unit.node.scripted_driver import until


@contextlib.asynccontextmanager
async def fleet(api: FakeApi, count: int = 3, **options: Any) -> AsyncIterator[HollowNodes]:
    settings = HollowSettings(tuple(HollowNode(f"h{i}", labels={"pool": "big"}) for i in range(count)))
    hollow = HollowNodes(api, settings, **options)
    task = asyncio.create_task(hollow.run())
    await hollow.ready.wait()
    try:
        yield hollow
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def pod(api: FakeApi, name: str, node: str = "h1", **metadata: Any) -> dict[str, Any]:
    return api.put(
        kinds.POD,
        {"metadata": {"name": name, **metadata}, "spec": {"nodeName": node, "containers": [{"name": "main"}]}},
        "default",
    )


async def test_nodes_and_long_leases_are_registered() -> None:
    api = FakeApi()
    async with fleet(api, 100):
        assert sum(key[0] == "nodes" for key in api.objects) == 100
        assert api.tree(kinds.NODE, "h7")["metadata"]["labels"]["pool"] == "big"
        lease = api.tree(kinds.LEASE, "h7", "kube-node-lease")
        assert lease["spec"]["leaseDurationSeconds"] == 3600
    async with fleet(api, 100):
        assert sum(key[0] == "nodes" for key in api.objects) == 100


async def test_a_pod_costs_one_patch_to_run_and_goes_when_deleted() -> None:
    api = FakeApi()
    prepared = []

    async def prepare(pod: Any) -> None:
        prepared.append(pod.metadata.name)

    async with fleet(api, prepare=prepare):
        tree = pod(api, "p")
        pod(api, "elsewhere", node="other")
        await until(lambda: api.tree(kinds.POD, "p", "default").get("status", {}).get("phase") == "Running")
        assert len(api.patches) == 1
        assert prepared == ["p"]
        assert "status" not in api.tree(kinds.POD, "elsewhere", "default")
        current = api.tree(kinds.POD, "p", "default")
        current["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        api.put(kinds.POD, current, "default")
        await until(lambda: ("pods", "default", "p") not in api.objects)
        assert api.patches[-1][1]["status"]["phase"] == "Succeeded"
        assert tree["metadata"]["uid"] == api.patches[-1][1]["metadata"]["uid"]


async def test_a_pod_ends_by_itself_when_told_so() -> None:
    api = FakeApi()
    async with fleet(api):
        pod(api, "p", annotations={RUN_SECONDS: "0.01", EXIT_CODE: "3"})
        await until(lambda: api.tree(kinds.POD, "p", "default").get("status", {}).get("phase") == "Failed")
        status = api.tree(kinds.POD, "p", "default")["status"]
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


async def test_a_failed_preparation_is_tried_again() -> None:
    api = FakeApi()
    tries = []

    async def prepare(pod: Any) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("not yet")

    async with fleet(api, prepare=prepare):
        pod(api, "p")
        await until(lambda: api.tree(kinds.POD, "p", "default").get("status", {}).get("phase") == "Running")
        assert len(tries) == 3


async def test_claims_are_checked_although_no_driver_is_asked() -> None:
    api = FakeApi()
    async with fleet(api):
        spec = {
            "nodeName": "h1",
            "containers": [{"name": "main"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
        }
        tree = api.put(kinds.POD, {"metadata": {"name": "p"}, "spec": spec}, "default")
        await until(lambda: "FailedPrepareDynamicResources" in dict(api.events()))
        consumer = {"resource": "pods", "name": "p", "uid": tree["metadata"]["uid"]}
        allocation = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}
        status = {"reservedFor": [consumer], "allocation": allocation}
        api.put(kinds.RESOURCE_CLAIM, {"metadata": {"name": "c"}, "status": status}, "default")
        await until(lambda: api.tree(kinds.POD, "p", "default").get("status", {}).get("phase") == "Running")
