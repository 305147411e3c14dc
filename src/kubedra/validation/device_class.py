"""Rules of DeviceClass. Nothing in it is immutable; what did not change keeps validating as it did.

Upstream counterpart: ValidateDeviceClass of pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.validation import expressions, formats, opaque
from kubedra.validation.context import Context
from kubedra.validation.lists import check_list

Tree = dict[str, Any]

SELECTORS_MAX = 32
CONFIG_MAX = 32


def validate(tree: Tree, context: Context) -> list[FieldError]:
    """Check a new class."""
    return _validate_spec(tree.get("spec") or {}, None, context)


def validate_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed class."""
    return _validate_spec(new.get("spec") or {}, old.get("spec") or {}, context)


def _validate_spec(spec: Tree, old: Tree | None, context: Context) -> list[FieldError]:
    # Selectors and configurations that are exactly as before count as stored: rules that became stricter since
    # do not apply to them.
    selectors, config = spec.get("selectors") or [], spec.get("config") or []
    same_selectors = old is not None and selectors == (old.get("selectors") or [])
    same_config = old is not None and config == (old.get("config") or [])
    errors = check_list(
        selectors,
        SELECTORS_MAX,
        lambda item, path: expressions.validate_selector(item, path, context, stored=same_selectors),
        "spec.selectors",
    )
    errors.extend(
        check_list(
            config,
            CONFIG_MAX,
            lambda item, path: opaque.validate_configuration(item, path, stored=same_config),
            "spec.config",
        )
    )
    name = spec.get("extendedResourceName")
    if name is not None and not formats.is_extended_resource(name):
        errors.append(fields.invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return errors
