"""The columns of each kind that people look at, as upstream prints them.

A column is a name, a type, a priority (1: only with -o wide) and a function from the object to its cell.
Upstream counterpart: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any

from kubedra.base.clock import parse_time
from kubedra.server.tables import pods
from kubedra.server.tables.cells import (
    access_modes,
    condition,
    created,
    duration,
    joined,
    label_selector,
    plain_selector,
    since,
    spec,
    status,
    template_columns,
)

Tree = dict[str, Any]
Cell = Callable[[Tree, datetime], Any]
Column = tuple[str, str, int, Cell]


class Layout:
    """Columns of one kind."""

    def __init__(self, columns: list[Column]) -> None:
        self._cells = [cell for _, _, _, cell in columns]
        self.definitions = [
            {
                "name": name,
                "type": kind,
                "format": "name" if name == "Name" else "",
                "description": "",
                "priority": priority,
            }
            for name, kind, priority, _ in columns
        ]

    def cells(self, tree: Tree, now: datetime) -> list[Any]:
        """The row of an object."""
        return [cell(tree, now) for cell in self._cells]


def _name(tree: Tree, now: datetime) -> str:
    return str(tree["metadata"]["name"])


NAME: Column = ("Name", "string", 0, _name)
AGE: Column = ("Age", "string", 0, created)


def text(name: str, cell: Callable[[Tree], Any], priority: int = 0, kind: str = "string") -> Column:
    """A column whose cell does not depend on the time."""
    return (name, kind, priority, lambda tree, now: cell(tree))


def number(name: str, cell: Callable[[Tree], Any]) -> Column:
    """A column of numbers."""
    return text(name, cell, kind="integer")


_CONTAINERS = text("Containers", lambda t: template_columns(t)[0], 1)
_IMAGES = text("Images", lambda t: template_columns(t)[1], 1)
_SELECTOR = text("Selector", lambda t: label_selector(spec(t).get("selector")), 1)
_WORKLOAD = [_CONTAINERS, _IMAGES, _SELECTOR]


def _node_status(tree: Tree) -> str:
    ready = condition(tree, "Ready")
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if spec(tree).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(tree: Tree) -> str:
    roles = set()
    for key, value in (tree["metadata"].get("labels") or {}).items():
        if key.startswith("node-role.kubernetes.io/"):
            roles.add(key.removeprefix("node-role.kubernetes.io/"))
        elif key == "kubernetes.io/role" and value:
            roles.add(value)
    return joined(sorted(role for role in roles if role))


def _address(kind: str) -> Callable[[Tree], str]:
    def cell(tree: Tree) -> str:
        for entry in status(tree).get("addresses") or ():
            if entry.get("type") == kind:
                return str(entry.get("address"))
        return "<none>"

    return cell


def _info(member: str) -> Callable[[Tree], str]:
    return lambda tree: (status(tree).get("nodeInfo") or {}).get(member) or "<unknown>"


def _ports(tree: Tree) -> str:
    parts = []
    for port in spec(tree).get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        parts.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return joined(parts)


def _external(tree: Tree) -> str:
    if spec(tree).get("externalIPs"):
        return joined(spec(tree)["externalIPs"])
    if spec(tree).get("type") == "ExternalName":
        return str(spec(tree).get("externalName", ""))
    ingress = (status(tree).get("loadBalancer") or {}).get("ingress") or []
    found = [entry.get("ip") or entry.get("hostname") or "" for entry in ingress]
    if spec(tree).get("type") == "LoadBalancer" and not found:
        return "<pending>"
    return joined(found)


def _job_completions(tree: Tree) -> str:
    done, wanted, parallel = (
        status(tree).get("succeeded", 0),
        spec(tree).get("completions"),
        spec(tree).get("parallelism"),
    )
    if wanted is not None:
        return f"{done}/{wanted}"
    return f"{done}/1 of {parallel}" if parallel and parallel > 1 else f"{done}/1"


def _job_status(tree: Tree) -> str:
    for kind, word in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")):
        found = condition(tree, kind)
        if found and found.get("status") == "True":
            return word
    if tree["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("FailureTarget", "SuccessCriteriaMet"):
        found = condition(tree, kind)
        if found and found.get("status") == "True":
            return kind
    return "Running"


def _job_duration(tree: Tree, now: datetime) -> str:
    start, end = status(tree).get("startTime"), status(tree).get("completionTime")
    if not start:
        return ""
    return duration(((parse_time(end) if end else now) - parse_time(start)).total_seconds())


def _claim_state(tree: Tree) -> str:
    words = []
    state = status(tree)
    if tree["metadata"].get("deletionTimestamp"):
        words.append("deleted")
    if not state.get("allocation"):
        if not words:
            words.append("pending")
    else:
        words.append("allocated")
        words.append("reserved" if state.get("reservedFor") else "")
    return ",".join(word for word in words if word)


def _pool_counts(member: str) -> Callable[[Tree], str]:
    def cell(tree: Tree) -> str:
        state = tree.get("status")
        if not state:
            return "-"
        pools = state.get("pools") or []
        if member == "errors":
            return str(sum(1 for pool in pools if pool.get("validationError")))
        return str(sum(pool.get(member) or 0 for pool in pools))

    return cell


def _pool_status(tree: Tree) -> str:
    state = tree.get("status")
    if not state:
        return "Pending"
    shown, total = len(state.get("pools") or []), state.get("poolCount", 0)
    return "Complete" if shown >= total else f"Complete ({shown}/{total} pools)"


def _pool_completed(tree: Tree, now: datetime) -> str:
    for found in status(tree).get("conditions") or ():
        if found.get("type") == "Complete" and found.get("status") == "True":
            return since(found.get("lastTransitionTime"), now)
    return "<none>"


def _event_object(tree: Tree) -> str:
    involved = tree.get("involvedObject") or {}
    name = involved.get("name", "")
    return f"{involved.get('kind', '').lower()}/{name}" if name else involved.get("kind", "").lower()


def _event_source(tree: Tree) -> str:
    source = tree.get("source") or {}
    component = source.get("component") or tree.get("reportingComponent", "")
    host = source.get("host") or tree.get("reportingInstance", "")
    return ", ".join(part for part in (component, host) if part)


def _event_time(tree: Tree, now: datetime, *, first: bool) -> str:
    series = tree.get("series") or {}
    if first:
        found = tree.get("firstTimestamp") or tree.get("eventTime")
    else:
        found = series.get("lastObservedTime") or tree.get("lastTimestamp") or tree.get("eventTime")
    return since(found, now)


def _event_count(tree: Tree) -> int:
    series = tree.get("series")
    return int(series.get("count", 1)) if series else int(tree.get("count") or 1)


def _role(tree: Tree) -> str:
    reference = tree.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def _subjects(kind: str) -> Callable[[Tree], str]:
    def cell(tree: Tree) -> str:
        found = []
        for subject in tree.get("subjects") or ():
            if subject.get("kind") == kind:
                name = subject.get("name", "")
                found.append(f"{subject.get('namespace', '')}/{name}" if kind == "ServiceAccount" else name)
        return ", ".join(found)

    return cell


def _quota(member: str) -> Callable[[Tree], str]:
    def cell(tree: Tree) -> str:
        hard, used = status(tree).get("hard") or {}, status(tree).get("used") or {}
        parts = [
            f"{name}: {used.get(name, '0')}/{value}"
            for name, value in sorted(hard.items())
            if name.startswith("limits.") == (member == "limits")
        ]
        return ", ".join(parts)

    return cell


def _value(tree: Tree, *path: str, default: Any = "") -> Any:
    found: Any = tree
    for part in path:
        found = (found or {}).get(part)
    return default if found is None else found


def _bindings() -> list[Column]:
    return [
        NAME,
        text("Role", _role),
        AGE,
        text("Users", _subjects("User"), 1),
        text("Groups", _subjects("Group"), 1),
        text("ServiceAccounts", _subjects("ServiceAccount"), 1),
    ]


_LAYOUTS: dict[str, list[Column]] = {
    "pods": [
        NAME,
        text("Ready", pods.ready),
        text("Status", pods.phase),
        ("Restarts", "string", 0, pods.restarts),
        AGE,
        text("IP", lambda t: status(t).get("podIP") or "<none>", 1),
        text("Node", lambda t: spec(t).get("nodeName") or "<none>", 1),
        text("Nominated Node", lambda t: status(t).get("nominatedNodeName") or "<none>", 1),
        text("Readiness Gates", pods.readiness_gates, 1),
    ],
    "nodes": [
        NAME,
        text("Status", _node_status),
        text("Roles", _node_roles),
        AGE,
        text("Version", lambda t: _value(t, "status", "nodeInfo", "kubeletVersion")),
        text("Internal-IP", _address("InternalIP"), 1),
        text("External-IP", _address("ExternalIP"), 1),
        text("OS-Image", _info("osImage"), 1),
        text("Kernel-Version", _info("kernelVersion"), 1),
        text("Container-Runtime", _info("containerRuntimeVersion"), 1),
    ],
    "namespaces": [NAME, text("Status", lambda t: status(t).get("phase", "")), AGE],
    "services": [
        NAME,
        text("Type", lambda t: spec(t).get("type", "")),
        text("Cluster-IP", lambda t: spec(t).get("clusterIP") or "<none>"),
        text("External-IP", _external),
        text("Port(s)", _ports),
        AGE,
        text("Selector", lambda t: plain_selector(spec(t).get("selector")), 1),
    ],
    "configmaps": [
        NAME,
        number("Data", lambda t: len(t.get("data") or ()) + len(t.get("binaryData") or ())),
        AGE,
    ],
    "secrets": [
        NAME,
        text("Type", lambda t: t.get("type", "")),
        number("Data", lambda t: len(t.get("data") or ())),
        AGE,
    ],
    "serviceaccounts": [NAME, text("Secrets", lambda t: len(t.get("secrets") or ())), AGE],
    "events": [
        ("Last Seen", "string", 0, lambda t, now: _event_time(t, now, first=False)),
        text("Type", lambda t: t.get("type", "")),
        text("Reason", lambda t: t.get("reason", "")),
        text("Object", _event_object),
        text("Subobject", lambda t: (t.get("involvedObject") or {}).get("fieldPath", ""), 1),
        text("Source", _event_source, 1),
        text("Message", lambda t: (t.get("message") or "").strip()),
        ("First Seen", "string", 1, lambda t, now: _event_time(t, now, first=True)),
        text("Count", _event_count, 1, "integer"),
        ("Name", "string", 1, _name),
    ],
    "resourcequotas": [NAME, text("Request", _quota("requests")), text("Limit", _quota("limits")), AGE],
    "persistentvolumeclaims": [
        NAME,
        text("Status", lambda t: status(t).get("phase", "")),
        text("Volume", lambda t: spec(t).get("volumeName", "")),
        text("Capacity", lambda t: _value(t, "status", "capacity", "storage")),
        text("Access Modes", lambda t: access_modes(status(t).get("accessModes"))),
        text("StorageClass", lambda t: spec(t).get("storageClassName", "")),
        text("VolumeAttributesClass", lambda t: spec(t).get("volumeAttributesClassName") or "<unset>"),
        AGE,
        text("VolumeMode", lambda t: spec(t).get("volumeMode") or "<unset>", 1),
    ],
    "deployments.apps": [
        NAME,
        text("Ready", lambda t: f"{status(t).get('readyReplicas', 0)}/{spec(t).get('replicas', 0)}"),
        text("Up-to-date", lambda t: status(t).get("updatedReplicas", 0)),
        text("Available", lambda t: status(t).get("availableReplicas", 0)),
        AGE,
        *_WORKLOAD,
    ],
    "replicasets.apps": [
        NAME,
        number("Desired", lambda t: spec(t).get("replicas", 0)),
        number("Current", lambda t: status(t).get("replicas", 0)),
        number("Ready", lambda t: status(t).get("readyReplicas", 0)),
        AGE,
        *_WORKLOAD,
    ],
    "statefulsets.apps": [
        NAME,
        text("Ready", lambda t: f"{status(t).get('readyReplicas', 0)}/{spec(t).get('replicas', 0)}"),
        AGE,
        _CONTAINERS,
        _IMAGES,
    ],
    "daemonsets.apps": [
        NAME,
        number("Desired", lambda t: status(t).get("desiredNumberScheduled", 0)),
        number("Current", lambda t: status(t).get("currentNumberScheduled", 0)),
        number("Ready", lambda t: status(t).get("numberReady", 0)),
        number("Up-to-date", lambda t: status(t).get("updatedNumberScheduled", 0)),
        number("Available", lambda t: status(t).get("numberAvailable", 0)),
        text(
            "Node Selector",
            lambda t: plain_selector(_value(t, "spec", "template", "spec", "nodeSelector", default={})),
        ),
        AGE,
        *_WORKLOAD,
    ],
    "controllerrevisions.apps": [
        NAME,
        text("Controller", lambda t: _owner(t)),
        number("Revision", lambda t: t.get("revision", 0)),
        AGE,
    ],
    "jobs.batch": [
        NAME,
        text("Status", _job_status),
        text("Completions", _job_completions),
        ("Duration", "string", 0, _job_duration),
        AGE,
        *_WORKLOAD,
    ],
    "leases.coordination.k8s.io": [NAME, text("Holder", lambda t: spec(t).get("holderIdentity", "")), AGE],
    "poddisruptionbudgets.policy": [
        NAME,
        text("Min Available", lambda t: str(_value(t, "spec", "minAvailable", default="N/A"))),
        text("Max Unavailable", lambda t: str(_value(t, "spec", "maxUnavailable", default="N/A"))),
        number("Allowed Disruptions", lambda t: status(t).get("disruptionsAllowed", 0)),
        AGE,
    ],
    "priorityclasses.scheduling.k8s.io": [
        NAME,
        number("Value", lambda t: t.get("value", 0)),
        ("Global-Default", "boolean", 0, lambda t, now: bool(t.get("globalDefault"))),
        AGE,
        text("PreemptionPolicy", lambda t: t.get("preemptionPolicy", "")),
    ],
    "roles.rbac.authorization.k8s.io": [
        NAME,
        ("Created At", "string", 0, lambda t, now: t["metadata"].get("creationTimestamp", "")),
    ],
    "clusterroles.rbac.authorization.k8s.io": [
        NAME,
        ("Created At", "string", 0, lambda t, now: t["metadata"].get("creationTimestamp", "")),
    ],
    "rolebindings.rbac.authorization.k8s.io": _bindings(),
    "clusterrolebindings.rbac.authorization.k8s.io": _bindings(),
    "resourceclaims.resource.k8s.io": [NAME, text("State", _claim_state), AGE],
    "resourceslices.resource.k8s.io": [
        NAME,
        text("Node", lambda t: spec(t).get("nodeName", "")),
        text("Driver", lambda t: spec(t).get("driver", "")),
        text("Pool", lambda t: _value(t, "spec", "pool", "name")),
        AGE,
    ],
    "devicetaintrules.resource.k8s.io": [
        NAME,
        text("Key", lambda t: _value(t, "spec", "taint", "key")),
        text("Value", lambda t: _value(t, "spec", "taint", "value")),
        text("Effect", lambda t: _value(t, "spec", "taint", "effect")),
        ("TimeAdded", "string", 0, lambda t, now: since(_value(t, "spec", "taint", "timeAdded", default=None), now)),
        AGE,
    ],
    "resourcepoolstatusrequests.resource.k8s.io": [
        NAME,
        text("Driver", lambda t: spec(t).get("driver", "")),
        text("Total", _pool_counts("totalDevices")),
        text("Available", _pool_counts("availableDevices")),
        text("Allocated", _pool_counts("allocatedDevices")),
        text("Unavailable", _pool_counts("unavailableDevices")),
        text("Errors", _pool_counts("errors")),
        number("Pools", lambda t: status(t).get("poolCount", 0)),
        text("Status", _pool_status),
        ("Completed", "string", 0, _pool_completed),
    ],
}


def _owner(tree: Tree) -> str:
    for reference in tree["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            group = reference.get("apiVersion", "").split("/")[0]
            return f"{reference.get('kind', '').lower()}.{group}/{reference['name']}"
    return "<none>"


@cache
def layout(storage: str) -> Layout:
    """The columns of a storage resource; Name and Age for kinds that have no others."""
    if storage in _LAYOUTS:
        return Layout(_LAYOUTS[storage])
    from kubedra.server.tables.stored_kinds import LAYOUTS

    return Layout(LAYOUTS.get(storage, [NAME, AGE]))
