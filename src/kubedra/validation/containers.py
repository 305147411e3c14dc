"""Rules of containers: name, image, ports, environment, mounts, probes, resources.

Upstream counterpart: validateContainers and its helpers in pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base import names
from kubedra.validation import formats
from kubedra.validation.choices import not_negative, one_of
from kubedra.validation.environment import validate_environment
from kubedra.validation.pod_claims import validate_container_claims
from kubedra.validation.resources import validate_requirements

Tree = dict[str, Any]

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_NOT_FOR_EPHEMERAL = ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources")


def validate_containers(spec: Tree, path: str) -> list[FieldError]:
    """Check all containers of a pod spec, whose names share one space."""
    errors: list[FieldError] = []
    regular = spec.get("containers") or []
    if not regular:
        errors.append(fields.required(f"{path}.containers"))
    seen: set[str] = set()
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    for list_name in ("containers", "initContainers", "ephemeralContainers"):
        ports: set[tuple[str, str, int]] = set()
        for index, container in enumerate(spec.get(list_name) or ()):
            at = f"{path}.{list_name}[{index}]"
            errors.extend(_validate_name(container.get("name") or "", seen, at))
            errors.extend(_validate_common(container, spec, volumes, at))
            if list_name == "ephemeralContainers":
                errors.extend(_validate_ephemeral(container, at))
                continue
            errors.extend(_validate_ports(container, spec, ports if list_name == "containers" else set(), at))
            errors.extend(_validate_lifecycle(container, list_name == "initContainers", at))
            errors.extend(validate_container_resources(container, spec, at))
    return errors


def validate_container_resources(container: Tree, spec: Tree, path: str) -> list[FieldError]:
    """Check requests, limits and claims of one container."""
    resources = container.get("resources") or {}
    errors = validate_requirements(resources, f"{path}.resources")
    if resources.get("claims"):
        errors.extend(
            validate_container_claims(resources["claims"], spec.get("resourceClaims"), f"{path}.resources.claims")
        )
    return errors


def _validate_name(name: str, seen: set[str], path: str) -> list[FieldError]:
    if not name:
        return [fields.required(f"{path}.name")]
    errors = formats.label(name, f"{path}.name")
    if name in seen:
        errors.append(fields.duplicate(f"{path}.name", name))
    seen.add(name)
    return errors


def _validate_common(container: Tree, spec: Tree, volumes: set[Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    errors.extend(validate_image(container.get("image") or "", f"{path}.image"))
    policy_path = f"{path}.terminationMessagePolicy"
    errors.extend(one_of(container.get("terminationMessagePolicy"), ("File", "FallbackToLogsOnError"), policy_path))
    policies = ("Always", "IfNotPresent", "Never")
    errors.extend(one_of(container.get("imagePullPolicy"), policies, f"{path}.imagePullPolicy"))
    errors.extend(validate_environment(container, path))
    errors.extend(_validate_mounts(container, volumes, path))
    security = container.get("securityContext") or {}
    if security.get("privileged") and security.get("allowPrivilegeEscalation") is False:
        text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        errors.append(fields.invalid(f"{path}.securityContext", security, text))
    for name in ("runAsUser", "runAsGroup"):
        errors.extend(_validate_identity(security.get(name), f"{path}.securityContext.{name}"))
    return errors


def validate_image(image: str, path: str) -> list[FieldError]:
    """Check the name of an image: there, and without white space around it."""
    if not image:
        return [fields.required(path)]
    if image != image.strip():
        return [fields.invalid(path, image, "must not have leading or trailing whitespace")]
    return []


def _validate_identity(value: Any, path: str) -> list[FieldError]:
    if isinstance(value, int) and not 0 <= value <= 2147483647:
        return [fields.invalid(path, value, "must be between 0 and 2147483647, inclusive")]
    return []


def _validate_ephemeral(container: Tree, path: str) -> list[FieldError]:
    return [
        fields.forbidden(f"{path}.{name}", "cannot be set for an Ephemeral Container")
        for name in _NOT_FOR_EPHEMERAL
        if container.get(name)
    ]


def _validate_ports(container: Tree, spec: Tree, used: set[tuple[str, str, int]], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(container.get("ports") or ()):
        at = f"{path}.ports[{index}]"
        name = port.get("name") or ""
        if name:
            faults = [fields.invalid(f"{at}.name", name, fault) for fault in names.port_name(name)]
            if not faults and name in seen:
                faults = [fields.duplicate(f"{at}.name", name)]
            seen.add(name)
            errors.extend(faults)
        number, host = port.get("containerPort") or 0, port.get("hostPort") or 0
        if not number:
            errors.append(fields.required(f"{at}.containerPort"))
        else:
            errors.extend(fields.invalid(f"{at}.containerPort", number, f) for f in names.port_number(number))
        protocol = port.get("protocol") or ""
        errors.extend(one_of(protocol, ("SCTP", "TCP", "UDP"), f"{at}.protocol"))
        if not host:
            continue
        errors.extend(fields.invalid(f"{at}.hostPort", host, fault) for fault in names.port_number(host))
        if spec.get("hostNetwork") and host != number:
            text = "must match `hostPort` when `hostNetwork` is true"
            errors.append(fields.invalid(f"{at}.containerPort", number, text))
        key = (protocol, port.get("hostIP") or "", host)
        if key in used:
            errors.append(fields.duplicate(f"{at}.hostPort", "/".join(map(str, key))))
        used.add(key)
    return errors


def _validate_mounts(container: Tree, volumes: set[Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    places: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        at = f"{path}.volumeMounts[{index}]"
        name, place = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(fields.required(f"{at}.name"))
        if name not in volumes:
            errors.append(fields.not_found(f"{at}.name", name))
        if not place:
            errors.append(fields.required(f"{at}.mountPath"))
        if place in places:
            errors.append(fields.invalid(f"{at}.mountPath", place, "must be unique"))
        places.add(place)
        for member in ("subPath", "subPathExpr"):
            # Upstream leaves the index out of this path.
            errors.extend(_validate_inner_path(mount.get(member) or "", f"{path}.volumeMounts.{member}"))
        if mount.get("subPath") and mount.get("subPathExpr"):
            text = "subPathExpr and subPath are mutually exclusive"
            errors.append(fields.invalid(f"{at}.subPathExpr", mount["subPathExpr"], text))
    return errors


def _validate_inner_path(value: str, path: str) -> list[FieldError]:
    if value.startswith("/"):
        return [fields.invalid(path, value, "must be a relative path")]
    if ".." in value.split("/"):
        return [fields.invalid(path, value, "must not contain '..'")]
    return []


def _validate_lifecycle(container: Tree, init: bool, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    policy = container.get("restartPolicy")
    if policy is not None:
        errors.extend(one_of(policy, ("Always", "OnFailure", "Never"), f"{path}.restartPolicy"))
    ends = init and policy != "Always"
    lifecycle = container.get("lifecycle")
    if lifecycle is not None and ends:
        text = "may not be set for init containers without restartPolicy=Always"
        errors.append(fields.forbidden(f"{path}.lifecycle", text))
    elif lifecycle is not None:
        for name in ("postStart", "preStop"):
            if lifecycle.get(name) is not None:
                errors.extend(_validate_handler(lifecycle[name], _HANDLERS, f"{path}.lifecycle.{name}"))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is None:
            continue
        if ends:
            text = "may not be set for init containers without restartPolicy=Always"
            errors.append(fields.forbidden(f"{path}.{name}", text))
        else:
            errors.extend(_validate_probe(probe, name, f"{path}.{name}"))
    return errors


def _validate_probe(probe: Tree, kind: str, path: str) -> list[FieldError]:
    errors = _validate_handler(probe, _PROBE_HANDLERS, path)
    for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        errors.extend(not_negative(probe.get(name), f"{path}.{name}"))
    grace = probe.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace <= 0:
        errors.append(fields.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if kind == "readinessProbe" and grace is not None:
        text = "must not be set for readinessProbes"
        errors.append(fields.invalid(f"{path}.terminationGracePeriodSeconds", grace, text))
    if kind != "readinessProbe" and probe.get("successThreshold") not in (None, 1):
        errors.append(fields.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return errors


def _validate_handler(handler: Tree, allowed: tuple[str, ...], path: str) -> list[FieldError]:
    given = [name for name in allowed if handler.get(name) is not None]
    if not given:
        return [fields.required(path, "must specify a handler type")]
    errors = [fields.forbidden(f"{path}.{name}", "may not specify more than 1 handler type") for name in given[1:]]
    first, value, at = given[0], handler[given[0]], f"{path}.{given[0]}"
    if first == "exec" and not value.get("command"):
        errors.append(fields.required(f"{at}.command"))
    elif first == "httpGet":
        if not value.get("path"):
            errors.append(fields.required(f"{at}.path"))
        errors.extend(_validate_port(value.get("port"), f"{at}.port"))
        errors.extend(one_of(value.get("scheme"), ("HTTP", "HTTPS"), f"{at}.scheme"))
    elif first in ("tcpSocket", "grpc"):
        errors.extend(_validate_port(value.get("port"), f"{at}.port"))
    return errors


def _validate_port(port: Any, path: str) -> list[FieldError]:
    if isinstance(port, str):
        return [fields.invalid(path, port, fault) for fault in names.port_name(port)]
    return [fields.invalid(path, port or 0, fault) for fault in names.port_number(port or 0)]
