"""Rules of driver configuration: a JSON object that only the driver understands, not too large.

The value itself is never echoed in an error: it may hold what its author does not want in a log.

Upstream counterpart: validateOpaqueConfiguration and validateRawExtension of pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.validation import formats

RAW_MAX = 10 * 1024
_OMITTED = "<value omitted>"


def validate_configuration(config: dict[str, Any], path: str, *, stored: bool = False) -> list[FieldError]:
    """Check the configuration of a class, a claim or an allocation result."""
    opaque = config.get("opaque")
    if opaque is None:
        return [fields.required(f"{path}.opaque")]
    errors = formats.driver(opaque.get("driver") or "", f"{path}.opaque.driver")
    errors.extend(validate_raw(opaque.get("parameters"), f"{path}.opaque.parameters", stored=stored))
    return errors


def validate_raw(value: Any, path: str, *, stored: bool = False) -> list[FieldError]:
    """Check a raw value: present, an object, and within the limit (which old values may exceed)."""
    if value is None:
        return [fields.required(path)]
    if not stored and len(msgspec.json.encode(value)) > RAW_MAX:
        return [fields.too_long(path, RAW_MAX)]
    if not isinstance(value, dict):
        return [fields.invalid(path, _OMITTED, "must be a valid JSON object")]
    return []
