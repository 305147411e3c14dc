"""The API server as a process: who may come in, how it stops, what survives its death."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import ssl
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.client import kubeconfig
from kubedra.client.https import HttpsClient
from kubedra.server.http.listening import PortInUse
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings
from tests.interop.server_process import running_server

pytestmark = pytest.mark.system


def ask(url: str, path: str, token: str = "", certificates: tuple[Path, Path] | None = None) -> tuple[int, Any]:
    context = ssl._create_unverified_context()
    if certificates is not None:
        context.load_cert_chain(*certificates)
    connection = http.client.HTTPSConnection(url.removeprefix("https://"), context=context, timeout=10)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    try:
        return answer.status, json.loads(body)
    except ValueError:
        return answer.status, body.decode()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_strangers_see_only_that_it_lives(data: Path) -> None:
    with running_server(data) as process:
        url = process.url  # type: ignore[attr-defined]
        assert ask(url, "/readyz") == (200, "ok")
        assert ask(url, "/version")[1]["minor"] == "37"
        for path in ("/api/v1/pods", "/healthz/ping", "/readyz2", "/metrics", "/versions", "/apis", "/openapi/v3"):
            assert ask(url, path)[0] == 401
        assert ask(url, "/api/v1/pods", "wrong")[0] == 401
        assert ask(url, "/api/v1/pods", "admin")[0] == 200
        pki = data / "pki"
        assert ask(url, "/api/v1/pods", certificates=(pki / "admin.crt", pki / "admin.key"))[0] == 200
        agents = (data / "tokens" / "agents").read_text()
        assert ask(url, "/api/v1/nodes", agents)[0] == 200
        status, refused = ask(url, "/apis/apps/v1/deployments", agents)
        assert status == 403 and 'cannot list resource "deployments"' in refused["message"]
    secrets = [*pki.glob("*.key"), *(data / "tokens").iterdir(), data / "kubeconfig"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets} == {0o600}


async def test_stopping_ends_watches_and_is_quick(data: Path) -> None:
    with running_server(data) as process:
        client = HttpsClient(kubeconfig.load([data / "kubeconfig"]))
        ended = asyncio.Event()

        async def follow() -> None:
            async for _ in client.watch(kinds.POD):
                pass
            ended.set()

        watching = asyncio.create_task(follow())
        await asyncio.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(ended.wait(), 5)
        await watching
        await client.close()
        assert await asyncio.to_thread(process.wait, 10) == 0


async def test_what_was_answered_survives_kill_minus_nine(data: Path) -> None:
    answered: set[str] = set()
    for life in range(3):
        with running_server(data) as process:
            client = HttpsClient(kubeconfig.load([data / "kubeconfig"]))

            async def write(worker: int, life: int = life, client: HttpsClient = client) -> None:
                for number in range(10_000):
                    name = f"l{life}-w{worker}-{number}"
                    await client.create(kinds.CONFIG_MAP, {"metadata": {"name": name}, "data": {"n": name}}, "default")
                    answered.add(name)

            writers = [asyncio.create_task(write(worker)) for worker in range(8)]
            await asyncio.sleep(0.6)
            process.send_signal(signal.SIGKILL)
            await asyncio.gather(*writers, return_exceptions=True)
            await client.close()
            await asyncio.to_thread(process.wait, 10)
    assert len(answered) > 20
    with running_server(data):
        client = HttpsClient(kubeconfig.load([data / "kubeconfig"]))
        found = await client.list(kinds.CONFIG_MAP, "default")
        assert {item.metadata.name for item in found.items} >= answered
        await client.close()


async def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    first = Server(ServerSettings(tmp_path / "a", port=0))
    await first.start()
    port = int(first.url.rsplit(":", 1)[1])
    second = Server(ServerSettings(tmp_path / "b", port=port))
    with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use by another program"):
        await second.start()
    await first.stop()


def test_it_is_ready_again_at_once(data: Path) -> None:
    with running_server(data):
        pass
    started = time.monotonic()
    with running_server(data) as process:
        assert ask(process.url, "/readyz") == (200, "ok")  # type: ignore[attr-defined]
    assert time.monotonic() > started
    assert isinstance(process, subprocess.Popen)
