"""Rules of a container's environment: variables, and where their values come from.

Upstream counterpart: ValidateEnv and ValidateEnvFrom of pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base import names
from kubedra.validation import formats

Tree = dict[str, Any]

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
POD_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)


def validate_environment(container: Tree, path: str) -> list[FieldError]:
    """Check env and envFrom of one container."""
    errors: list[FieldError] = []
    for index, variable in enumerate(container.get("env") or ()):
        at = f"{path}.env[{index}]"
        name = variable.get("name") or ""
        if not name:
            errors.append(fields.required(f"{at}.name"))
        else:
            errors.extend(fields.invalid(f"{at}.name", name, fault) for fault in names.environment_name(name))
        if variable.get("valueFrom") is not None:
            errors.extend(_validate_source(variable, f"{at}.valueFrom"))
    for index, source in enumerate(container.get("envFrom") or ()):
        errors.extend(_validate_bulk(source, f"{path}.envFrom[{index}]"))
    return errors


def validate_field_reference(reference: Tree, allowed: tuple[str, ...], path: str) -> list[FieldError]:
    """Check a reference to a field of the pod; one label or annotation may be named by its key."""
    name = reference.get("fieldPath") or ""
    if not reference.get("apiVersion"):
        return [fields.required(f"{path}.apiVersion")]
    if not name:
        return [fields.required(f"{path}.fieldPath")]
    for subscripted in ("metadata.labels", "metadata.annotations"):
        if name.startswith(subscripted + "['") and name.endswith("']"):
            key = name[len(subscripted) + 2 : -2]
            return [fields.invalid(path, key, fault) for fault in names.qualified_name(key.lower())]
    return [] if name in allowed else [fields.not_supported(f"{path}.fieldPath", name, sorted(allowed))]


def _validate_source(variable: Tree, path: str) -> list[FieldError]:
    source = variable["valueFrom"]
    errors: list[FieldError] = []
    given = [name for name in _SOURCES if source.get(name) is not None]
    for name in given:
        at, value = f"{path}.{name}", source[name]
        if name == "fieldRef":
            errors.extend(validate_field_reference(value, POD_FIELDS, at))
        elif name == "resourceFieldRef":
            if not value.get("resource"):
                errors.append(fields.required(f"{at}.resource"))
        else:
            errors.extend(_validate_key_reference(value, name, at))
    if not given:
        errors.append(fields.invalid(path, "", _NO_SOURCE))
    elif variable.get("value"):
        errors.append(fields.invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        errors.append(fields.invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _validate_key_reference(value: Tree, kind: str, path: str) -> list[FieldError]:
    if kind == "fileKeyRef":
        return [fields.required(f"{path}.{name}") for name in ("volumeName", "path", "key") if not value.get(name)]
    errors: list[FieldError] = []
    errors.extend(formats.subdomain(value.get("name") or "", f"{path}.name"))
    key = value.get("key") or ""
    if not key:
        errors.append(fields.required(f"{path}.key"))
    else:
        errors.extend(fields.invalid(f"{path}.key", key, fault) for fault in names.config_key(key))
    return errors


def _validate_bulk(source: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    prefix = source.get("prefix") or ""
    if prefix:
        errors.extend(fields.invalid(f"{path}.prefix", prefix, fault) for fault in names.environment_name(prefix))
    given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
    if not given:
        errors.append(fields.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
    elif len(given) > 1:
        errors.append(fields.invalid(path, "", "may not have more than one field specified at a time"))
    for name in given:
        errors.extend(formats.required_subdomain(source[name].get("name") or "", f"{path}.{name}.name"))
    return errors
