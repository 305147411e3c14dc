"""Rules of the standard condition (metav1.Condition), as device statuses and taint rules carry them.

Upstream counterpart: apimachinery pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

import re
from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base import names
from kubedra.validation import formats

REASON_MAX = 1024
MESSAGE_MAX = 32 * 1024
STATUSES = ("False", "True", "Unknown")

_REASON_FORMAT = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON = re.compile(_REASON_FORMAT)
_REASON_FAULT = names.regex_fault(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON_FORMAT,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def validate_conditions(conditions: Any, path: str, limit: int) -> list[FieldError]:
    """Check a list of conditions: not too many, each complete, no type twice."""
    items = conditions or ()
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(items):
        at = f"{path}[{index}]"
        kind = condition.get("type") or ""
        if kind in seen:
            errors.append(fields.duplicate(f"{at}.type", kind))
        seen.add(kind)
        errors.extend(_validate_condition(condition, kind, at))
    if len(items) > limit:
        errors.append(fields.too_many(path, len(items), limit))
    return errors


def _validate_condition(condition: dict[str, Any], kind: str, path: str) -> list[FieldError]:
    errors = formats.label_key(kind, f"{path}.type")
    status = condition.get("status") or ""
    if status not in STATUSES:
        errors.append(fields.not_supported(f"{path}.status", status, STATUSES))
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        text = "must be greater than or equal to zero"
        errors.append(fields.invalid(f"{path}.observedGeneration", generation, text))
    if not condition.get("lastTransitionTime"):
        errors.append(fields.required(f"{path}.lastTransitionTime"))
    reason = condition.get("reason") or ""
    if not reason:
        errors.append(fields.required(f"{path}.reason"))
    else:
        if not _REASON.fullmatch(reason):
            errors.append(fields.invalid(f"{path}.reason", reason, _REASON_FAULT))
        if len(reason.encode()) > REASON_MAX:
            errors.append(fields.too_long(f"{path}.reason", REASON_MAX))
    if len((condition.get("message") or "").encode()) > MESSAGE_MAX:
        errors.append(fields.too_long(f"{path}.message", MESSAGE_MAX))
    return errors
