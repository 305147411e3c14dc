"""Rules of label selectors (metav1.LabelSelector).

Upstream counterpart: ValidateLabelSelector of apimachinery pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.validation import formats
from kubedra.validation.metadata import validate_labels

Tree = dict[str, Any]


def validate_label_selector(selector: Tree | None, path: str) -> list[FieldError]:
    """Check a selector; a missing one is fine here."""
    if selector is None:
        return []
    errors = validate_labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        operator, values = requirement.get("operator") or "", requirement.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                text = "must be specified when `operator` is 'In' or 'NotIn'"
                errors.append(fields.required(f"{at}.values", text))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(fields.forbidden(f"{at}.values", text))
        else:
            errors.append(fields.invalid(f"{at}.operator", operator, "not a valid selector operator"))
        errors.extend(formats.label_key(requirement.get("key") or "", f"{at}.key"))
        for position, value in enumerate(values):
            errors.extend(formats.label_value(value, f"{at}.values[{position}]"))
    return errors


def is_empty(selector: Tree | None) -> bool:
    """Tell whether a selector selects everything (it is there and says nothing)."""
    return not (selector or {}).get("matchLabels") and not (selector or {}).get("matchExpressions")
