"""Rules of DeviceTaintRule and its status.

Upstream counterpart: ValidateDeviceTaintRule of pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api.fields import FieldError
from kubedra.validation import formats
from kubedra.validation.conditions import validate_conditions
from kubedra.validation.context import Context
from kubedra.validation.device_taint import validate_taint

Tree = dict[str, Any]

CONDITIONS_MAX = 8


def validate(tree: Tree, context: Context) -> list[FieldError]:
    """Check a new rule."""
    return _validate_spec(tree.get("spec") or {}, None)


def validate_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed rule."""
    return _validate_spec(new.get("spec") or {}, old.get("spec") or {})


def validate_status_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a new status."""
    conditions = (new.get("status") or {}).get("conditions")
    return validate_conditions(conditions, "status.conditions", CONDITIONS_MAX)


def _validate_spec(spec: Tree, old: Tree | None) -> list[FieldError]:
    errors: list[FieldError] = []
    selector = spec.get("deviceSelector")
    if selector is not None:
        for name, check in (("driver", formats.driver), ("pool", formats.pool), ("device", formats.label)):
            value = selector.get(name)
            if value is not None:
                errors.extend(check(value, f"spec.deviceSelector.{name}"))
    old_taint = None if old is None else old.get("taint") or {}
    errors.extend(validate_taint(spec.get("taint") or {}, "spec.taint", old_taint))
    return errors
