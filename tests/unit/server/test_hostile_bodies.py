"""Bodies that nobody writes by accident: refused with a Status, never a traceback."""

from __future__ import annotations

import json

import pytest

from kubedra.api import kinds
from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server
from kubedra.server.store import Key

PATH = kinds.CONFIG_MAP.path("default")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b'"x"',
        b"\xff\xfe",
        b'{"metadata":' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
        b"[" * 100_000,
        b'{"metadata":{"name":"a"},"data":{"k":1e400}}',
        b'{"metadata":{"name":["a"]}}',
        b'{"metadata":{"name":"a","labels":{"x":{"y":1}}}}',
        b'{"metadata":{"name":"a/b"}}',
        b'{"metadata":{"name":"' + b"a" * 300 + b'"}}',
        b'{"kind":"Pod","metadata":{"name":"a"}}',
    ],
)
async def test_it_is_refused_in_a_sentence(client: InProcessClient, body: bytes) -> None:
    answer = await client.request("POST", PATH, body=body)
    assert 400 <= answer.status < 500, answer.body
    status = json.loads(answer.body)
    assert status["kind"] == "Status" and status["message"]


async def test_half_a_surrogate_pair_is_replaced(client: InProcessClient) -> None:
    answer = await client.request("POST", PATH, body=b'{"metadata":{"name":"s"},"data":{"k":"a\\ud800b"}}')
    assert answer.status == 201, answer.body
    assert set((await client.get(kinds.CONFIG_MAP, "s", "default")).data["k"]) == {"a", "b", "\ufffd"}


async def test_events_expire(client: InProcessClient, server: Server) -> None:
    event = {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": {"namespace": "default"}}
    await client.create(kinds.CORE_EVENT, event, "default")
    assert server.store.get(Key("events", "default", "e")) is not None
    assert server._expiry is not None
    server._expiry.expire(float("inf"))
    await client.create(kinds.CONFIG_MAP, {"metadata": {"name": "after"}}, "default")
    assert server.store.get(Key("events", "default", "e")) is None
