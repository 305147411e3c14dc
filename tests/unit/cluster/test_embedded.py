from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubedra.api import kinds
from kubedra.cluster.embedded import Cluster, ClusterSettings, PartRefused, running
from kubedra.cluster.state import read_state


async def test_a_cluster_without_a_fleet_is_a_control_plane_and_leaves_bare_nodes_alone(tmp_path: Path) -> None:
    async with running(ClusterSettings(tmp_path / "data", port=0)) as cluster:
        client = cluster.client()
        made = await client.create(kinds.NODE, {"metadata": {"name": "bare"}})
        state = read_state(tmp_path / "data")
        assert state is not None and state.server == cluster.server.url
        node = await client.get(kinds.NODE, "bare")
        assert node.metadata.uid == made.metadata.uid
        assert node.spec == made.spec and node.spec.taints == ()
    assert read_state(tmp_path / "data") is None


async def test_metrics_of_server_and_scheduler_stand_on_one_page(tmp_path: Path) -> None:
    async with running(ClusterSettings(tmp_path / "data", port=0)) as cluster:
        client = cluster.client()
        text = ""
        while "scheduler_pending_pods" not in text:
            await asyncio.sleep(0.01)
            text = (await client.request("GET", "/metrics")).body.decode()
    assert "apiserver_request_total" in text


async def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    async with running(ClusterSettings(tmp_path / "data", port=0)) as cluster:
        made = await cluster.client().create(kinds.CONFIG_MAP, {"metadata": {"name": "c"}}, "default")
    again = Cluster(ClusterSettings(tmp_path / "data", port=0))
    await again.start()
    try:
        found = await again.client().get(kinds.CONFIG_MAP, "c", "default")
        assert found.metadata.uid == made.metadata.uid
    finally:
        await again.stop()


async def test_a_checkpoint_that_cant_be_trusted_is_a_sentence_at_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (tmp_path / "fleet.yaml").write_text("kind: Fleet\npools:\n- name: pool\n")
    cluster = Cluster(ClusterSettings(data, tmp_path / "fleet.yaml", port=0, with_driver=False))
    checkpoints = data / "nodes" / "pool-0" / "checkpoints"
    await cluster.start()
    checkpoints.mkdir(parents=True, exist_ok=True)
    (checkpoints / "dra_manager_state").write_text("garbage")
    try:
        with pytest.raises(PartRefused, match=r"agent pool-0: .*please drain node and remove DRA state file"):
            await cluster.ready()
    finally:
        await cluster.stop()
