"""What the scheduler needs to know of a pod, worked out once per version of the pod.

Parsing quantities and walking containers for every node, or on every event, is what makes naive schedulers slow; a
`PodInfo` is made when the pod is first seen or changes and is shared by queue, view, filters and scores.

Upstream: pkg/scheduler/framework/types.go (PodInfo), component-helpers/resource/helpers.go (PodRequests).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import msgspec

from kubedra.api import core_v1
from kubedra.base.quantity import Quantity, QuantityError

DEFAULT_SCHEDULER = "default-scheduler"
# A container without a request counts as this much when nodes are scored, so that such pods spread too.
NONZERO_CPU_MILLI = 100
NONZERO_MEMORY = 200 * 1024 * 1024
FINISHED_PHASES = ("Succeeded", "Failed")

_encode = msgspec.json.Encoder(order="deterministic").encode

Resources = dict[str, int]
HostPort = tuple[str, str, int]


@dataclass(frozen=True, slots=True, eq=False)
class PodInfo:
    """A pod with its sums: requests in milli-cores for cpu, in whole units for everything else."""

    pod: core_v1.Pod
    key: str
    namespace: str
    name: str
    uid: str
    node_name: str
    priority: int
    labels: dict[str, str]
    requests: Resources
    nonzero_cpu: int
    nonzero_memory: int
    ports: tuple[HostPort, ...]
    required_affinity: tuple[core_v1.PodAffinityTerm, ...]
    required_anti_affinity: tuple[core_v1.PodAffinityTerm, ...]
    preferred_affinity: tuple[core_v1.WeightedPodAffinityTerm, ...]
    preferred_anti_affinity: tuple[core_v1.WeightedPodAffinityTerm, ...]
    deleting: bool
    shape: bytes
    """Equal for pods that every filter and score of single nodes treats alike."""

    @property
    def spec(self) -> core_v1.PodSpec:
        """The pod's spec."""
        return self.pod.spec

    @property
    def has_affinity(self) -> bool:
        """Whether other pods matter to this pod's placement, or this pod to theirs."""
        return bool(
            self.required_affinity
            or self.required_anti_affinity
            or self.preferred_affinity
            or self.preferred_anti_affinity
        )


def pod_info(pod: core_v1.Pod) -> PodInfo:
    """Work a pod out."""
    spec, metadata = pod.spec, pod.metadata
    requests = pod_requests(spec)
    ports = _host_ports(spec)
    nonzero_cpu, nonzero_memory = _nonzero(spec, requests)
    affinity = spec.affinity
    attract = affinity.pod_affinity if affinity else None
    repel = affinity.pod_anti_affinity if affinity else None
    return PodInfo(
        pod=pod,
        key=f"{metadata.namespace}/{metadata.name}",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        node_name=spec.node_name,
        priority=spec.priority or 0,
        labels=metadata.labels,
        requests=requests,
        nonzero_cpu=nonzero_cpu,
        nonzero_memory=nonzero_memory,
        ports=ports,
        required_affinity=attract.required_during_scheduling_ignored_during_execution if attract else (),
        required_anti_affinity=repel.required_during_scheduling_ignored_during_execution if repel else (),
        preferred_affinity=attract.preferred_during_scheduling_ignored_during_execution if attract else (),
        preferred_anti_affinity=repel.preferred_during_scheduling_ignored_during_execution if repel else (),
        deleting=bool(metadata.deletion_timestamp),
        shape=_encode(
            (
                sorted(requests.items()),
                nonzero_cpu,
                nonzero_memory,
                spec.node_selector,
                affinity.node_affinity if affinity else None,
                spec.tolerations,
                ports,
            )
        ),
    )


def is_finished(pod: core_v1.Pod) -> bool:
    """Whether the pod holds nothing of a node any more."""
    return pod.status.phase in FINISHED_PHASES


def is_ours(pod: core_v1.Pod, scheduler_name: str) -> bool:
    """Whether this scheduler is the one to place the pod (an unset name is the default scheduler's)."""
    return (pod.spec.scheduler_name or DEFAULT_SCHEDULER) == scheduler_name


@lru_cache(maxsize=4096)
def amount(resource: str, quantity: str) -> int:
    """A quantity as the scheduler counts it: milli-units of cpu, whole units rounded up of all else.

    What can't be parsed counts as nothing: refusing it is the API server's business.
    """
    try:
        parsed = Quantity.parse(quantity)
    except QuantityError:
        return 0
    return parsed.milli_value() if resource == "cpu" else parsed.value()


def resources(quantities: dict[str, str]) -> Resources:
    """A map of quantities as numbers."""
    return {name: amount(name, str(quantity)) for name, quantity in quantities.items()}


def pod_requests(spec: core_v1.PodSpec) -> Resources:
    """Sum what a pod asks for: containers and sidecars together, or the largest init phase, plus overhead.

    Requests for the whole pod (`spec.resources`) replace the sums they name.
    """
    total: Resources = {}
    for container in spec.containers:
        _add(total, _requests(container))
    sidecars: Resources = {}
    peak: Resources = {}
    for container in spec.init_containers:
        wanted = _requests(container)
        if container.restart_policy == "Always":
            _add(total, wanted)
            _add(sidecars, wanted)
            _raise(peak, sidecars)
        else:
            phase = dict(wanted)
            _add(phase, sidecars)
            _raise(peak, phase)
    _raise(total, peak)
    if spec.resources is not None:
        total.update(resources(spec.resources.requests))
    if spec.overhead:
        _add(total, resources(spec.overhead))
    return total


def _requests(container: core_v1.Container) -> Resources:
    return resources(container.resources.requests) if container.resources is not None else {}


def _add(total: Resources, more: Resources) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise(total: Resources, other: Resources) -> None:
    for name, value in other.items():
        if value > total.get(name, 0):
            total[name] = value


def _nonzero(spec: core_v1.PodSpec, requests: Resources) -> tuple[int, int]:
    """Requests for scoring: containers that name none count with a default."""
    cpu = memory = 0
    for container in spec.containers:
        wanted = container.resources.requests if container.resources is not None else {}
        cpu += amount("cpu", str(wanted["cpu"])) if "cpu" in wanted else NONZERO_CPU_MILLI
        memory += amount("memory", str(wanted["memory"])) if "memory" in wanted else NONZERO_MEMORY
    return max(cpu, requests.get("cpu", 0)), max(memory, requests.get("memory", 0))


def _host_ports(spec: core_v1.PodSpec) -> tuple[HostPort, ...]:
    ports: list[HostPort] = []
    sidecars = (c for c in spec.init_containers if c.restart_policy == "Always")
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number and number > 0:
                ports.append((port.host_ip or "0.0.0.0", port.protocol or "TCP", number))
    return tuple(ports)
