"""Whether a pod that was bound to this node may run on it: room, ports, node selector.

Pure. The scheduler decided before, but pods can be bound by hand, and two schedulers can't see each other. Reasons and
sentences are upstream's. Upstream counterpart: pkg/kubelet/lifecycle/predicate.go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kubedra.api.core_v1 import Container, Node, Pod
from kubedra.base.node_selectors import matches_node_selector
from kubedra.base.quantity import Quantity


def pod_requests(pod: Pod) -> dict[str, Quantity]:
    """What a pod asks of its node: containers and sidecars together, or the largest init container."""
    total: dict[str, Quantity] = {}
    for container in pod.spec.containers:
        _add(total, container)
    largest: dict[str, Quantity] = {}
    sidecars: dict[str, Quantity] = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            _add(sidecars, container)
            _add(total, container)
            moment = dict(sidecars)
        else:
            moment = dict(sidecars)
            _add(moment, container)
        for resource, amount in moment.items():
            largest[resource] = max(largest.get(resource, amount), amount)
    for resource, amount in largest.items():
        total[resource] = max(total.get(resource, amount), amount)
    for resource, text in pod.spec.overhead.items():
        total[resource] = total.get(resource, Quantity.of(0)) + Quantity.parse(text)
    return total


def _add(total: dict[str, Quantity], container: Container) -> None:
    requests = container.resources.requests if container.resources is not None else {}
    for resource, text in requests.items():
        amount = Quantity.parse(text)
        total[resource] = total[resource] + amount if resource in total else amount


def refusal(pod: Pod, node: Node, others: Collection[Pod], allocatable: Mapping[str, str]) -> tuple[str, str] | None:
    """Reason and sentence when the pod can't run here beside the others; None when it can.

    Resources that the node does not count (served by DRA, or by nobody) are not looked at, as upstream does.
    """
    limit = int(Quantity.parse(allocatable.get("pods", "110")).value())
    if len(others) + 1 > limit:
        return "OutOfpods", _insufficient("pods", 1, len(others), limit)
    used: dict[str, Quantity] = {}
    for other in others:
        for resource, amount in pod_requests(other).items():
            used[resource] = used.get(resource, Quantity.of(0)) + amount
    for resource, amount in sorted(pod_requests(pod).items()):
        if resource not in allocatable or not amount or "/" in resource:
            continue  # extended resources: the device manager says no in its own words
        capacity = Quantity.parse(allocatable[resource])
        taken = used.get(resource, Quantity.of(0))
        if taken + amount > capacity:
            numbers = [q.milli_value() if resource == "cpu" else q.value() for q in (amount, taken, capacity)]
            return f"OutOf{resource}", _insufficient(resource, *numbers)
    if _ports(pod) & frozenset().union(*(_ports(other) for other in others)):
        return "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    if not _wants_node(pod, node):
        text = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
        return "NodeAffinity", text
    return None


def _insufficient(resource: str, requested: int, used: int, capacity: int) -> str:
    return f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"


def _ports(pod: Pod) -> frozenset[tuple[str, int]]:
    return frozenset(
        (port.protocol or "TCP", port.host_port)
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port
    )


def _wants_node(pod: Pod, node: Node) -> bool:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or matches_node_selector(required, labels, node.metadata.name)
