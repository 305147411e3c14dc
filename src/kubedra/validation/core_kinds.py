"""Rules of small core kinds: Namespace, ConfigMap, Secret, Event, ResourceQuota, ServiceAccount.

Upstream counterpart: pkg/apis/core/validation.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any

from kubedra.api import fields
from kubedra.api.canonical import same_meaning
from kubedra.api.fields import FieldError
from kubedra.base import names
from kubedra.validation.choices import one_of
from kubedra.validation.context import Context
from kubedra.validation.metadata import IMMUTABLE, validate_finalizers
from kubedra.validation.resources import validate_amount

Tree = dict[str, Any]

DATA_MAX = 1024 * 1024
_IMMUTABLE_SET = "field is immutable when `immutable` is set"
_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def namespace(tree: Tree, context: Context) -> list[FieldError]:
    """Check a new namespace."""
    return validate_finalizers((tree.get("spec") or {}).get("finalizers"), "spec.finalizers")


def namespace_status_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check the phase of a namespace against whether it is being deleted."""
    phase = (new.get("status") or {}).get("phase") or ""
    # Upstream writes this one name as Go does.
    path = "status.Phase"
    if not (new.get("metadata") or {}).get("deletionTimestamp"):
        if phase != "Active":
            return [fields.invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty")]
    elif phase != "Terminating":
        return [fields.invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]
    return []


def namespace_finalize(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check finalizers that the namespace controller writes."""
    return validate_finalizers((new.get("spec") or {}).get("finalizers"), "spec.finalizers")


def config_map(tree: Tree, context: Context) -> list[FieldError]:
    """Check a ConfigMap: usable keys, none in both maps, not too large."""
    errors: list[FieldError] = []
    data, binary = tree.get("data") or {}, tree.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        errors.extend(fields.invalid(f"data[{key}]", key, fault) for fault in names.config_key(key))
        if key in binary:
            text = "duplicate of key present in binaryData"
            errors.append(fields.invalid(f"data[{key}]", key, text))
        size += len(str(value).encode())
    for key, value in binary.items():
        errors.extend(fields.invalid(f"binaryData[{key}]", key, fault) for fault in names.config_key(key))
        size += _decoded_size(value)
    if size > DATA_MAX:
        errors.append(fields.too_long("", DATA_MAX))
    return errors


def config_map_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed ConfigMap: one that was made immutable stays as it is."""
    errors = _immutable(new, old, ("data", "binaryData"))
    errors.extend(config_map(new, context))
    return errors


def secret(tree: Tree, context: Context) -> list[FieldError]:
    """Check a Secret: usable keys, what its type needs, not too large."""
    errors: list[FieldError] = []
    data = tree.get("data") or {}
    size = 0
    for key, value in data.items():
        errors.extend(fields.invalid(f"data[{key}]", key, fault) for fault in names.config_key(key))
        size += _decoded_size(value)
    if size > DATA_MAX:
        errors.append(fields.too_long("data", DATA_MAX))
    kind = tree.get("type") or ""
    errors.extend(fields.required(f"data[{key}]") for key in _SECRET_KEYS.get(kind, ()) if key not in data)
    if kind == "kubernetes.io/service-account-token":
        annotations = (tree.get("metadata") or {}).get("annotations") or {}
        if not annotations.get("kubernetes.io/service-account.name"):
            path = "metadata.annotations[kubernetes.io/service-account.name]"
            errors.append(fields.required(path))
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        errors.append(fields.required("data[username]"))
        errors.append(fields.required("data[password]"))
    return errors


def secret_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed Secret: its type is fixed."""
    errors: list[FieldError] = []
    if (new.get("type") or "") != (old.get("type") or ""):
        errors.append(fields.invalid("type", new.get("type") or "", IMMUTABLE))
    errors.extend(_immutable(new, old, ("data",)))
    errors.extend(secret(new, context))
    return errors


def resource_quota(tree: Tree, context: Context) -> list[FieldError]:
    """Check a ResourceQuota: names of resources and amounts that can be compared."""
    errors: list[FieldError] = []
    for name, amount in ((tree.get("spec") or {}).get("hard") or {}).items():
        path = f"spec.hard[{name}]"
        errors.extend(fields.invalid(path, name, fault) for fault in names.qualified_name(name))
        errors.extend(validate_amount(name, amount, path))
    return errors


def resource_quota_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed ResourceQuota: what it applies to is fixed."""
    errors = resource_quota(new, context)
    scopes, before = ((tree.get("spec") or {}).get("scopes") for tree in (new, old))
    if not same_meaning(sorted(scopes or ()), sorted(before or ())):
        errors.append(fields.invalid("spec.scopes", scopes, IMMUTABLE))
    return errors


def event(tree: Tree, context: Context) -> list[FieldError]:
    """Check an Event: it stands in the namespace of what it is about, and new-style events are complete."""
    errors: list[FieldError] = []
    about = tree.get("involvedObject") or {}
    own = (tree.get("metadata") or {}).get("namespace") or ""
    place = about.get("namespace") or ""
    if place:
        if place != own:
            errors.append(fields.invalid("involvedObject.namespace", place, "does not match event.namespace"))
    elif own not in ("default", "kube-system"):
        errors.append(fields.invalid("involvedObject.namespace", place, "does not match event.namespace"))
    if not tree.get("eventTime"):
        return errors
    for name in ("reportingComponent", "reportingInstance", "action", "reason"):
        if not tree.get(name):
            shown = "reportingController" if name == "reportingComponent" else name
            errors.append(fields.required(shown))
    errors.extend(one_of(tree.get("type"), ("Normal", "Warning"), "type"))
    if len((tree.get("message") or "").encode()) > 1024:
        errors.append(fields.too_long("message", 1024))
    return errors


def _decoded_size(value: Any) -> int:
    try:
        return len(b64decode(value))
    except (binascii.Error, ValueError, TypeError):
        return len(str(value))


def _immutable(new: Tree, old: Tree, members: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    errors: list[FieldError] = []
    if not new.get("immutable"):
        errors.append(fields.forbidden("immutable", _IMMUTABLE_SET))
    errors.extend(
        fields.forbidden(name, _IMMUTABLE_SET) for name in members if not same_meaning(new.get(name), old.get(name))
    )
    return errors
