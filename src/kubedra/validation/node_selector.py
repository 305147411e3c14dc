"""Rules of node selectors, wherever they stand: slices, devices, allocations, pod affinity.

Upstream counterpart: ValidateNodeSelector of pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.validation import formats

Tree = dict[str, Any]

NODE_NAME_FIELD = "metadata.name"
_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")
_WITH_ONE_VALUE = ("Gt", "Lt")
_BAD_OPERATOR = "not a valid selector operator"


def validate_node_selector(selector: Tree, path: str) -> list[FieldError]:
    """Check a node selector: at least one term, each of valid requirements."""
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        return [fields.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: list[FieldError] = []
    for index, term in enumerate(terms):
        errors.extend(validate_term(term, f"{path}.nodeSelectorTerms[{index}]"))
    return errors


def validate_term(term: Tree, path: str) -> list[FieldError]:
    """Check one term (an empty one matches nothing, but is allowed)."""
    errors: list[FieldError] = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        errors.extend(_validate_label_requirement(requirement, f"{path}.matchExpressions[{index}]"))
    for index, requirement in enumerate(term.get("matchFields") or ()):
        errors.extend(_validate_field_requirement(requirement, f"{path}.matchFields[{index}]"))
    return errors


def _validate_label_requirement(requirement: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    operator = requirement.get("operator") or ""
    values = requirement.get("values") or ()
    if operator in _WITH_VALUES:
        if not values:
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            errors.append(fields.required(f"{path}.values", text))
    elif operator in _WITHOUT_VALUES:
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(fields.forbidden(f"{path}.values", text))
    elif operator in _WITH_ONE_VALUE:
        if len(values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(fields.required(f"{path}.values", text))
    else:
        errors.append(fields.invalid(f"{path}.operator", operator, _BAD_OPERATOR))
    errors.extend(formats.label_key(requirement.get("key") or "", f"{path}.key"))
    for index, value in enumerate(values):
        errors.extend(formats.label_value(value, f"{path}.values[{index}]"))
    return errors


def _validate_field_requirement(requirement: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    operator = requirement.get("operator") or ""
    values = requirement.get("values") or ()
    if operator in _WITH_VALUES:
        if len(values) != 1:
            text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            errors.append(fields.required(f"{path}.values", text))
    else:
        errors.append(fields.invalid(f"{path}.operator", operator, _BAD_OPERATOR))
    key = requirement.get("key") or ""
    if key == NODE_NAME_FIELD:
        for index, value in enumerate(values):
            errors.extend(formats.node_name(value, f"{path}.values[{index}]"))
    else:
        errors.append(fields.invalid(f"{path}.key", key, "not a valid field selector key"))
    return errors
