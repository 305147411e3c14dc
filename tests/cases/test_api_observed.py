"""Answers of a real kube-apiserver, replayed against the embedded one.

The scores are those of the whole corpus of this run; what differs on purpose is listed by id with its reason.
"""

from __future__ import annotations

import asyncio
import gzip
import importlib.util
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kubedra.base.features import FeatureGates
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings
from tests.shared_cases import shared_file

TOKEN = "admintoken"
# Sequences in which we differ on purpose.
EXCEPTIONS = {
    "gt-val-rule-011": "DeviceTaintRule is served in v1 since 1.37",
    "gt-reads-032": "1.37 selects slices by spec.pool.name",
    "gt-reads-047": "the HTTP parser answers 400, not 405, to a method that HTTP does not know (FOO)",
    "gt-watch-014": "upstream prints the 406 of a watch over several lines; ours is one line",
}
RUNS = {
    "default": ("", "", frozenset[str](), 0.92, 0.80),
    "gates on": (
        "DRADeviceTaintRules=true,DRAListTypeAttributes=true,DRAResourcePoolStatus=true",
        "DRADeviceTaintRules=true,DRAListTypeAttributes=true,DRAResourcePoolStatus=true",
        frozenset[str](),
        0.92,
        0.80,
    ),
    "node restriction": ("admission=NodeRestriction", "", frozenset({"NodeRestriction"}), 0.80, 0.80),
}


def _replayer() -> ModuleType:
    path = shared_file("tools/replay/api_replay.py")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("api_replay", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ServerThread:
    """A server on a loop of its own: the replayer blocks."""

    def __init__(self, settings: ServerSettings) -> None:
        self.server = Server(settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.server.start(), self._loop).result(20)
        return self.server

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _sequences(gates: str) -> Iterator[dict[str, Any]]:
    with gzip.open(shared_file("cases/api-observed.jsonl.gz"), "rt") as lines:
        for line in lines:
            sequence: dict[str, Any] = json.loads(line)
            if ",".join(sequence.get("gates", [])) == gates:
                yield sequence


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", list(RUNS))
def test_recorded_sequences(name: str, tmp_path: Path) -> None:
    recorded, overrides, admission, wanted_status, wanted_causes = RUNS[name]
    replayer = _replayer()
    settings = ServerSettings(
        tmp_path / "data",
        port=0,
        feature_gates=FeatureGates.parse(overrides),
        admission=admission,
        admin_token=TOKEN,
    )
    total = status = causes = 0
    wrong: list[str] = []
    with ServerThread(settings) as server:
        client = replayer.gtlib.Client(server.url, TOKEN)
        for sequence in _sequences(recorded):
            total += 1
            steps = replayer.replay(client, sequence)
            right = [all(step[level] for step in steps) for level in ("l1", "l2")]
            status += right[0]
            causes += right[1]
            if not right[1] and sequence["id"] not in EXCEPTIONS:
                wrong.append(f"{sequence['id']} {sequence['note']}")
        if client.conn is not None:
            client.conn.close()
    assert total
    assert status / total >= wanted_status, wrong
    assert causes / total >= wanted_causes, wrong
