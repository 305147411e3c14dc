"""Rules of device taints and tolerations.

Upstream counterpart: validateDeviceTaint and validateDeviceToleration of pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.validation import formats

Tree = dict[str, Any]

EFFECTS = ("NoExecute", "NoSchedule", "None")
OPERATORS = ("Equal", "Exists")


def validate_taint(taint: Tree, path: str, old: Tree | None = None) -> list[FieldError]:
    """Check a taint; an effect that was stored before stays valid."""
    errors = formats.label_key(taint.get("key") or "", f"{path}.key")
    value = taint.get("value") or ""
    if value:
        errors.extend(formats.label_value(value, f"{path}.value"))
    effect = taint.get("effect") or ""
    if old is None or (old.get("effect") or "") != effect:
        if not effect:
            errors.append(fields.required(f"{path}.effect"))
        elif effect not in EFFECTS:
            errors.append(fields.not_supported(f"{path}.effect", effect, EFFECTS))
    return errors


def validate_toleration(toleration: Tree, path: str) -> list[FieldError]:
    """Check a toleration of a request. An empty key with Equal is allowed, as upstream allows it."""
    errors: list[FieldError] = []
    key = toleration.get("key") or ""
    if key:
        errors.extend(formats.label_key(key, f"{path}.key"))
    operator = toleration.get("operator") or ""
    value = toleration.get("value") or ""
    if operator == "Exists":
        if value:
            errors.append(fields.invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        errors.extend(formats.label_value(value, f"{path}.value"))
    elif not operator:
        errors.append(fields.required(f"{path}.operator"))
    else:
        errors.append(fields.not_supported(f"{path}.operator", operator, OPERATORS))
    effect = toleration.get("effect") or ""
    if effect and effect not in EFFECTS:
        errors.append(fields.not_supported(f"{path}.effect", effect, EFFECTS))
    return errors
