"""Defaults of pods and of the pod templates inside workloads.

Some defaults are a pod's alone (requests that follow limits, enableServiceLinks): a template keeps what its author
wrote, so that changing such a default later changes new pods and not the templates.

Upstream counterpart: pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubedra.base.quantity import Quantity, QuantityError

Tree = dict[str, Any]

FILE_MODE = 0o644
TOKEN_SECONDS = 3600

_VOLUME_NOT_A_SOURCE = {"name"}
_POD_LEVEL_RESOURCES = ("cpu", "memory")


def default_pod(pod: Tree) -> None:
    """Fill in a Pod: what its spec says nothing of, then requests from limits."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return
    for container in (*members(spec, "containers"), *members(spec, "initContainers")):
        _requests_from_limits(container.get("resources"))
    if isinstance(spec.get("resources"), dict):
        _pod_level_requests(spec, spec["resources"])
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        for container in (*members(spec, "containers"), *members(spec, "initContainers")):
            _host_ports(container)
    default_pod_spec(spec)


def default_pod_template_object(tree: Tree) -> None:
    """Fill in the kind PodTemplate, whose template stands at its top."""
    template = tree.get("template")
    if isinstance(template, dict):
        default_template(template)


def default_template(template: Tree) -> None:
    """Fill in a pod template of a workload (its `spec` member; a missing one becomes an empty one)."""
    spec = template.get("spec")
    if spec is None:
        spec = template["spec"] = {}
    if isinstance(spec, dict):
        default_pod_spec(spec)
        if spec.get("hostNetwork"):
            for container in (*members(spec, "containers"), *members(spec, "initContainers")):
                _host_ports(container)


def default_pod_spec(spec: Tree) -> None:
    """Fill in what pods and templates have in common."""
    _set(spec, "dnsPolicy", "ClusterFirst")
    _set(spec, "restartPolicy", "Always")
    _set(spec, "schedulerName", "default-scheduler")
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    for container in members(spec, "containers", "initContainers", "ephemeralContainers"):
        _default_container(container)
    for volume in members(spec, "volumes"):
        _default_volume(volume)


def members(tree: Tree, *names: str) -> Iterator[Tree]:
    """Walk the objects of some lists of a tree; what is missing or of another type counts as empty."""
    for name in names:
        value = tree.get(name)
        if isinstance(value, list):
            yield from (item for item in value if isinstance(item, dict))


def pull_policy(image: str) -> str:
    """Tell how often an image is pulled when nobody said: always for a moving tag."""
    name, at, _ = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    moving = (not colon and not at) or tag == "latest"
    return "Always" if moving else "IfNotPresent"


def _set(tree: Tree, name: str, value: Any) -> None:
    if not tree.get(name):
        tree[name] = value


def _set_missing(tree: Tree, name: str, value: Any) -> None:
    if tree.get(name) is None:
        tree[name] = value


def _default_container(container: Tree) -> None:
    _set(container, "imagePullPolicy", pull_policy(str(container.get("image") or "")))
    _set(container, "terminationMessagePath", "/dev/termination-log")
    _set(container, "terminationMessagePolicy", "File")
    for port in members(container, "ports"):
        _set(port, "protocol", "TCP")
    for variable in members(container, "env"):
        _default_field_reference(variable.get("valueFrom"))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if isinstance(probe, dict):
            _default_probe(probe)
    lifecycle = container.get("lifecycle")
    if isinstance(lifecycle, dict):
        for name in ("postStart", "preStop"):
            handler = lifecycle.get(name)
            if isinstance(handler, dict):
                _default_http(handler.get("httpGet"))


def _default_probe(probe: Tree) -> None:
    _set(probe, "timeoutSeconds", 1)
    _set(probe, "periodSeconds", 10)
    _set(probe, "successThreshold", 1)
    _set(probe, "failureThreshold", 3)
    _default_http(probe.get("httpGet"))
    grpc = probe.get("grpc")
    if isinstance(grpc, dict):
        _set_missing(grpc, "service", "")


def _default_http(action: Any) -> None:
    if isinstance(action, dict):
        _set(action, "path", "/")
        _set(action, "scheme", "HTTP")


def _default_field_reference(source: Any) -> None:
    if not isinstance(source, dict):
        return
    reference = source.get("fieldRef")
    if isinstance(reference, dict):
        _set(reference, "apiVersion", "v1")


def _default_volume(volume: Tree) -> None:
    if not any(value is not None for name, value in volume.items() if name not in _VOLUME_NOT_A_SOURCE):
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        source = volume.get(name)
        if isinstance(source, dict):
            _set_missing(source, "defaultMode", FILE_MODE)
    for item in members(volume.get("downwardAPI") or {}, "items"):
        _default_field_reference(item)
    for source in members(volume.get("projected") or {}, "sources"):
        token = source.get("serviceAccountToken")
        if isinstance(token, dict):
            _set_missing(token, "expirationSeconds", TOKEN_SECONDS)
        for item in members(source.get("downwardAPI") or {}, "items"):
            _default_field_reference(item)
    host = volume.get("hostPath")
    if isinstance(host, dict):
        _set_missing(host, "type", "")


def _requests_from_limits(resources: Any) -> None:
    """Ask for as much as is allowed where only the limit was given."""
    if not isinstance(resources, dict) or not isinstance(resources.get("limits"), dict):
        return
    requests = resources.get("requests")
    if requests is None:
        requests = resources["requests"] = {}
    for name, limit in resources["limits"].items():
        requests.setdefault(name, limit)
    if not requests:
        del resources["requests"]


def _pod_level_requests(spec: Tree, resources: Tree) -> None:
    limits = resources.get("limits") or {}
    requests = dict(resources.get("requests") or {})
    if not limits and not requests:
        return
    for name, amount in _container_requests(spec).items():
        if _is_pod_level(name) and not name.startswith("hugepages-"):
            requests.setdefault(name, amount)
    for name, limit in limits.items():
        if _is_pod_level(name):
            requests.setdefault(name, limit)
    if requests:
        resources["requests"] = requests


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL_RESOURCES or name.startswith("hugepages-")


def _container_requests(spec: Tree) -> dict[str, str]:
    """Add up what the containers ask for: regular ones and sidecars together, the largest init step at least."""
    total: dict[str, Quantity] = {}
    for container in members(spec, "containers"):
        _add(total, container)
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in members(spec, "initContainers"):
        if container.get("restartPolicy") == "Always":
            _add(total, container)
            _add(sidecars, container)
            step = dict(sidecars)
        else:
            step = dict(sidecars)
            _add(step, container)
        for name, amount in step.items():
            if name not in peak or peak[name] < amount:
                peak[name] = amount
    for name, amount in peak.items():
        if name not in total or total[name] < amount:
            total[name] = amount
    return {name: str(amount) for name, amount in total.items()}


def _add(total: dict[str, Quantity], container: Tree) -> None:
    requests = (container.get("resources") or {}).get("requests") or {}
    for name, text in requests.items():
        try:
            amount = Quantity.parse(text)
        except QuantityError:
            continue
        total[name] = total[name] + amount if name in total else amount


def _host_ports(container: Tree) -> None:
    for port in members(container, "ports"):
        if not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]
