"""Rules of PodDisruptionBudget, PriorityClass, Lease and the RBAC kinds.

Upstream counterpart: pkg/apis/{policy,scheduling,coordination,rbac}/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base import names
from kubedra.validation.choices import not_negative, one_of, positive
from kubedra.validation.context import Context
from kubedra.validation.label_selectors import validate_label_selector
from kubedra.validation.metadata import IMMUTABLE, path_segment
from kubedra.validation.workloads import int_or_percent

Tree = dict[str, Any]

PRIORITY_MAX = 1_000_000_000
RBAC_GROUP = "rbac.authorization.k8s.io"
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def disruption_budget(tree: Tree, context: Context) -> list[FieldError]:
    """Check a budget: it says how many must stay or how many may go, not both."""
    spec = tree.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    errors: list[FieldError] = []
    if least is not None and most is not None:
        text = "minAvailable and maxUnavailable cannot be both set"
        errors.append(fields.invalid("spec", spec, text))
    for name, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            errors.extend(int_or_percent(value, f"spec.{name}"))
            if isinstance(value, str) and value.endswith("%") and value[:-1].isdigit() and int(value[:-1]) > 100:
                errors.append(fields.invalid(f"spec.{name}", value, "must not be greater than 100%"))
    errors.extend(validate_label_selector(spec.get("selector"), "spec.selector"))
    policies = ("AlwaysAllow", "IfHealthyBudget")
    path = "spec.unhealthyPodEvictionPolicy"
    errors.extend(one_of(spec.get("unhealthyPodEvictionPolicy"), policies, path, needed=False))
    return errors


def disruption_budget_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed budget."""
    return disruption_budget(new, context)


def disruption_budget_status(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check the counters of a budget."""
    status = new.get("status") or {}
    counters = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return [error for name in counters for error in not_negative(status.get(name), f"status.{name}")]


def priority_class(tree: Tree, context: Context) -> list[FieldError]:
    """Check a priority: people's are below the system's."""
    errors: list[FieldError] = []
    name, value = (tree.get("metadata") or {}).get("name") or "", tree.get("value") or 0
    if name.startswith("system-"):
        if _SYSTEM_PRIORITIES.get(name) != value:
            text = "priority class names with 'system-' prefix are reserved for system use only. "
            if name in _SYSTEM_PRIORITIES:
                text += f"error: value of {name} PriorityClass must be {_SYSTEM_PRIORITIES[name]}"
            else:
                text += f"error: {name} is not a known system priority class"
            errors.append(fields.forbidden("metadata.name", text))
    elif value > PRIORITY_MAX:
        text = f"maximum allowed value of a user defined priority is {PRIORITY_MAX}"
        errors.append(fields.forbidden("value", text))
    policies = ("PreemptLowerPriority", "Never")
    errors.extend(one_of(tree.get("preemptionPolicy"), policies, "preemptionPolicy", needed=False))
    return errors


def priority_class_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed priority: its value is fixed."""
    errors: list[FieldError] = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        errors.append(fields.forbidden("value", "may not be changed in an update."))
    if (new.get("preemptionPolicy") or "") != (old.get("preemptionPolicy") or ""):
        errors.append(fields.invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE))
    return errors


def lease(tree: Tree, context: Context) -> list[FieldError]:
    """Check a lease."""
    spec = tree.get("spec") or {}
    errors = positive(spec.get("leaseDurationSeconds"), "spec.leaseDurationSeconds")
    errors.extend(not_negative(spec.get("leaseTransitions"), "spec.leaseTransitions"))
    if spec.get("preferredHolder") and not spec.get("strategy"):
        text = "may only be specified if `strategy` is defined"
        errors.append(fields.forbidden("spec.preferredHolder", text))
    return errors


