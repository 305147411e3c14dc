"""Measures ``why``: python benchmarks/why.py [NODES]

Prints one JSON line a case, in milliseconds of CPU. With objects in memory and the index warm: the verdict, the
waterfall (counts, constraints, kinds of nodes; target 200 ms at 5,000 nodes) and the remedies (budget 1 s). And the
whole command on a dump of that size, as a process (target 3 s).
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "src"), str(Path(__file__).resolve().parents[1])]

from benchmarks.recording import emit  # noqa: E402
from kubedra.allocation.reasons import explain  # noqa: E402
from kubedra.base.features import FeatureGates  # noqa: E402
from kubedra.cli.sources import read_dump  # noqa: E402
from kubedra.insight.constraints import constraint_reports  # noqa: E402
from kubedra.insight.decision import Deadline, Decision  # noqa: E402
from kubedra.insight.node_groups import node_groups  # noqa: E402
from kubedra.insight.remedies import find_remedies  # noqa: E402
from kubedra.insight.trying import Trying  # noqa: E402
from kubedra.scheduler.pods import pod_info  # noqa: E402

GPU = "gpu.example.com"
MEMORY = f'device.capacity["{GPU}"].memory'
MODELS = (("A100", "80Gi"), ("H100", "81559Mi"), ("L4", "24Gi"))


def dump(nodes: int, case: str) -> dict[str, Any]:
    """A cluster as kubectl prints it. none: a selector matches nothing. full: all that match are taken.
    split: enough devices are free, never two on one NUMA node."""
    items: list[dict[str, Any]] = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": GPU},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}]},
        }
    ]
    for number in range(nodes):
        items += _node(number, case)
    amount, count = ("96Gi", 1) if case == "none" else ("80Gi", 2)
    selector = f'{MEMORY}.compareTo(quantity("{amount}")) >= 0'
    exactly = {
        "deviceClassName": GPU,
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": selector}}],
    }
    devices: dict[str, Any] = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if case == "split":
        devices["constraints"] = [{"matchAttribute": "resource.kubernetes.io/numaNode"}]
    items.append(_claim("wanted", {"devices": devices}, {}))
    items.append(_pod("pending", "wanted", ""))
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _node(number: int, case: str) -> list[dict[str, Any]]:
    name = f"node-{number:05d}"
    model, memory = MODELS[number % len(MODELS)]
    devices = [
        {
            "name": f"gpu-{i}",
            "attributes": {
                "model": {"string": model},
                "uuid": {"string": f"GPU-{number:05d}-{i}"},
                "resource.kubernetes.io/numaNode": {"int": i // 4},
            },
            "capacity": {"memory": {"value": memory}},
        }
        for i in range(8)
    ]
    spec = {
        "driver": GPU,
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    status = {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"}}
    made: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status},
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec},
    ]
    held = {"none": (0, 4), "full": tuple(range(8)), "split": (0, 1, 2, 4, 5, 6)}[case]
    for i in held if case != "none" else held[:1]:
        result = {"request": "gpu", "driver": GPU, "pool": name, "device": f"gpu-{i}"}
        pod = f"job-{number}-{i}"
        claimed = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"}],
        }
        one = {"deviceClassName": GPU, "allocationMode": "ExactCount", "count": 1}
        made.append(_claim(pod, {"devices": {"requests": [{"name": "gpu", "exactly": one}]}}, claimed))
        made.append(_pod(pod, pod, name))
    return made


def _claim(name: str, spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"claim-{name}"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _pod(name: str, claim: str, node: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "x"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
    }
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of CPU, so that a busy machine does not count; children included."""
    before, started = os.times(), time.perf_counter()
    found = work()
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    if cpu < 0.1:
        # os.times() counts in hundredths of a second.
        cpu = time.perf_counter() - started
    return round(cpu * 1000, 1), found


def measure(nodes: int, case: str) -> dict[str, Any]:
    """All figures of one case, in milliseconds."""
    with tempfile.TemporaryDirectory(prefix="kubedra-why-") as folder:
        path = Path(folder) / "dump.json"
        path.write_text(json.dumps(dump(nodes, case)))
        size = path.stat().st_size
        command = [sys.executable, "-m", "kubedra", "why", "pod/pending", "--dump", str(path)]
        source = str(Path(__file__).resolve().parents[1] / "src")
        whole, done = _timed(
            lambda: subprocess.run(
                command, env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, check=False
            )
        )
        gc.disable()
        read, found = _timed(lambda: read_dump(str(path), "default", FeatureGates()))
    index, decision = _timed(lambda: Decision(found))
    pod = pod_info(found.pods_by_name["default", "pending"])
    first, _ = _timed(lambda: decision.place(pod))
    verdict, _ = _timed(lambda: decision.place(pod))
    question = decision.question(pod)

    def waterfall() -> Any:
        claims, names = question.groups[0]
        explanation = explain(decision.inventory, decision.ledger, decision.allocator.prepare(claims), names)
        constraint_reports(decision, question)
        node_groups(decision, question, explanation.waterfalls)
        return explanation

    cold, _ = _timed(waterfall)
    warm, explanation = _timed(waterfall)
    deadline = Deadline(time.monotonic, 1.0)
    trying = Trying(decision, question, explanation.waterfalls, deadline)
    remedies, helps = _timed(lambda: find_remedies(trying))
    gc.enable()
    gc.collect()
    return {
        "case": f"why-{nodes}-{case}",
        "dumpMiB": round(size / 2**20, 1),
        "wholeCommandMs": whole,
        "wholeTargetMs": 3000,
        "exitCode": done.returncode,
        "readMs": read,
        "indexMs": index,
        "verdictFirstMs": first,
        "verdictMs": verdict,
        "waterfallFirstMs": cold,
        "waterfallMs": warm,
        "waterfallTargetMs": 200,
        "remediesMs": remedies,
        "remediesBudgetMs": 1000,
        "remedies": [remedy.code for remedy in helps],
        "cutOff": deadline.cut,
    }


def main() -> None:
    """Measure the cases."""
    given = [argument for argument in sys.argv[1:] if argument.isdigit()]
    nodes = int(given[0]) if given else 5000
    for case in ("none", "full", "split"):
        emit("why", measure(nodes, case))


if __name__ == "__main__":
    main()
