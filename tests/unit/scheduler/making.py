"""Pods and nodes for the scheduler's tests, as short as the tests need them."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.devices import DeviceView, ValueSet
from kubedra.allocation.features import Features
from kubedra.allocation.inventory import Inventory
from kubedra.allocation.ledger import Ledger
from kubedra.allocation.selection import ReadSet, SelectorFailure
from kubedra.api import core_v1
from kubedra.api.resource_v1 import DeviceClass, ResourceClaim, ResourceSlice
from kubedra.scheduler.claims import ClaimStore
from kubedra.scheduler.cycle import Cycle, NoPlace, Placed, Verdict
from kubedra.scheduler.dra import DynamicResources
from kubedra.scheduler.extended import ExtendedResources
from kubedra.scheduler.intake import Intake
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo, pod_info
from kubedra.scheduler.queue import SchedulingQueue
from kubedra.scheduler.view import ClusterView

T = TypeVar("T")


def pod(
    name: str, *, namespace: str = "t", node: str = "", labels: dict[str, str] | None = None, **spec: Any
) -> PodInfo:
    """A pod from a spec in JSON form; `cpu` and `memory` become the requests of its one container."""
    requests = {key: spec.pop(key) for key in ("cpu", "memory") if key in spec}
    requests |= spec.pop("requests", {})
    tree: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": requests}}], **spec}
    if node:
        tree["nodeName"] = node
    return pod_info(
        msgspec.convert(
            {
                "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}},
                "spec": tree,
            },
            core_v1.Pod,
        )
    )


def node(
    name: str, *, labels: dict[str, str] | None = None, allocatable: dict[str, str] | None = None, **spec: Any
) -> core_v1.Node:
    """A node of 8 cores and 16Gi unless said otherwise."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "spec": spec,
            "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110", **(allocatable or {})}},
        },
        core_v1.Node,
    )


def view(*nodes: core_v1.Node, pods: tuple[PodInfo, ...] = ()) -> ClusterView:
    """A view of these nodes and bound pods."""
    made = ClusterView()
    for item in nodes:
        made.set_node(item.metadata.name, item)
    for item in pods:
        made.set_pod(item)
    return made


def info(item: core_v1.Node, *pods: PodInfo) -> NodeInfo:
    """One node with these pods on it."""
    return view(item, pods=tuple(pods)).nodes[item.metadata.name]


class FakeExpression:
    """A selector of the form `k=v` (string attribute), `all`, or `error TEXT`."""

    reads = ReadSet(everything=True)

    def __init__(self, text: str, derived: bool = False) -> None:
        self._text = text

    def test(self, device: DeviceView) -> bool:
        """Evaluate."""
        if self._text.startswith("error "):
            raise SelectorFailure(self._text.removeprefix("error "))
        if self._text == "all":
            return True
        key, _, value = self._text.partition("=")
        attribute = device.raw.attributes.get(key)
        return attribute is not None and attribute.string == value

    def derive(self, device: DeviceView) -> ValueSet:
        """Not needed."""
        raise NotImplementedError


class Cluster:
    """Everything pure of a scheduler, driven by hand."""

    def __init__(self, *nodes: core_v1.Node) -> None:
        self.view = ClusterView()
        self.inventory = Inventory(FakeExpression, Features())
        self.ledger = Ledger()
        self.store = ClaimStore(self.ledger)
        self.extended = ExtendedResources()
        self.dra = DynamicResources(self.inventory, Allocator(self.inventory, self.ledger), self.store, self.extended)
        self.queue = SchedulingQueue(self.dra.gate)
        self.intake = Intake(self.view, self.dra, self.queue, "default-scheduler")
        self.cycle = Cycle(self.view, self.dra)
        self.now = 0.0
        for item in nodes:
            self.intake.node(None, item, self.now)

    def add(self, *objects: core_v1.Pod | PodInfo | ResourceClaim | ResourceSlice | DeviceClass) -> None:
        """Watch events: these objects are new."""
        for item in objects:
            match item:
                case PodInfo(pod=raw):
                    self.intake.pod(None, raw, self.now)
                case core_v1.Pod():
                    self.intake.pod(None, item, self.now)
                case ResourceClaim():
                    self.intake.claim(self.store.get((item.metadata.namespace, item.metadata.name)), item, self.now)
                case ResourceSlice():
                    self.intake.resource_slice(None, item, self.now)
                case DeviceClass():
                    self.intake.device_class(None, item, self.now)
        self.intake.settle(self.now)

    def place(self, wanted: PodInfo) -> Verdict:
        """One attempt."""
        return drive(self.cycle.place(wanted, datetime(2026, 1, 1, tzinfo=UTC)))

    def node_of(self, wanted: PodInfo) -> str:
        """The node that an attempt finds."""
        verdict = self.place(wanted)
        assert isinstance(verdict, Placed), verdict
        return verdict.node

    def refused(self, wanted: PodInfo) -> str:
        """The message of an attempt that finds no node."""
        verdict = self.place(wanted)
        assert isinstance(verdict, NoPlace), verdict
        return verdict.message


def drive(steps: Generator[None, None, T]) -> T:
    """Run a generator to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]


def device_class(name: str = "gpu", selector: str = "all", **spec: Any) -> DeviceClass:
    """A device class with one selector."""
    tree = {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": selector}}], **spec}}
    return msgspec.convert(tree, DeviceClass)


def slice_of(node_name: str, *devices: str, driver: str = "d.example", **attributes: str) -> ResourceSlice:
    """A complete pool of one node; all devices have the attributes."""
    values = {key: {"string": value} for key, value in attributes.items()}
    spec = {
        "driver": driver,
        "nodeName": node_name,
        "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name, "attributes": values} for name in devices],
    }
    return msgspec.convert({"metadata": {"name": f"{node_name}-{driver}"}, "spec": spec}, ResourceSlice)


def claim(name: str, *requests: dict[str, Any], namespace: str = "t", version: int = 1, **parts: Any) -> ResourceClaim:
    """A claim; one request for one gpu unless said otherwise."""
    wanted = requests or (exactly("r"),)
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(version)}
    tree = {
        "metadata": metadata | parts.pop("metadata", {}),
        "spec": {"devices": {"requests": list(wanted)}},
        "status": parts.pop("status", {}),
    }
    return msgspec.convert(tree, ResourceClaim)


def exactly(name: str, class_name: str = "gpu", count: int = 1, selector: str = "") -> dict[str, Any]:
    """One exact request."""
    body: dict[str, Any] = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count}
    if selector:
        body["selectors"] = [{"cel": {"expression": selector}}]
    return {"name": name, "exactly": body}


def allocated_on(node_name: str, *devices: str, reserved: tuple[str, ...] = ()) -> dict[str, Any]:
    """The status of a claim that holds these devices of a node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    return {
        "allocation": {
            "devices": {
                "results": [
                    {"request": "r", "driver": "d.example", "pool": node_name, "device": name} for name in devices
                ]
            },
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        },
        "reservedFor": [{"resource": "pods", "name": name, "uid": f"uid-{name}"} for name in reserved],
    }


def using(name: str, *claims: str, **spec: Any) -> PodInfo:
    """A pod that uses claims by name."""
    return pod(name, resourceClaims=[{"name": item, "resourceClaimName": item} for item in claims], **spec)
