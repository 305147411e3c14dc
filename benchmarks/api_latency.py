"""Does the API answer while the scheduler of the same process searches hard claims? Prints one JSON line.

A control plane is started as its own process; nodes, slices and pods are made whose claims have no solution and many
ways to look for one (pairs that must share an attribute which hardly any two devices share, and more than there are).
Meanwhile one client reads a small object over and over: its median and 99th percentile, in milliseconds.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.recording import emit
from kubedra.api import kinds
from kubedra.client import kubeconfig
from kubedra.client.https import HttpsClient
from kubedra.cluster.state import read_state

NODES, DEVICES, PODS, SECONDS = 20, 31, 10, 8.0


def node(i: int) -> dict[str, Any]:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return {"metadata": {"name": f"n{i}"}, "status": status}


def slice_(i: int) -> dict[str, Any]:
    devices = [
        {"name": f"d{d}", "attributes": {"side": {"int": d % 7}, "index": {"int": d}}, "capacity": {}}
        for d in range(DEVICES)
    ]
    pool = {"name": f"n{i}", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "hard.example.com", "nodeName": f"n{i}", "pool": pool, "devices": devices}
    return {"metadata": {"name": f"s{i}"}, "spec": spec}


def hard_pod(i: int) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "hard"}]}}
    entry = {"name": "hard", "resourceClaimTemplateName": "hard"}
    return {"metadata": {"name": f"p{i}"}, "spec": {"resourceClaims": [entry], "containers": [container]}}


async def measure(client: HttpsClient) -> dict[str, Any]:
    await client.create(kinds.DEVICE_CLASS, {"metadata": {"name": "hard"}})
    requests = [{"name": f"r{n}", "exactly": {"deviceClassName": "hard", "count": 3}} for n in range(6)]
    constraints = [
        {"matchAttribute": "hard.example.com/side", "requests": [f"r{n}" for n in range(6)]},
        {"distinctAttribute": "hard.example.com/index"},
    ]
    devices = {"requests": requests, "constraints": constraints}
    template = {"metadata": {"name": "hard"}, "spec": {"spec": {"devices": devices}}}
    await client.create(kinds.RESOURCE_CLAIM_TEMPLATE, template, "default")
    for i in range(NODES):
        await client.create(kinds.NODE, node(i))
        taints = {"spec": {"taints": None}}
        await client.patch(kinds.NODE, f"n{i}", taints)
        await client.patch(kinds.NODE, f"n{i}", {"status": node(i)["status"]}, subresource="status")
        await client.create(kinds.RESOURCE_SLICE, slice_(i))
    idle = await latencies(client, 2.0)
    for i in range(PODS):
        await client.create(kinds.POD, hard_pod(i), "default")
    busy = await latencies(client, SECONDS)
    pods = (await client.list(kinds.POD, "default")).items
    pending = sum(any(c.type == "PodScheduled" and c.status == "False" for c in p.status.conditions) for p in pods)
    return {"idle_ms": idle, "hard_claims_ms": busy, "pods_found_impossible": pending}


async def latencies(client: HttpsClient, seconds: float) -> dict[str, float]:
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        await client.get(kinds.NAMESPACE, "default")
        times.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.002)
    times.sort()
    at = times[int(len(times) * 0.99) - 1]
    return {"p50": round(statistics.median(times), 2), "p99": round(at, 2), "max": round(times[-1], 2)}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="kubedra-bench-") as folder:
        run = [sys.executable, "-m", "kubedra"]
        subprocess.run([*run, "up", "--detach", "--port", "0", "--data", folder], check=True, stdout=subprocess.DEVNULL)
        try:
            state = read_state(Path(folder))
            assert state is not None
            connection = kubeconfig.load([Path(state.kubeconfig)])

            async def call() -> dict[str, Any]:
                client = HttpsClient(connection)
                try:
                    return await measure(client)
                finally:
                    await client.close()

            emit("api_latency", asyncio.run(call()))
        finally:
            subprocess.run([*run, "down", "--data", folder], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
