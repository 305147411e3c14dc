"""The Node object as this agent states it: capacity, conditions, addresses, facts of the machine.

Pure but for reading facts of the machine. Upstream counterpart: pkg/kubelet/nodestatus.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubedra.api.core_v1 import Node
from kubedra.node.runtime.identity import boot_id
from kubedra.node.settings import AgentSettings

Tree = dict[str, Any]

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_HEALTHY = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}


def architecture() -> str:
    """This machine's architecture as Go names it."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def memory_kib() -> int:
    """This machine's memory."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1])
    return 0


def node_info(runtime_version: str, version: str) -> Tree:
    """Facts of the machine."""
    try:
        machine = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine = ""
    return {
        "architecture": architecture(),
        "bootID": boot_id(),
        "containerRuntimeVersion": runtime_version,
        "kernelVersion": platform.release(),
        "kubeProxyVersion": "",
        "kubeletVersion": f"v{version}.0+kubedra",
        "machineID": machine,
        "operatingSystem": "linux",
        "osImage": "kubedra",
        "systemUUID": machine,
    }


def capacity(settings: AgentSettings) -> Tree:
    """cpu, memory and pods: as set, else the machine's."""
    return {
        "cpu": settings.cpu or str(os.cpu_count() or 1),
        "memory": settings.memory or f"{memory_kib()}Ki",
        "pods": str(settings.pods),
    }


def with_devices(resources: Tree, devices: Mapping[str, int], known: Mapping[str, str]) -> Tree:
    """Resources with those of device plugins. One that the node once had and that nobody serves now is "0"."""
    gone = {name: "0" for name in known if "/" in name and not name.startswith(("kubernetes.io/", "hugepages-"))}
    return resources | gone | {name: str(count) for name, count in devices.items()}


def conditions(now: str, before: Node | None) -> list[Tree]:
    """The conditions of a node that works; transition times stay while nothing changes."""
    known = {c.type: c for c in before.status.conditions} if before is not None else {}
    said = []
    for kind, (status, reason, message) in _HEALTHY.items():
        last = known.get(kind)
        moment = last.last_transition_time if last is not None and last.status == status else now
        said.append(
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": moment or now,
            }
        )
    return said


def labels(settings: AgentSettings) -> dict[str, str]:
    """The labels every node has, and the node's own."""
    arch = architecture()
    return {
        "kubernetes.io/hostname": settings.node,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": arch,
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": arch,
    } | dict(settings.labels)


def node_tree(settings: AgentSettings, status: Tree) -> Tree:
    """The Node to create."""
    tree: Tree = {
        "metadata": {"name": settings.node, "labels": labels(settings)},
        "spec": {},
        "status": status,
    }
    if settings.taints:
        tree["spec"]["taints"] = [dict(taint) for taint in settings.taints]
    return tree


def comparable(status: Tree) -> Tree:
    """A status without the heartbeat, to see whether it says anything new."""
    plain = [{k: v for k, v in c.items() if k != "lastHeartbeatTime"} for c in status.get("conditions", [])]
    return status | {"conditions": plain}