def lease_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed lease."""
    return lease(new, context)


def role(tree: Tree, context: Context) -> list[FieldError]:
    """Check a role of a namespace."""
    return _validate_rules(tree, namespaced=True)


def cluster_role(tree: Tree, context: Context) -> list[FieldError]:
    """Check a role of the cluster, and which roles it gathers."""
    errors = _validate_rules(tree, namespaced=False)
    aggregation = tree.get("aggregationRule")
    if aggregation is not None:
        selectors = aggregation.get("clusterRoleSelectors") or ()
        if not selectors:
            text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(fields.required("aggregationRule.clusterRoleSelectors", text))
        for index, selector in enumerate(selectors):
            errors.extend(validate_label_selector(selector, f"aggregationRule.clusterRoleSelectors[{index}]"))
    return errors


def role_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed role of a namespace."""
    return role(new, context)


def cluster_role_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed role of the cluster."""
    return cluster_role(new, context)


def role_binding(tree: Tree, context: Context) -> list[FieldError]:
    """Check who gets which role in a namespace."""
    return _validate_binding(tree, ("ClusterRole", "Role"), namespaced=True)


def cluster_role_binding(tree: Tree, context: Context) -> list[FieldError]:
    """Check who gets which role in the cluster."""
    return _validate_binding(tree, ("ClusterRole",), namespaced=False)


def role_binding_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed binding: its role is fixed."""
    return role_binding(new, context) + _fixed_role(new, old)


def cluster_role_binding_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed binding of the cluster: its role is fixed."""
    return cluster_role_binding(new, context) + _fixed_role(new, old)


def _fixed_role(new: Tree, old: Tree) -> list[FieldError]:
    if new.get("roleRef") == old.get("roleRef"):
        return []
    return [fields.invalid("roleRef", new.get("roleRef"), "cannot change roleRef")]


def _validate_rules(tree: Tree, *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, rule in enumerate(tree.get("rules") or ()):
        at = f"rules[{index}]"
        if not rule.get("verbs"):
            errors.append(fields.required(f"{at}.verbs", "verbs must contain at least one value"))
        paths, resources = rule.get("nonResourceURLs") or (), rule.get("resources") or ()
        if paths:
            if namespaced:
                text = "namespaced rules cannot apply to non-resource URLs"
                errors.append(fields.invalid(f"{at}.nonResourceURLs", paths, text))
            if rule.get("apiGroups") or resources or rule.get("resourceNames"):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                errors.append(fields.invalid(f"{at}.nonResourceURLs", paths, text))
            continue
        if not rule.get("apiGroups"):
            errors.append(fields.required(f"{at}.apiGroups", "resource rules must supply at least one api group"))
        if not resources:
            errors.append(fields.required(f"{at}.resources", "resource rules must supply at least one resource"))
    return errors


def _validate_binding(tree: Tree, kinds: tuple[str, ...], *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    reference = tree.get("roleRef") or {}
    group = reference.get("apiGroup") or ""
    if group != RBAC_GROUP:
        errors.append(fields.not_supported("roleRef.apiGroup", group, (RBAC_GROUP,)))
    kind = reference.get("kind") or ""
    if kind not in kinds:
        errors.append(fields.not_supported("roleRef.kind", kind, kinds))
    name = reference.get("name") or ""
    if not name:
        errors.append(fields.required("roleRef.name"))
    else:
        errors.extend(fields.invalid("roleRef.name", name, fault) for fault in path_segment(name))
    for index, subject in enumerate(tree.get("subjects") or ()):
        errors.extend(_validate_subject(subject, f"subjects[{index}]", namespaced))
    return errors


def _validate_subject(subject: Tree, path: str, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    kind, name, group = (subject.get(member) or "" for member in ("kind", "name", "apiGroup"))
    if not name:
        errors.append(fields.required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            errors.extend(fields.invalid(f"{path}.name", name, fault) for fault in names.dns_subdomain(name))
        if group:
            errors.append(fields.not_supported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(fields.required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != RBAC_GROUP:
            errors.append(fields.not_supported(f"{path}.apiGroup", group, (RBAC_GROUP,)))
    else:
        errors.append(fields.not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return errors
