"""Two agents never share a node's folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from kubedra.node.node_lock import NodeTaken, node_lock
from kubedra.testing.clock import FakeClock


async def test_a_second_agent_is_told_who_has_the_node(tmp_path: Path) -> None:
    clock = FakeClock()
    path = tmp_path / "agent.lock"

    async def second() -> None:
        async with node_lock(path, "n1", clock):
            pytest.fail("two agents on one node")

    async with node_lock(path, "n1", clock):
        waiting = asyncio.create_task(second())
        await clock.settle()
        await clock.advance(4)
        assert not waiting.done()
        await clock.advance(2)
        with pytest.raises(NodeTaken, match=rf"node n1 has an agent already \(process {os.getpid()}, "):
            await waiting
    async with node_lock(path, "n1", clock):
        assert path.stat().st_mode & 0o777 == 0o600
