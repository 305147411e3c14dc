"""Whole clusters, measured from outside: python benchmarks/cluster.py [ready] [pod-start] [pods] [hollow] [--record]

Prints one JSON line a figure, beside its target and what ``recorded.json`` holds from before. Real processes are
started (``kubedra up --detach``) and loaded over HTTPS. Seconds by the wall clock only mean something on a machine
that does nothing else; CPU figures (user + system, of the cluster's processes alone) also hold on a busy one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import uvloop  # noqa: E402

from benchmarks.recording import emit  # noqa: E402
from kubedra.api import kinds  # noqa: E402
from kubedra.client import kubeconfig  # noqa: E402
from kubedra.client.https import HttpsClient  # noqa: E402

Tree = dict[str, Any]
DEMO = ROOT / "examples" / "demo"
TICKS = os.sysconf("SC_CLK_TCK")
CLASS = "gpu.example.com"
SELECTOR = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'

# figure: (target, whether less is better)
TARGETS = {
    "ready_s": (1.5, True),
    "ready_cpu_s": (None, True),
    "pod_start_s": (0.5, True),
    "pods_per_s": (200, False),
    "cpu_ms_per_pod": (4.0, True),
    "pss_mib": (300, True),
    "hollow_5000_ready_s": (None, True),
    "hollow_5000_ready_cpu_s": (None, True),
    "hollow_5000_idle_cpu_percent": (5, True),
    "hollow_5000_pss_mib": (None, True),
}


# ---- a cluster in processes of its own ------------------------------------------------------------------------------


def kubedra(*arguments: str) -> str:
    """Run a command of this checkout; returns what it prints."""
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    # Compiled modules are kept, as they are where kubedra is installed: the first start of a checkout makes them.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPATH": path}
    command = [sys.executable, "-m", "kubedra", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done.stdout


class Cluster:
    """A running cluster and what its processes use."""

    def __init__(self, folder: Path, ready_s: float) -> None:
        self.folder = folder
        self.ready_s = ready_s
        status = json.loads(kubedra("status", "--data", str(folder), "-o", "json"))
        self.main: int = status["pids"]["main"]
        self.kubeconfig = Path(status["kubeconfig"])

    def processes(self) -> list[int]:
        """Every process of the cluster, those of pods included: its tree, and what runs on its folder."""
        parents: dict[int, int] = {}
        found = set()
        mark = str(self.folder).encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parents[int(entry.name)] = int(_stat(int(entry.name))[1])
                    if mark in (entry / "cmdline").read_bytes():
                        found.add(int(entry.name))
                except (OSError, IndexError):
                    continue
        found.add(self.main)
        grown = True
        while grown:
            more = {pid for pid, parent in parents.items() if parent in found} - found
            grown = bool(more)
            found |= more
        return sorted(found - {os.getpid()})

    def cpu(self) -> float:
        """CPU seconds that all processes have used so far."""
        return sum(_cpu(pid) for pid in self.processes())

    def pss_mib(self) -> float:
        """Proportional memory of all processes."""
        return sum(_pss(pid) for pid in self.processes())

    @asynccontextmanager
    async def client(self) -> AsyncIterator[HttpsClient]:
        """A client as the administrator."""
        client = HttpsClient(kubeconfig.load([self.kubeconfig]))
        try:
            yield client
        finally:
            await client.close()


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _cpu(pid: int) -> float:
    try:
        fields = _stat(pid)
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _pss(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


@contextmanager
def running(fleet: Path | None = None) -> Iterator[Cluster]:
    """A cluster in a temporary folder, ready; ended and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="kubedra-bench-"))
    try:
        began = time.monotonic()
        options = ["--fleet", str(fleet)] if fleet is not None else []
        try:
            kubedra("up", "--detach", "--data", str(folder), "--port", "0", *options)
            yield Cluster(folder, time.monotonic() - began)
        finally:
            kubedra("down", "--data", str(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- what is loaded -------------------------------------------------------------------------------------------------


def node(index: int) -> Tree:
    """A ready node."""
    name = f"node-{index:05}"
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True", "reason": "Benchmark"}]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": ready},
    }


