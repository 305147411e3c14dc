"""A server without sockets, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(ServerSettings(tmp_path / "data", http=False))
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[InProcessClient]:
    client = InProcessClient(server)
    yield client
    await client.close()
