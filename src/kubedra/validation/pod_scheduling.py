"""Rules of what a pod says about its node: tolerations, affinity, spreading, gates.

Upstream counterpart: ValidateTolerations, validateAffinity, validateTopologySpreadConstraints and
validateSchedulingGates of pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base import names
from kubedra.validation import formats
from kubedra.validation.choices import one_of, positive
from kubedra.validation.label_selectors import validate_label_selector
from kubedra.validation.metadata import validate_labels
from kubedra.validation.node_selector import validate_node_selector, validate_term

Tree = dict[str, Any]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_NO_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


def validate_scheduling(spec: Tree, path: str) -> list[FieldError]:
    """Check all that a pod spec says about where it may run."""
    errors: list[FieldError] = []
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        errors.extend(_validate_toleration(toleration, f"{path}.tolerations[{index}]"))
    errors.extend(validate_labels(spec.get("nodeSelector"), f"{path}.nodeSelector"))
    if spec.get("affinity"):
        errors.extend(_validate_affinity(spec["affinity"], f"{path}.affinity"))
    errors.extend(_validate_spreading(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints"))
    errors.extend(_validate_gates(spec.get("schedulingGates"), f"{path}.schedulingGates"))
    return errors


def _validate_toleration(toleration: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        errors.extend(formats.label_key(key, f"{path}.key"))
    elif operator != "Exists":
        errors.append(fields.invalid(f"{path}.operator", operator, _NO_KEY))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(fields.invalid(f"{path}.effect", effect, text))
    if operator in ("Equal", ""):
        errors.extend(fields.invalid(f"{path}.operator", value, fault) for fault in names.label_value(value))
    elif operator == "Exists":
        if value:
            text = "value must be empty when `operator` is 'Exists'"
            errors.append(fields.invalid(f"{path}.operator", value, text))
    else:
        errors.append(fields.not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    errors.extend(one_of(effect, EFFECTS, f"{path}.effect", needed=False))
    return errors


def _validate_affinity(affinity: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    node = affinity.get("nodeAffinity") or {}
    required, preferred = _NEEDED, _WISHED
    if node.get(required) is not None:
        errors.extend(validate_node_selector(node[required], f"{path}.nodeAffinity.{required}"))
    for index, wish in enumerate(node.get(preferred) or ()):
        at = f"{path}.nodeAffinity.{preferred}[{index}]"
        errors.extend(_validate_weight(wish.get("weight") or 0, at))
        errors.extend(validate_term(wish.get("preference") or {}, f"{at}.preference"))
    for name in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(name) or {}
        for index, term in enumerate(terms.get(required) or ()):
            errors.extend(_validate_pod_term(term, f"{path}.{name}.{required}[{index}]"))
        for index, wish in enumerate(terms.get(preferred) or ()):
            at = f"{path}.{name}.{preferred}[{index}]"
            errors.extend(_validate_weight(wish.get("weight") or 0, at))
            errors.extend(_validate_pod_term(wish.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm"))
    return errors


_NEEDED = "requiredDuringSchedulingIgnoredDuringExecution"
_WISHED = "preferredDuringSchedulingIgnoredDuringExecution"


def _validate_weight(weight: int, path: str) -> list[FieldError]:
    return [] if 1 <= weight <= 100 else [fields.invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _validate_pod_term(term: Tree, path: str) -> list[FieldError]:
    errors = validate_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    errors.extend(validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector"))
    for namespace in term.get("namespaces") or ():
        errors.extend(fields.invalid(f"{path}.namespace", namespace, f) for f in names.dns_label(namespace))
    errors.extend(_validate_topology_key(term.get("topologyKey") or "", f"{path}.topologyKey"))
    return errors


def _validate_topology_key(key: str, path: str) -> list[FieldError]:
    if not key:
        return [fields.required(path, "can not be empty")]
    return formats.label_key(key, path)


def _validate_spreading(constraints: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints or ()):
        at = f"{path}[{index}]"
        errors.extend(positive(constraint.get("maxSkew") or 0, f"{at}.maxSkew"))
        key, action = constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
        errors.extend(_validate_topology_key(key, f"{at}.topologyKey"))
        if action not in _UNSATISFIABLE:
            errors.append(fields.not_supported(f"{at}.whenUnsatisfiable", action, _UNSATISFIABLE))
        if (key, action) in seen:
            place = f"{at}.{{topologyKey, whenUnsatisfiable}}"
            errors.append(fields.duplicate(place, f"{{{key}, {action}}}"))
        seen.add((key, action))
        fewest = constraint.get("minDomains")
        if fewest is not None:
            errors.extend(positive(fewest, f"{at}.minDomains"))
            if action != "DoNotSchedule":
                text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.append(fields.invalid(f"{at}.minDomains", fewest, text))
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            errors.extend(one_of(constraint.get(name), ("Honor", "Ignore"), f"{at}.{name}", needed=False))
        errors.extend(validate_label_selector(constraint.get("labelSelector"), f"{at}.labelSelector"))
    return errors


def _validate_gates(gates: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates or ()):
        name = gate.get("name") or ""
        errors.extend(fields.invalid(f"{path}[{index}]", name, fault) for fault in names.qualified_name(name))
        if name in seen:
            errors.append(fields.duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors
