"""Scenarios for benchmarks/allocation.py where the recorded generator is not beside the checkout.

The same shapes, made anew: a uniform fleet, less uniform fleets, and searches that explode in a naive solver. Only the
names of cases are shared, so figures of both generators can be compared.
"""

from __future__ import annotations

import random
from typing import Any

Tree = dict[str, Any]
GPU = "gpu.example.com"
HARD = "d.example.com"


def _device(name: str, attributes: Tree | None = None, capacity: Tree | None = None, **fields: Any) -> Tree:
    typed = {}
    for key, value in (attributes or {}).items():
        kind = {bool: "bool", int: "int", str: "string"}.get(type(value))
        typed[key] = {kind: value} if kind else value
    amounts = {key: {"value": value} for key, value in (capacity or {}).items()}
    return {"name": name, "attributes": typed, "capacity": amounts, **fields}


def _slice(name: str, driver: str, pool: str, node: str, count: int = 1, **parts: Any) -> Tree:
    where = {"name": pool, "generation": 1, "resourceSliceCount": count}
    return {"metadata": {"name": name}, "spec": {"driver": driver, "pool": where, "nodeName": node, **parts}}


def _exactly(device_class: str, count: int = 1, cel: str = "", **fields: Any) -> Tree:
    selectors = {"selectors": [{"cel": {"expression": cel}}]} if cel else {}
    return {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count, **selectors, **fields}


def _claim(name: str, requests: list[Tree], constraints: list[Tree] | None = None) -> Tree:
    devices = {"requests": requests, "constraints": constraints or []}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"devices": devices}}


def _taken(node: str, devices: list[str]) -> Tree:
    results = [{"request": "r", "driver": GPU, "pool": node, "device": device} for device in devices]
    metadata = {"name": f"used-{node}", "namespace": "default", "uid": f"uid-used-{node}"}
    return {"metadata": metadata, "status": {"allocation": {"devices": {"results": results}}}}


def _world(name: str, nodes: int, slices: list[Tree], taken: list[Tree], claim: Tree) -> Tree:
    return {
        "name": name,
        "nodes": [{"metadata": {"name": f"node-{i:05d}"}} for i in range(nodes)],
        "classes": [
            {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}]}}
        ],
        "slices": slices,
        "allocated": taken,
        "claims": [claim],
    }