def resource_slice(index: int, gpus: int) -> Tree:
    """The cards of a node; every other node has big ones."""
    name, big = f"node-{index:05}", index % 2
    devices = [
        {
            "name": f"gpu-{gpu}",
            "attributes": {
                "model": {"string": "H100-80G" if big else "A30-24G"},
                "index": {"int": gpu},
                "driverVersion": {"version": "570.86.15"},
                "uuid": {"string": f"gpu-{index:05}-{gpu}"},
                "resource.kubernetes.io/numaNode": {"int": gpu * 2 // gpus},
            },
            "capacity": {"memory": {"value": "80Gi" if big else "24Gi"}},
        }
        for gpu in range(gpus)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": f"{name}-gpu"},
        "spec": {"driver": CLASS, "nodeName": name, "pool": pool, "devices": devices},
    }


def pod(name: str) -> Tree:
    """A pod with a claim from the template ``big-gpu``."""
    resources = {"claims": [{"name": "gpu"}], "requests": {"cpu": "100m"}}
    container = {"name": "main", "image": "registry.example/worker:1", "resources": resources}
    return {
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [container | {"command": ["sleep", "3600"]}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "big-gpu"}],
        },
    }


async def prepare(client: HttpsClient, namespace: str) -> None:
    """Namespace, class and claim template."""
    if namespace != "default":
        await client.create(kinds.NAMESPACE, {"metadata": {"name": namespace}})
    selectors = [{"cel": {"expression": f'device.driver == "{CLASS}"'}}]
    await client.create(kinds.DEVICE_CLASS, {"metadata": {"name": CLASS}, "spec": {"selectors": selectors}})
    exactly = {"deviceClassName": CLASS, "selectors": [{"cel": {"expression": SELECTOR}}]}
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    template = {"metadata": {"name": "big-gpu"}, "spec": spec}
    await client.create(kinds.RESOURCE_CLAIM_TEMPLATE, template, namespace)


async def spread(count: int, workers: int, one: Callable[[int], Any]) -> None:
    """Do something so many times, a few at a time."""
    pending = iter(range(count))

    async def worker() -> None:
        for index in pending:
            await one(index)

    await asyncio.gather(*(worker() for _ in range(workers)))


# ---- figures --------------------------------------------------------------------------------------------------------


def ready(options: argparse.Namespace) -> dict[str, float]:
    """The demo fleet from exec to ready."""
    seconds, used = [], []
    with running(DEMO / "fleet.yaml"):
        pass  # compiles what is not compiled yet
    for _ in range(options.repeat):
        with running(DEMO / "fleet.yaml") as cluster:
            seconds.append(cluster.ready_s)
            used.append(cluster.cpu())
    return {"ready_s": statistics.median(seconds), "ready_cpu_s": statistics.median(used)}


def pod_start(options: argparse.Namespace) -> dict[str, float]:
    """A pod with a claim template on an idle cluster, from its creation to Running, with real processes."""

    async def one(client: HttpsClient, name: str) -> float:
        events = client.watch(kinds.POD, "default", field_selector=f"metadata.name={name}", resource_version="0")
        began = time.monotonic()
        await client.create(kinds.POD, pod(name), "default")
        async for event in events:
            if event.object.status.phase == "Running":
                break
        return time.monotonic() - began

    async def work(cluster: Cluster) -> list[float]:
        async with cluster.client() as client:
            await prepare(client, "default")
            return [await one(client, f"start-{n}") for n in range(options.repeat) if not await asyncio.sleep(1)]

    with running(DEMO / "fleet.yaml") as cluster:
        return {"pod_start_s": statistics.median(uvloop.run(work(cluster)))}


