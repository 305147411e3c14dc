"""Rules of nodes: taints, addresses, resources, declared features.

Upstream counterpart: ValidateNode and ValidateNodeUpdate of pkg/apis/core/validation (which reports taints at
`metadata.taints`).
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base import names
from kubedra.validation import formats
from kubedra.validation.context import Context
from kubedra.validation.pod_scheduling import EFFECTS
from kubedra.validation.resources import is_extended, validate_amount

Tree = dict[str, Any]


def validate(tree: Tree, context: Context) -> list[FieldError]:
    """Check a new node."""
    spec = tree.get("spec") or {}
    errors = validate_taints(spec.get("taints"), "metadata.taints")
    errors.extend(_validate_networks(spec))
    errors.extend(_validate_status(tree.get("status") or {}))
    return errors


def validate_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed node: who it is and which network it has is fixed once it is known."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    errors = validate_taints(spec.get("taints"), "metadata.taints")
    networks = spec.get("podCIDRs") or []
    if before.get("podCIDRs") and networks != before["podCIDRs"]:
        text = 'node updates may not change podCIDR except from "" to valid'
        errors.append(fields.forbidden("spec.podCIDRs", text))
    provider, stored = spec.get("providerID") or "", before.get("providerID") or ""
    if stored and provider != stored:
        text = 'node updates may not change providerID except from "" to valid'
        errors.append(fields.forbidden("spec.providerID", text))
    return errors


def validate_status_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a new status of a node."""
    return _validate_status(new.get("status") or {})


def validate_taints(taints: Any, path: str) -> list[FieldError]:
    """Check the taints of a node: valid, and unique by key and effect."""
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints or ()):
        at = f"{path}[{index}]"
        key, value, effect = (taint.get(name) or "" for name in ("key", "value", "effect"))
        errors.extend(formats.label_key(key, f"{at}.key"))
        errors.extend(formats.label_value(value, f"{at}.value"))
        if not effect:
            errors.append(fields.required(f"{at}.effect"))
        elif effect not in EFFECTS:
            errors.append(fields.not_supported(f"{at}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            errors.append(fields.duplicate(at, shown, "taints must be unique by key and effect pair"))
        seen.add((key, effect))
    return errors


def _validate_networks(spec: Tree) -> list[FieldError]:
    networks = list(spec.get("podCIDRs") or ())
    if spec.get("podCIDR"):
        # The old single field is the first of the list.
        networks[:1] = [spec["podCIDR"]]
    return [
        fields.invalid(f"spec.podCIDRs[{index}]", network, fault)
        for index, network in enumerate(networks)
        for fault in names.cidr(network)
    ]


def _validate_status(status: Tree) -> list[FieldError]:
    errors: list[FieldError] = []
    for part in ("capacity", "allocatable"):
        for name, amount in (status.get(part) or {}).items():
            # Other names pass: kubelets report what they have.
            if is_extended(name) or "/" not in name:
                errors.extend(validate_amount(name, amount, f"status.{part}.{name}"))
    errors.extend(_validate_features(status.get("declaredFeatures")))
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(status.get("addresses") or ()):
        identity = (address.get("type") or "", address.get("address") or "")
        if identity in seen:
            errors.append(fields.duplicate(f"status.addresses[{index}]", address))
        seen.add(identity)
    return errors


def _validate_features(features: Any) -> list[FieldError]:
    errors: list[FieldError] = []
    values = features or []
    for index, value in enumerate(values):
        path = f"status.declaredFeatures[{index}]"
        if value in values[:index]:
            errors.append(fields.duplicate(path, value))
        elif index and value < values[index - 1]:
            errors.append(fields.invalid(path, value, "list must be sorted alphabetically"))
    return errors
