"""Small clusters for the tests of ``why``, written as short as the public reports write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kubedra.base.features import FeatureGates
from kubedra.cli.sources import Gathering
from kubedra.insight.answers import Answer
from kubedra.insight.snapshots import Snapshot
from kubedra.insight.why import why_claim, why_pod
from kubedra.insight.why_text import render

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
DRIVER = "d.example"
Tree = dict[str, Any]


def device(name: str, attributes: Mapping[str, Any] | None = None, **capacity: str) -> Tree:
    """A device; values decide the types of attributes."""
    made: Tree = {"name": name}
    typed = {}
    for key, value in (attributes or {}).items():
        kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
        typed[key] = {kind: value}
    if typed:
        made["attributes"] = typed
    if capacity:
        made["capacity"] = {key: {"value": value} for key, value in capacity.items()}
    return made


def slice_of(
    node: str,
    devices: Sequence[Tree | str],
    *,
    name: str = "",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    **spec: Any,
) -> Tree:
    """A slice of the node's pool."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name or f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": count},
            "devices": [device(d) if isinstance(d, str) else d for d in devices],
            **spec,
        },
    }


def node(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Tree:
    """A node with room for everything."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def class_of(name: str = "c", driver: str = DRIVER) -> Tree:
    """A class of a driver's devices."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
    }


def request(name: str = "r", *selectors: str, count: int = 1, device_class: str = "c", **more: Any) -> Tree:
    """An exact request."""
    exactly: Tree = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count, **more}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    return {"name": name, "exactly": exactly}


def claim(
    name: str, *requests: Tree, constraints: Sequence[Tree] = (), status: Tree | None = None, **metadata: Any
) -> Tree:
    """A claim in the namespace default."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata},
        "spec": {"devices": {"requests": list(requests), "constraints": list(constraints)}},
        "status": status or {},
    }


def held(name: str, *devices: str, pods: Sequence[str] = (), node_name: str = "n1", driver: str = DRIVER) -> Tree:
    """A claim that holds devices of a node's pool, used by pods."""
    results = [{"request": "r", "driver": driver, "pool": node_name, "device": d} for d in devices]
    status = {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
                ]
            },
        },
        "reservedFor": [{"resource": "pods", "name": p, "uid": f"uid-{p}"} for p in pods],
    }
    return claim(name, request(count=len(devices)), status=status, creationTimestamp="2026-01-01T09:00:00Z")


def pod(name: str, *claims: str, node_name: str = "", phase: str = "Pending", **more: Any) -> Tree:
    """A pod that uses claims by name. ``more``: other members of the spec; ``status`` and ``metadata`` are merged."""
    status = {"phase": phase, **more.pop("status", {})}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-01T11:48:00Z",
        **more.pop("metadata", {}),
    }
    spec: Tree = {
        "containers": [{"name": "main", "image": "x"}],
        "resourceClaims": [{"name": c, "resourceClaimName": c} for c in claims],
        **more,
    }
    if node_name:
        spec["nodeName"] = node_name
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def snapshot(*trees: Tree, **more: Any) -> Snapshot:
    """The objects as a snapshot; nodes that slices name are added, and the class c."""
    gathering = Gathering()
    for tree in trees:
        gathering.add_tree(tree, "test")
    named = {s.spec.node_name for s in gathering.objects["slices"] if s.spec.node_name}
    for name in sorted(named - {n.metadata.name for n in gathering.objects["nodes"]}):
        gathering.add_tree(node(name), "test")
    if not gathering.objects["classes"]:
        gathering.add_tree(class_of(), "test")
    defaults: dict[str, Any] = {"where": "the test", "now": NOW, "gates": FeatureGates()}
    return gathering.snapshot(**{**defaults, **more})


def ask(found: Snapshot, what: str = "pod/p", seconds: float = 60.0) -> tuple[Answer, str]:
    """The answer and its text in one line (wrapping is no matter of the tests)."""
    kind, _, name = what.partition("/")
    ticks = iter(range(10**9))
    # A clock that moves a millisecond with every look: the same on a slow machine.
    why = why_pod if kind == "pod" else why_claim
    answer = why(found, "default", name, lambda: next(ticks) / 1000, seconds)
    return answer, " ".join(" ".join(render(answer)).split())


def partitioned_card(node_name: str = "n1") -> tuple[Tree, Tree]:
    """A card with 8 memory slices as MIG cuts it: 1g at places 0 to 6, 2g at 0, 2, 4, 3g at 0 and 4, and 7g."""
    counters = {f"memory-slice-{i}": {"value": "1"} for i in range(8)} | {"multiprocessors": {"value": "98"}}
    profiles: tuple[tuple[str, int, int, Sequence[int]], ...] = (
        ("1g.10gb", 1, 1, range(7)),
        ("2g.20gb", 2, 2, (0, 2, 4)),
        ("3g.40gb", 3, 4, (0, 4)),
        ("7g.80gb", 7, 8, (0,)),
    )
    devices = []
    for profile, compute, memory, places in profiles:
        for place in places:
            used = {f"memory-slice-{place + i}": {"value": "1"} for i in range(memory)}
            used["multiprocessors"] = {"value": str(14 * compute)}
            made = device(f"gpu-0-{profile.partition('.')[0]}-{place}", {"profile": profile, "type": "mig"})
            made["consumesCounters"] = [{"counterSet": "gpu-0", "counters": used}]
            devices.append(made)
    sets = [{"name": "gpu-0", "counters": counters}]
    return (
        slice_of(node_name, [], name=f"{node_name}-counters", count=2, sharedCounters=sets),
        slice_of(node_name, devices, name=f"{node_name}-devices", count=2),
    )
