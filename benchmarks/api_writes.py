"""CPU of one durable API write, in process and over HTTPS. Prints JSON.

    python benchmarks/api_writes.py [--writes 3000] [--clients 32]

`cpu_ms_per_write` is process CPU (user + system, all threads) of the server divided by the writes it made durable:
over HTTPS the server runs alone in its process, in process the figure holds both sides of the call.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.recording import emit
from kubedra.api import kinds
from kubedra.client.https import HttpsClient
from kubedra.client.kubeconfig import Connection
from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings

Tree = dict[str, Any]
TARGET_MS = 0.35


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def pod(name: str) -> Tree:
    """A pod as people write them."""
    container = {
        "name": "main",
        "image": "registry.example.com/train:1",
        "command": ["python", "train.py"],
        "env": [{"name": "MODE", "value": "fast"}],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "claims": [{"name": "gpu"}]},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "train", "tier": "batch"}},
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "big-gpu"}],
        },
    }


def claim(name: str) -> Tree:
    """A claim for one device."""
    selector = {"cel": {"expression": 'device.attributes["gpu.example.com"].model == "H100"'}}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "selectors": [selector]}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }


def lease(name: str) -> Tree:
    """A lease of a node."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"},
    }


async def _spread(clients: int, count: int, one: Any) -> None:
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await one(number)

    await asyncio.gather(*[worker() for _ in range(clients)])


async def _work(client: Any, clients: int, count: int, measure: Any) -> dict[str, Any]:
    """The kinds of write that a cluster makes; `measure` wraps each."""
    space = "default"
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}

    async def create_pod(n: int) -> None:
        await client.create(kinds.POD, pod(f"p{n}"), space)

    async def patch_status(n: int) -> None:
        await client.patch(kinds.POD, f"p{n}", running, space, subresource="status")

    async def create_claim(n: int) -> None:
        await client.create(kinds.RESOURCE_CLAIM, claim(f"c{n}"), space)

    async def create_lease(n: int) -> None:
        await client.create(kinds.LEASE, lease(f"l{n}"), space)

    async def renew_lease(n: int) -> None:
        moment = f"2026-01-01T00:00:00.{n % 1_000_000:06d}Z"
        await client.patch(kinds.LEASE, f"l{n}", {"spec": {"renewTime": moment}}, space)

    async def delete_pod(n: int) -> None:
        await client.delete(kinds.POD, f"p{n}", space, grace_period_seconds=0)

    steps = (
        ("create pod", create_pod),
        ("patch pod status", patch_status),
        ("create claim", create_claim),
        ("create lease", create_lease),
        ("renew lease", renew_lease),
        ("delete pod", delete_pod),
    )
    found: dict[str, Any] = {}
    for name, one in steps:
        found[name] = await measure(name, lambda one=one: _spread(clients, count, one))
    return found


async def in_process(folder: Path, clients: int, count: int) -> dict[str, Any]:
    """Both sides in one process."""
    server = Server(ServerSettings(folder, http=False))
    await server.start()
    client = InProcessClient(server)

    async def measure(name: str, work: Any) -> dict[str, float]:
        cpu, wall = _cpu(), time.perf_counter()
        await work()
        return _figures(_cpu() - cpu, time.perf_counter() - wall, count)

    found = await _work(client, clients, count, measure)
    await client.close()
    await server.stop()
    return found


def _figures(cpu: float, wall: float, count: int) -> dict[str, float]:
    return {"cpu_ms_per_write": round(cpu * 1000 / count, 3), "writes_per_second": round(count / wall)}


def _serve(folder: str, pipe: Any) -> None:
    async def main() -> None:
        server = Server(ServerSettings(Path(folder), port=0, admin_token="bench"))
        await server.start()
        pipe.send(server.url)
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, pipe.recv) != "stop":
            pipe.send(_cpu())
        await server.stop()

    uvloop.run(main())


async def over_https(folder: Path, clients: int, count: int) -> dict[str, Any]:
    """The server in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(str(folder), there), daemon=True)
    process.start()
    loop = asyncio.get_running_loop()
    url = await loop.run_in_executor(None, here.recv)
    authority = (folder / "pki" / "ca.crt").read_bytes()
    client = HttpsClient(Connection(server=url, ca=authority, token="bench"))

    def cpu() -> float:
        here.send("cpu")
        return float(here.recv())

    async def measure(name: str, work: Any) -> dict[str, float]:
        before, wall = await loop.run_in_executor(None, cpu), time.perf_counter()
        await work()
        took = time.perf_counter() - wall
        return _figures(await loop.run_in_executor(None, cpu) - before, took, count)

    found = await _work(client, clients, count, measure)
    await client.close()
    here.send("stop")
    process.join()
    return found


def _mean(steps: dict[str, Any]) -> float:
    return round(sum(step["cpu_ms_per_write"] for step in steps.values()) / len(steps), 3)


def main() -> None:
    """Runs both and prints the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--writes", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--record", action="store_true", help="write what was measured to recorded.json")
    options = parser.parse_args()
    for name, run in (("in_process", in_process), ("https", over_https)):
        with tempfile.TemporaryDirectory() as folder:
            steps = uvloop.run(run(Path(folder) / "data", options.clients, options.writes))
        line = {"transport": name, "target_cpu_ms_per_write": TARGET_MS, "mean_cpu_ms_per_write": _mean(steps)}
        emit("api_writes", {**line, "steps": steps})


if __name__ == "__main__":
    main()