def scale(nodes: int, gpus: int, case: str) -> Tree:
    """A uniform fleet: first, last, none, full, all8."""
    slices, taken = [], []
    for i in range(nodes):
        node = f"node-{i:05d}"
        model = "H100" if case == "last" and i == nodes - 1 else "A100"
        devices = [
            _device(
                f"gpu-{g}", {"model": model, "index": g, "numa": g // 4, "uuid": f"GPU-{i}-{g}"}, {"memory": "80Gi"}
            )
            for g in range(gpus)
        ]
        slices.append(_slice(f"{node}-gpus", GPU, node, node, devices=devices))
        if case == "full" and i < nodes - 1:
            taken.append(_taken(node, [f"gpu-{g}" for g in range(gpus)]))
    model = {"last": "H100", "none": "B200"}.get(case, "A100")
    cel = (
        f'device.attributes["{GPU}"].model == "{model}" && '
        f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
    )
    request = {"name": "r", "exactly": _exactly("gpu", gpus if case == "all8" else 1, cel)}
    return _world(f"scale-{nodes}x{gpus}-{case}", nodes, slices, taken, _claim("c", [request]))


def fleet(nodes: int, case: str) -> Tree:
    """A less uniform fleet: mixed, numa2, distinct, mig."""
    if case == "mig":
        return _mig(nodes)
    choose = random.Random(case)
    slices, taken = [], []
    for i in range(nodes):
        node = f"node-{i:05d}"
        devices = [
            _device(
                f"gpu-{g}",
                {"model": f"m{i % 8}", "numa": g // 4, "uuid": f"GPU-{i}-{g}", "rank": i, "healthy": True},
                {"memory": f"{(24, 40, 80, 180)[i % 4]}Gi"},
            )
            for g in range(8)
        ]
        slices.append(_slice(f"{node}-gpus", GPU, node, node, devices=devices))
        if case == "mixed":
            taken.append(_taken(node, [f"gpu-{g}" for g in range(8) if choose.random() < 0.5]))
        if case == "numa2":
            free = (0, 1) if i == nodes - 1 else (choose.randrange(4), 4 + choose.randrange(4))
            taken.append(_taken(node, [f"gpu-{g}" for g in range(8) if g not in free]))
    memory, attributes = f'device.capacity["{GPU}"].memory', f'device.attributes["{GPU}"]'
    constraints: list[Tree] = []
    if case == "mixed":
        exactly = _exactly("gpu", 4, f'{memory}.compareTo(quantity("80Gi")) >= 0 && {attributes}.healthy')
    elif case == "numa2":
        exactly = _exactly("gpu", 2, f"{attributes}.healthy")
        constraints = [{"matchAttribute": f"{GPU}/numa"}]
    else:
        exactly = _exactly("gpu", 1, f"{attributes}.rank >= {nodes - 1}")
    claim = _claim("c", [{"name": "r", "exactly": exactly}], constraints)
    return _world(f"fleet-{nodes}-{case}", nodes, slices, taken, claim)


def _mig(nodes: int) -> Tree:
    slices, taken = [], []
    layouts = (("1g", 1, range(7)), ("2g", 2, (0, 2, 4)), ("3g", 4, (0, 4)), ("7g", 8, (0,)))
    for i in range(nodes):
        node = f"node-{i:05d}"
        counters = [{"name": f"gpu-{g}", "counters": {f"slice{k}": {"value": "1"} for k in range(8)}} for g in range(8)]
        devices = []
        for g in range(8):
            for profile, width, places in layouts:
                for place in places:
                    uses = {f"slice{k}": {"value": "1"} for k in range(place, place + width)}
                    consumes = [{"counterSet": f"gpu-{g}", "counters": uses}]
                    attributes = {"profile": profile, "parent": f"GPU-{i}-{g}"}
                    devices.append(_device(f"gpu-{g}-{profile}-{place}", attributes, consumesCounters=consumes))
        parts = [devices[k : k + 64] for k in range(0, len(devices), 64)]
        count = len(parts) + 1
        slices.append(_slice(f"{node}-0", GPU, node, node, count, sharedCounters=counters))
        slices += [_slice(f"{node}-{k}", GPU, node, node, count, devices=part) for k, part in enumerate(parts, 1)]
        if i < nodes - 1:
            taken.append(_taken(node, [f"gpu-{g}-1g-{place}" for g in range(8) for place in (1, 5)]))
    requests = [
        {"name": name, "exactly": _exactly("gpu", 1, f'device.attributes["{GPU}"].profile == "{profile}"')}
        for name, profile in (("big", "3g"), ("small", "1g"))
    ]
    return _world(
        f"fleet-{nodes}-mig", nodes, slices, taken, _claim("c", requests, [{"matchAttribute": f"{GPU}/parent"}])
    )


SIZES = {"A": 22, "B": 10, "C": 22, "D": 22, "E": 22, "F": 7, "G": 12, "H": 9}


def hard(family: str, n: int) -> Tree:
    """One node and a claim that no choice of its devices satisfies."""
    attributes = f'device.attributes["{HARD}"]'
    constraints: list[Tree] = []
    more: list[Tree] = []
    extra: list[Tree] = []
    devices = [_device(f"d{i:02d}", {"t": "a"}) for i in range(n)]
    ones = [{"name": f"r{i}", "exactly": _exactly("c")} for i in range(n + 1)]
    nothing = {"name": "q", "exactly": _exactly("c", 1, f'{attributes}.t == "none"')}
    requests = ones
    if family == "A":
        requests = [{"name": "r", "exactly": _exactly("c", n + 1)}]
    elif family == "C":
        requests, more = [{"name": "r", "exactly": _exactly("c", n // 2)}], [_claim("y", [nothing])]
    elif family == "D":
        devices = [_device(f"d{i:02d}", {"z": 1, "t": "gpu"}) for i in range(n)] + [
            _device("nic", {"z": 2, "t": "nic"})
        ]
        requests = [
            {"name": "gpu", "exactly": _exactly("c", n // 2, f'{attributes}.t == "gpu"')},
            {"name": "nic", "exactly": _exactly("c", 1, f'{attributes}.t == "nic"')},
        ]
        constraints = [{"matchAttribute": f"{HARD}/z"}]
    elif family == "E":
        takes = [{"counterSet": "g", "counters": {"slices": {"value": "1"}}}]
        devices = [_device(f"mig{i:02d}", consumesCounters=takes) for i in range(n)]
        total = [{"name": "g", "counters": {"slices": {"value": "7"}}}]
        extra = [_slice("cs", HARD, "p", "n", 2, sharedCounters=total)]
        requests = [{"name": "r", "exactly": _exactly("c", 8)}]
    elif family == "F":
        devices = [_device(f"d{i:02d}", {"z": f"v{i // 2}"}) for i in range(2 * n)]
        constraints = [{"distinctAttribute": f"{HARD}/z"}]
    elif family == "G":
        devices = [_device(f"d{i:02d}", {"t": f"k{i % 3}", "g": i // 3}) for i in range(3 * n)]
        requests = [
            {
                "name": f"r{i}",
                "firstAvailable": [
                    {"name": f"s{k}", **_exactly("c", 1, f'{attributes}.t == "k{k}" && {attributes}.g == {i}')}
                    for k in range(3)
                ],
            }
            for i in range(n)
        ] + [nothing]
    elif family == "H":
        devices = [_device(f"d{i:02d}", None, {"bw": "10"}, allowMultipleAllocations=True) for i in range(n)]
        requests = [{"name": r["name"], "exactly": _exactly("c", capacity={"requests": {"bw": "6"}})} for r in ones]
    return {
        "name": f"{family}-{n}",
        "nodes": [{"metadata": {"name": "n"}}],
        "classes": [{"metadata": {"name": "c"}}],
        "slices": [_slice("dv", HARD, "p", "n", 1 + len(extra), devices=devices), *extra],
        "claims": [_claim("x", requests, constraints), *more],
    }