def pods(options: argparse.Namespace) -> dict[str, float]:
    """Pods with claim templates on bare nodes: until all are bound."""

    async def add_node(client: HttpsClient, index: int) -> None:
        tree = node(index)
        await client.create(kinds.NODE, tree)
        await client.patch(kinds.NODE, tree["metadata"]["name"], {"status": tree["status"]}, subresource="status")
        await client.patch(kinds.NODE, tree["metadata"]["name"], {"spec": {"taints": None}})
        await client.create(kinds.RESOURCE_SLICE, resource_slice(index, options.gpus))

    async def work(cluster: Cluster) -> dict[str, float]:
        async with cluster.client() as client:
            await prepare(client, "load")
            await spread(options.nodes, 16, lambda index: add_node(client, index))
            await asyncio.sleep(3)
            bound: set[str] = set()

            async def watch() -> None:
                async for event in client.watch(kinds.POD, "load", resource_version="0"):
                    if event.object.spec.node_name:
                        bound.add(event.object.metadata.name)
                        if len(bound) == options.pods:
                            return

            watching = asyncio.create_task(watch())
            used, began = cluster.cpu(), time.monotonic()
            await spread(options.pods, 16, lambda n: client.create(kinds.POD, pod(f"load-{n:06}"), "load"))
            await asyncio.wait_for(watching, options.timeout)
            seconds = time.monotonic() - began
            await asyncio.sleep(1)  # events are written in the background
            return {
                "pods_per_s": options.pods / seconds,
                "cpu_ms_per_pod": (cluster.cpu() - used) / options.pods * 1000,
                "pss_mib": cluster.pss_mib(),
            }

    with running() as cluster:
        return uvloop.run(work(cluster))


def hollow(options: argparse.Namespace) -> dict[str, float]:
    """Thousands of hollow nodes with eight cards each: start, and what they cost while nothing happens."""
    count = options.hollow
    with tempfile.TemporaryDirectory(prefix="kubedra-bench-") as folder:
        fleet = Path(folder) / "fleet.yaml"
        fleet.write_text(
            f"kind: Fleet\nmetadata: {{name: hollow}}\ndrivers: {{nvidia: {CLASS}}}\npools:\n- name: h100\n"
            f'  count: {count}\n  hollow: true\n  cpu: "64"\n  memory: 512Gi\n'
            "  devices:\n  - {card: H100, count: 8, numaNodes: 2}\n"
        )
        with running(fleet) as cluster:
            used = cluster.cpu()
            time.sleep(options.settle)
            before = cluster.cpu()
            time.sleep(options.idle)
            after = cluster.cpu()
            return {
                f"hollow_{count}_ready_s": cluster.ready_s,
                f"hollow_{count}_ready_cpu_s": used,
                f"hollow_{count}_idle_cpu_percent": (after - before) / options.idle * 100,
                f"hollow_{count}_pss_mib": cluster.pss_mib(),
            }


MEASURES = {"ready": ready, "pod-start": pod_start, "pods": pods, "hollow": hollow}


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=f"some of {', '.join(MEASURES)}; default: all")
    parser.add_argument("--repeat", type=int, default=3, help="starts of clusters and pods (the median counts)")
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--hollow", type=int, default=5000, help="hollow nodes")
    parser.add_argument("--settle", type=float, default=10, help="seconds before idleness is measured")
    parser.add_argument("--idle", type=float, default=20, help="seconds of idleness")
    parser.add_argument(
        "--record", action="store_true", help="write what was measured to recorded.json (see recording.py)"
    )
    options = parser.parse_args()
    unknown = set(options.figures) - set(MEASURES)
    if unknown:
        parser.error(f"unknown figure {', '.join(sorted(unknown))}; there are {', '.join(MEASURES)}")
    for name in options.figures or MEASURES:
        for figure, value in MEASURES[name](options).items():
            value = round(value, 3 if value < 10 else 1)
            target, less = TARGETS.get(figure, (None, True))
            line: Tree = {"figure": figure, "value": value}
            if target is not None:
                line |= {"target": target, "met": value <= target if less else value >= target}
            emit("cluster", line)


if __name__ == "__main__":
    main()
