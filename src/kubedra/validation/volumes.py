"""Rules of a pod's volumes: one source each, complete as far as pods commonly use them.

Sources that the project does not act on are only counted; their insides pass unchecked.

Upstream counterpart: ValidateVolumes of pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.validation import formats
from kubedra.validation.environment import VOLUME_FIELDS, validate_field_reference
from kubedra.validation.resources import quantity

Tree = dict[str, Any]

MODE_MAX = 0o777
TOKEN_SECONDS_MIN = 600
_MODE_FAULT = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def validate_volumes(volumes: Any, path: str) -> list[FieldError]:
    """Check the volumes of a pod spec."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes or ()):
        at = f"{path}[{index}]"
        name = volume.get("name") or ""
        if not name:
            errors.append(fields.required(f"{at}.name"))
        else:
            errors.extend(formats.label(name, f"{at}.name"))
            if name in seen:
                errors.append(fields.duplicate(f"{at}.name", name))
            seen.add(name)
        errors.extend(_validate_source(volume, at))
    return errors


def _validate_source(volume: Tree, path: str) -> list[FieldError]:
    given = [name for name in _ORDER if volume.get(name) is not None]
    given += [name for name, value in volume.items() if name not in ("name", *_ORDER) and value is not None]
    if not given:
        return [fields.required(path, "must specify a volume type")]
    # Upstream looks at the types in a fixed order and refuses each after the first.
    first = given[0]
    check = _CHECKS.get(first)
    errors = check(volume[first], f"{path}.{first}") if check is not None else []
    for name in given[1:]:
        errors.append(fields.forbidden(f"{path}.{name}", "may not specify more than 1 volume type"))
    return errors


def _validate_mode(value: Any, path: str) -> list[FieldError]:
    if isinstance(value, int) and not 0 <= value <= MODE_MAX:
        return [fields.invalid(path, value, _MODE_FAULT)]
    return []


def _validate_items(items: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, item in enumerate(items or ()):
        at = f"{path}[{index}]"
        if not item.get("key"):
            errors.append(fields.required(f"{at}.key"))
        errors.extend(_validate_local_path(item.get("path") or "", f"{at}.path"))
        errors.extend(_validate_mode(item.get("mode"), f"{at}.mode"))
    return errors


def _validate_local_path(value: str, path: str) -> list[FieldError]:
    if not value:
        return [fields.required(path)]
    if value.startswith("/"):
        return [fields.invalid(path, value, "must be a relative path")]
    if ".." in value.split("/"):
        return [fields.invalid(path, value, "must not contain '..'")]
    if value.startswith(".."):
        return [fields.invalid(path, value, "must not start with '..'")]
    return []


def _empty_dir(source: Tree, path: str) -> list[FieldError]:
    if source.get("sizeLimit") is not None and quantity(source["sizeLimit"]).sign < 0:
        return [fields.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path(source: Tree, path: str) -> list[FieldError]:
    value = source.get("path") or ""
    if not value:
        return [fields.required(f"{path}.path")]
    errors: list[FieldError] = []
    if ".." in value.split("/"):
        errors.append(fields.invalid(f"{path}.path", value, "must not contain '..'"))
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        errors.append(fields.not_supported(f"{path}.type", kind, _HOST_PATH_TYPES))
    return errors


def _secret(source: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not source.get("secretName"):
        errors.append(fields.required(f"{path}.secretName"))
    errors.extend(_validate_mode(source.get("defaultMode"), f"{path}.defaultMode"))
    errors.extend(_validate_items(source.get("items"), f"{path}.items"))
    return errors


def _config_map(source: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not source.get("name"):
        errors.append(fields.required(f"{path}.name"))
    errors.extend(_validate_mode(source.get("defaultMode"), f"{path}.defaultMode"))
    errors.extend(_validate_items(source.get("items"), f"{path}.items"))
    return errors


def _downward_items(items: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, item in enumerate(items or ()):
        at = f"{path}[{index}]"
        errors.extend(_validate_local_path(item.get("path") or "", f"{at}.path"))
        errors.extend(_validate_mode(item.get("mode"), f"{at}.mode"))
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        if field is not None:
            errors.extend(validate_field_reference(field, VOLUME_FIELDS, f"{at}.fieldRef"))
            if resource is not None:
                text = "fieldRef and resourceFieldRef can not be specified simultaneously"
                errors.append(fields.invalid(at, "resource", text))
        elif resource is None:
            errors.append(fields.required(at, "one of fieldRef and resourceFieldRef is required"))
    return errors


def _downward(source: Tree, path: str) -> list[FieldError]:
    errors = _validate_mode(source.get("defaultMode"), f"{path}.defaultMode")
    errors.extend(_downward_items(source.get("items"), f"{path}.items"))
    return errors


def _projected(source: Tree, path: str) -> list[FieldError]:
    errors = _validate_mode(source.get("defaultMode"), f"{path}.defaultMode")
    for index, part in enumerate(source.get("sources") or ()):
        at = f"{path}.sources[{index}]"
        given = [name for name, value in part.items() if value is not None]
        if not given:
            errors.append(fields.required(at, "must specify a volume type"))
        for name in given[1:]:
            errors.append(fields.forbidden(f"{at}.{name}", "may not specify more than 1 volume type"))
        for name in given[:1]:
            errors.extend(_projection(name, part[name], f"{at}.{name}"))
    return errors


def _projection(name: str, part: Tree, path: str) -> list[FieldError]:
    if name == "downwardAPI":
        return _downward_items(part.get("items"), f"{path}.items")
    if name in ("secret", "configMap"):
        errors = [] if part.get("name") else [fields.required(f"{path}.name")]
        return errors + _validate_items(part.get("items"), f"{path}.items")
    if name == "serviceAccountToken":
        errors = _validate_local_path(part.get("path") or "", f"{path}.path")
        seconds = part.get("expirationSeconds")
        if isinstance(seconds, int) and seconds < TOKEN_SECONDS_MIN:
            text = "may not specify a duration less than 10 minutes"
            errors.append(fields.invalid(f"{path}.expirationSeconds", seconds, text))
        return errors
    return []


def _claim(source: Tree, path: str) -> list[FieldError]:
    return [] if source.get("claimName") else [fields.required(f"{path}.claimName")]


def _ephemeral(source: Tree, path: str) -> list[FieldError]:
    return [] if source.get("volumeClaimTemplate") else [fields.required(f"{path}.volumeClaimTemplate")]


def _nfs(source: Tree, path: str) -> list[FieldError]:
    errors = [fields.required(f"{path}.{name}") for name in ("server", "path") if not source.get(name)]
    value = source.get("path") or ""
    if value and not value.startswith("/"):
        errors.append(fields.invalid(f"{path}.path", value, "must be an absolute path"))
    return errors


def _csi(source: Tree, path: str) -> list[FieldError]:
    return [] if source.get("driver") else [fields.required(f"{path}.driver")]


_ORDER = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "downwardAPI",
    "fc",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
_CHECKS: dict[str, Callable[[Tree, str], list[FieldError]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _secret,
    "nfs": _nfs,
    "persistentVolumeClaim": _claim,
    "downwardAPI": _downward,
    "configMap": _config_map,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
}
