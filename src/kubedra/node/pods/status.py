"""A pod's status as the node sees it: phase, conditions, containers.

Pure. Only fields that the node owns are made; they are written as a patch. Conditions keep their transition time as
long as they say the same. Upstream counterpart: convertToAPIContainerStatuses, getPhase and
pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kubedra.api.core_v1 import Container, Pod, PodCondition
from kubedra.node.pods.lifecycle import Ended, role
from kubedra.node.runtime.contract import ContainerExit

Tree = dict[str, Any]


class Run(msgspec.Struct, frozen=True):
    """One run of a container."""

    id: str
    started: str = ""
    exit: ContainerExit | None = None


class ContainerRecord(msgspec.Struct, frozen=True):
    """All that is to be told of one container."""

    current: Run | None = None
    previous: Run | None = None
    restarts: int = 0
    waiting_reason: str = ""
    waiting_message: str = ""
    ready: bool | None = None
    started: bool = True
    termination_message: str = ""
    resources_status: tuple[Tree, ...] = ()


class PodFacts(msgspec.Struct, frozen=True):
    """What the worker knows of the pod as a whole."""

    now: str
    host_ip: str = ""
    runtime: str = "process"
    start_time: str = ""
    initialized: bool = False
    prepared: bool = False
    # Set once nothing of the pod is left on the node; until then a pod that ended still counts as running.
    ended: Ended = ""
    reason: str = ""
    message: str = ""


def pod_status(pod: Pod, records: Mapping[str, ContainerRecord], facts: PodFacts) -> Tree:
    """The status fields that the node owns."""
    init = [_container_status(pod, c, records[c.name], facts) for c in pod.spec.init_containers]
    mains = [_container_status(pod, c, records[c.name], facts) for c in pod.spec.containers]
    phase = _phase(pod, records, facts)
    status: Tree = {
        "phase": phase,
        "conditions": _conditions(pod, mains, phase, facts),
        "hostIP": facts.host_ip,
        "hostIPs": [{"ip": facts.host_ip}],
        "startTime": facts.start_time,
        "containerStatuses": mains,
        "qosClass": qos_class(pod),
    }
    if pod.metadata.generation is not None:
        status["observedGeneration"] = pod.metadata.generation
    if init:
        status["initContainerStatuses"] = init
    if facts.prepared or phase != "Pending":
        status["podIP"] = facts.host_ip
        status["podIPs"] = [{"ip": facts.host_ip}]
    if facts.reason:
        status["reason"] = facts.reason
    if facts.message:
        status["message"] = facts.message
    return status


def rejected_status(pod: Pod, reason: str, message: str, now: str) -> Tree:
    """The status of a pod that this node does not take; it never had containers."""
    return {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": pod.status.start_time or now,
        "qosClass": qos_class(pod),
    }


def _phase(pod: Pod, records: Mapping[str, ContainerRecord], facts: PodFacts) -> str:
    if facts.ended:
        return facts.ended
    if not facts.initialized:
        return "Pending"
    started = [records[container.name] for container in pod.spec.containers]
    if any(record.current is None and record.previous is None for record in started):
        return "Pending"
    return "Running"


def _container_status(pod: Pod, container: Container, record: ContainerRecord, facts: PodFacts) -> Tree:
    current, kind = record.current, role(pod, container)
    running = current is not None and current.exit is None
    status: Tree = {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "restartCount": record.restarts,
        "ready": _ready(kind, record),
        "started": running and record.started if kind != "init" else False,
    }
    shown = current or record.previous
    if shown is not None and shown.id:
        status["containerID"] = f"{facts.runtime}://{shown.id}"
    if record.waiting_reason:
        status["state"] = {"waiting": _clean({"reason": record.waiting_reason, "message": record.waiting_message})}
        last = current if current is not None and current.exit is not None else record.previous
    elif current is None:
        reason = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
        status["state"] = {"waiting": {"reason": reason}}
        last = record.previous
    elif current.exit is None:
        status["state"] = {"running": {"startedAt": _second(current.started)}}
        last = record.previous
    else:
        status["state"] = {"terminated": _terminated(current, facts.runtime, record.termination_message)}
        last = record.previous
    if last is not None and last.exit is not None:
        status["lastState"] = {"terminated": _terminated(last, facts.runtime, "")}
    else:
        status["lastState"] = {}
    if record.resources_status:
        status["allocatedResourcesStatus"] = list(record.resources_status)
    return status


def _ready(kind: str, record: ContainerRecord) -> bool:
    current = record.current
    if kind == "init":
        return current is not None and current.exit is not None and current.exit.code == 0
    running = current is not None and current.exit is None
    return running and record.started and record.ready is not False


def _terminated(run: Run, runtime: str, message: str) -> Tree:
    end = run.exit
    assert end is not None
    reason = end.reason or ("Completed" if end.code == 0 else "Error")
    return _clean(
        {
            "exitCode": end.code,
            "signal": end.signal or None,
            "reason": reason,
            "message": end.message or message,
            "startedAt": _second(run.started),
            "finishedAt": _second(end.finished),
            "containerID": f"{runtime}://{run.id}" if run.id else "",
        }
    )


def _clean(tree: Tree) -> Tree:
    return {key: value for key, value in tree.items() if value is not None and value != ""}


def _second(moment: str) -> str:
    """An RFC 3339 time in whole seconds, as metav1.Time has it."""
    return moment.split(".")[0].rstrip("Z") + "Z" if moment else ""


def _conditions(pod: Pod, mains: Sequence[Tree], phase: str, facts: PodFacts) -> list[Tree]:
    terminal = phase in ("Succeeded", "Failed")
    unready = [status["name"] for status in mains if not status["ready"]]
    if phase == "Succeeded":
        ready = ("False", "PodCompleted", "")
    elif phase == "Failed":
        ready = ("False", "PodFailed", "")
    elif unready:
        ready = ("False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    else:
        ready = ("True", "", "")
    if phase == "Succeeded":
        initialized = ("True", "PodCompleted", "")
    elif facts.initialized or not pod.spec.init_containers:
        initialized = ("True", "", "")
    else:
        names = " ".join(container.name for container in pod.spec.init_containers)
        initialized = ("False", "ContainersNotInitialized", f"containers with incomplete status: [{names}]")
    gates = [gate.condition_type for gate in pod.spec.readiness_gates]
    pod_ready = ready
    missing = [gate for gate in gates if not _is_true(pod.status.conditions, gate)]
    if ready[0] == "True" and missing:
        text = f'corresponding condition of pod readiness gate "{missing[0]}" does not exist.'
        pod_ready = ("False", "ReadinessGatesNotReady", text)
    prepared = "True" if facts.prepared and not terminal else "False"
    wanted = {
        "PodReadyToStartContainers": (prepared, "", ""),
        "Initialized": initialized,
        "Ready": pod_ready,
        "ContainersReady": ready,
    }
    before = {condition.type: condition for condition in pod.status.conditions}
    return [
        _condition(kind, *said, before.get(kind), facts.now, pod.metadata.generation) for kind, said in wanted.items()
    ]


def _condition(
    kind: str, status: str, reason: str, message: str, before: PodCondition | None, now: str, generation: int | None
) -> Tree:
    changed = before is None or before.status != status
    moment = now if changed or before is None else before.last_transition_time or now
    # Fields that the last one had and this one has not must be taken away by name.
    condition: Tree = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": moment}
    condition |= {"reason": reason or None, "message": message or None}
    if generation is not None:
        condition["observedGeneration"] = generation
    return condition


def _is_true(conditions: Sequence[PodCondition], kind: str) -> bool:
    return any(condition.type == kind and condition.status == "True" for condition in conditions)


def qos_class(pod: Pod) -> str:
    """Guaranteed, Burstable or BestEffort, by cpu and memory."""
    if pod.status.qos_class:
        return pod.status.qos_class
    named = False
    guaranteed = True
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        limits = container.resources.limits if container.resources is not None else {}
        requests = container.resources.requests if container.resources is not None else {}
        for resource in ("cpu", "memory"):
            limit, request = limits.get(resource), requests.get(resource)
            named |= limit is not None or request is not None
            guaranteed &= limit is not None and request in (None, limit)
    if not named:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
