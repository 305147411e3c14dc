"""The columns of kinds that this server only stores; people list them all the same.

Upstream counterpart: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from typing import Any

from kubedra.server.tables.cells import access_modes, joined, label_selector, since, spec, status, template_columns
from kubedra.server.tables.columns import AGE, NAME, Column, number, text

Tree = dict[str, Any]
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
# Upstream shows three endpoints and counts the others.
_SHOWN_ENDPOINTS = 3


def _some(values: list[str], empty: str = "<none>") -> str:
    more = len(values) - _SHOWN_ENDPOINTS
    shown = ",".join(values[:_SHOWN_ENDPOINTS]) + (f" + {more} more..." if more > 0 else "")
    return shown if values else empty


def _claim(tree: Tree) -> str:
    claim = spec(tree).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _storage_class(tree: Tree) -> str:
    annotations = tree["metadata"].get("annotations") or {}
    default = any(annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    return f"{tree['metadata']['name']} (default)" if default else str(tree["metadata"]["name"])


def _hosts(tree: Tree) -> str:
    hosts = [rule["host"] for rule in spec(tree).get("rules") or () if rule.get("host")]
    return _some(hosts, "*")


def _load_balancers(tree: Tree) -> str:
    entries = (status(tree).get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(entry.get("ip") or entry.get("hostname") or "" for entry in entries)


def _parameters(tree: Tree) -> str:
    found = spec(tree).get("parameters")
    if not found:
        return "<none>"
    group = f".{found['apiGroup']}" if found.get("apiGroup") else ""
    return f"{found.get('kind', '')}{group}/{found.get('name', '')}"


def _endpoints(tree: Tree) -> str:
    found = []
    for subset in tree.get("subsets") or ():
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        if not ports:
            found += addresses
        found += [f"{address}:{port.get('port')}" for port in ports for address in addresses]
    return _some(found)


def _slice_ports(tree: Tree) -> str:
    ports = tree.get("ports") or ()
    return _some([str(port.get("port") or "*") for port in ports], "<unset>")


def _slice_addresses(tree: Tree) -> str:
    return _some([a for endpoint in tree.get("endpoints") or () for a in endpoint.get("addresses") or ()], "<unset>")


def _reference(tree: Tree) -> str:
    target = spec(tree).get("scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _target(metric: Tree, current: Tree | None) -> str:
    kind = metric.get("type", "")
    member = kind[:1].lower() + kind[1:]
    source = metric.get(member) or {}
    wanted = source.get("target") or {}
    have = ((current or {}).get(member) or {}).get("current") or {}
    name = f"{source['name']}: " if kind in ("Resource", "ContainerResource") and source.get("name") else ""
    if wanted.get("averageUtilization") is not None:
        value = have.get("averageUtilization")
        shown = "<unknown>" if value is None else f"{value}%"
        return f"{name}{shown}/{wanted['averageUtilization']}%"
    for amount, suffix in (("averageValue", " (avg)" if kind != "Resource" else ""), ("value", "")):
        if wanted.get(amount):
            return f"{name}{have.get(amount) or '<unknown>'}/{wanted[amount]}{suffix}"
    return "<unknown type>"


def _targets(tree: Tree) -> str:
    now = status(tree).get("currentMetrics") or []
    metrics = spec(tree).get("metrics") or []
    wanted = spec(tree).get("targetCPUUtilizationPercentage")
    if wanted is not None:
        # The older version of the kind knows this one only.
        have = status(tree).get("currentCPUUtilizationPercentage")
        return f"cpu: {'<unknown>' if have is None else f'{have}%'}/{wanted}%"
    shown = [_target(metric, now[index] if index < len(now) else None) for index, metric in enumerate(metrics)]
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more if shown else "<none>"


def _csr_condition(tree: Tree) -> str:
    words = [entry.get("type", "") for entry in status(tree).get("conditions") or ()]
    found = next((word for word in ("Denied", "Approved") if word in words), "Pending")
    if "Failed" in words:
        found += ",Failed"
    return f"{found},Issued" if status(tree).get("certificate") else found


def _job_template(tree: Tree) -> Tree:
    return {"spec": (spec(tree).get("jobTemplate") or {}).get("spec") or {}}


def _pod_template(tree: Tree) -> Tree:
    return {"spec": {"template": tree.get("template") or {}}}


def _boolean(value: Any, default: bool) -> str:
    return str(default if value is None else value).lower()


_CREATED: Column = ("Created At", "string", 0, lambda t, now: t["metadata"].get("creationTimestamp", ""))
_WEBHOOKS = [NAME, number("Webhooks", lambda t: len(t.get("webhooks") or ())), AGE]

LAYOUTS: dict[str, list[Column]] = {
    "persistentvolumes": [
        NAME,
        text("Capacity", lambda t: (spec(t).get("capacity") or {}).get("storage", "")),
        text("Access Modes", lambda t: access_modes(spec(t).get("accessModes"))),
        text("Reclaim Policy", lambda t: spec(t).get("persistentVolumeReclaimPolicy", "")),
        text("Status", lambda t: status(t).get("phase", "")),
        text("Claim", _claim),
        text("StorageClass", lambda t: spec(t).get("storageClassName", "")),
        text("VolumeAttributesClass", lambda t: spec(t).get("volumeAttributesClassName") or "<unset>"),
        text("Reason", lambda t: status(t).get("reason", "")),
        AGE,
        text("VolumeMode", lambda t: spec(t).get("volumeMode") or "<unset>", 1),
    ],
    "storageclasses.storage.k8s.io": [
        ("Name", "string", 0, lambda t, now: _storage_class(t)),
        text("Provisioner", lambda t: t.get("provisioner", "")),
        text("ReclaimPolicy", lambda t: t.get("reclaimPolicy") or "Delete"),
        text("VolumeBindingMode", lambda t: t.get("volumeBindingMode") or "Immediate"),
        text("AllowVolumeExpansion", lambda t: _boolean(t.get("allowVolumeExpansion"), False)),
        AGE,
    ],
    "endpoints": [NAME, text("Endpoints", _endpoints), AGE],
    "endpointslices.discovery.k8s.io": [
        NAME,
        text("AddressType", lambda t: t.get("addressType", "")),
        text("Ports", _slice_ports),
        text("Endpoints", _slice_addresses),
        AGE,
    ],
    "replicationcontrollers": [
        NAME,
        number("Desired", lambda t: spec(t).get("replicas", 0)),
        number("Current", lambda t: status(t).get("replicas", 0)),
        number("Ready", lambda t: status(t).get("readyReplicas", 0)),
        AGE,
        text("Containers", lambda t: template_columns(t)[0], 1),
        text("Images", lambda t: template_columns(t)[1], 1),
        text("Selector", lambda t: joined([f"{k}={v}" for k, v in sorted((spec(t).get("selector") or {}).items())]), 1),
    ],
    "podtemplates": [
        NAME,
        text("Containers", lambda t: template_columns(_pod_template(t))[0]),
        text("Images", lambda t: template_columns(_pod_template(t))[1]),
        text(
            "Pod Labels",
            lambda t: label_selector({"matchLabels": ((t.get("template") or {}).get("metadata") or {}).get("labels")}),
        ),
    ],
    "limitranges": [NAME, _CREATED],
    "cronjobs.batch": [
        NAME,
        text("Schedule", lambda t: spec(t).get("schedule", "")),
        text("Timezone", lambda t: spec(t).get("timeZone") or "<none>"),
        text("Suspend", lambda t: "True" if spec(t).get("suspend") else "False"),
        number("Active", lambda t: len(status(t).get("active") or ())),
        (
            "Last Schedule",
            "string",
            0,
            lambda t, now: (
                since(status(t).get("lastScheduleTime"), now) if status(t).get("lastScheduleTime") else "<none>"
            ),
        ),
        AGE,
        text("Containers", lambda t: template_columns(_job_template(t))[0], 1),
        text("Images", lambda t: template_columns(_job_template(t))[1], 1),
        text("Selector", lambda t: label_selector(spec(_job_template(t)).get("selector")), 1),
    ],
    "horizontalpodautoscalers.autoscaling": [
        NAME,
        text("Reference", _reference),
        text("Targets", _targets),
        text("MinPods", lambda t: str(spec(t).get("minReplicas") or "<unset>")),
        text("MaxPods", lambda t: spec(t).get("maxReplicas", 0)),
        text("Replicas", lambda t: status(t).get("currentReplicas", 0)),
        AGE,
    ],
    "ingresses.networking.k8s.io": [
        NAME,
        text("Class", lambda t: spec(t).get("ingressClassName") or "<none>"),
        text("Hosts", _hosts),
        text("Address", _load_balancers),
        text("Ports", lambda t: "80, 443" if spec(t).get("tls") else "80"),
        AGE,
    ],
    "ingressclasses.networking.k8s.io": [
        NAME,
        text("Controller", lambda t: spec(t).get("controller", "")),
        text("Parameters", _parameters),
        AGE,
    ],
    "networkpolicies.networking.k8s.io": [
        NAME,
        text("Pod-Selector", lambda t: label_selector(spec(t).get("podSelector"))),
        AGE,
    ],
    "certificatesigningrequests.certificates.k8s.io": [
        NAME,
        AGE,
        text("SignerName", lambda t: spec(t).get("signerName", "")),
        text("Requestor", lambda t: spec(t).get("username", "")),
        text("RequestedDuration", lambda t: str(spec(t).get("expirationSeconds") or "<none>")),
        text("Condition", _csr_condition),
    ],
    "runtimeclasses.node.k8s.io": [NAME, text("Handler", lambda t: t.get("handler", "")), AGE],
    "csinodes.storage.k8s.io": [NAME, number("Drivers", lambda t: len(spec(t).get("drivers") or ())), AGE],
    "volumeattachments.storage.k8s.io": [
        NAME,
        text("Attacher", lambda t: spec(t).get("attacher", "")),
        text("PV", lambda t: (spec(t).get("source") or {}).get("persistentVolumeName") or ""),
        text("Node", lambda t: spec(t).get("nodeName", "")),
        text("Attached", lambda t: _boolean(status(t).get("attached"), False)),
        AGE,
    ],
    "volumeattributesclasses.storage.k8s.io": [NAME, text("DriverName", lambda t: t.get("driverName", "")), AGE],
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "customresourcedefinitions.apiextensions.k8s.io": [NAME, _CREATED],
}
