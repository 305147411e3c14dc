"""Rules of Deployment, ReplicaSet, StatefulSet, DaemonSet and ReplicationController.

Upstream counterpart: pkg/apis/apps/validation and the controllers' part of pkg/apis/core/validation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kubedra.api import fields
from kubedra.api.canonical import same_meaning
from kubedra.api.fields import FieldError
from kubedra.validation.choices import not_negative, one_of
from kubedra.validation.context import Context
from kubedra.validation.label_selectors import is_empty, validate_label_selector
from kubedra.validation.metadata import IMMUTABLE
from kubedra.validation.pod import validate_template

Tree = dict[str, Any]

_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_FAULT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_STATEFUL_FREE = (
    "replicas",
    "template",
    "updateStrategy",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
)
_STATEFUL_FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def deployment(tree: Tree, context: Context) -> list[FieldError]:
    """Check a Deployment."""
    spec = tree.get("spec") or {}
    errors = _validate_pods(spec, "deployment", "ReplicaSet")
    strategy = spec.get("strategy") or {}
    path = "spec.strategy"
    kind = strategy.get("type") or ""
    rolling = strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            text = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(fields.forbidden(f"{path}.rollingUpdate", text))
    elif kind == "RollingUpdate":
        if rolling is None:
            errors.append(fields.required(f"{path}.rollingUpdate", "this should be defaulted and never be nil"))
        else:
            errors.extend(_validate_rolling(rolling, f"{path}.rollingUpdate"))
    else:
        errors.append(fields.not_supported(f"{path}.type", kind, ("Recreate", "RollingUpdate")))
    for name in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        errors.extend(not_negative(spec.get(name), f"spec.{name}"))
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if deadline is not None and deadline <= ready:
        errors.append(fields.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def replica_set(tree: Tree, context: Context) -> list[FieldError]:
    """Check a ReplicaSet."""
    spec = tree.get("spec") or {}
    errors = _validate_pods(spec, "deployment", "ReplicaSet")
    errors.extend(not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds"))
    return errors


def replication_controller(tree: Tree, context: Context) -> list[FieldError]:
    """Check a ReplicationController, whose selector is a plain map."""
    spec = tree.get("spec") or {}
    errors = not_negative(spec.get("replicas"), "spec.replicas")
    selector = spec.get("selector") or {}
    if not selector:
        errors.append(fields.required("spec.selector"))
    template = spec.get("template")
    if template is None:
        errors.append(fields.required("spec.template"))
        return errors
    labels = (template.get("metadata") or {}).get("labels")
    if selector and not all((labels or {}).get(key) == value for key, value in selector.items()):
        errors.append(
            fields.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
        )
    errors.extend(_validate_template(template, "ReplicationController"))
    return errors


def daemon_set(tree: Tree, context: Context) -> list[FieldError]:
    """Check a DaemonSet."""
    spec = tree.get("spec") or {}
    errors = _validate_pods(spec, "daemonset", "DaemonSet", counted=False)
    strategy = spec.get("updateStrategy") or {}
    kind, path = strategy.get("type") or "", "spec.updateStrategy"
    if kind == "RollingUpdate":
        rolling = strategy.get("rollingUpdate")
        if rolling is None:
            errors.append(fields.required(f"{path}.rollingUpdate"))
        else:
            errors.extend(_validate_daemon_rolling(rolling, f"{path}.rollingUpdate"))
    elif kind != "OnDelete":
        errors.append(fields.not_supported(f"{path}.type", kind, ("RollingUpdate", "OnDelete")))
    for name in ("minReadySeconds", "revisionHistoryLimit"):
        errors.extend(not_negative(spec.get(name), f"spec.{name}"))
    return errors


def stateful_set(tree: Tree, context: Context) -> list[FieldError]:
    """Check a StatefulSet."""
    spec = tree.get("spec") or {}
    errors = _validate_pods(_with_claimed_volumes(spec), "statefulset", "StatefulSet")
    policy = spec.get("podManagementPolicy")
    errors.extend(one_of(policy, ("OrderedReady", "Parallel"), "spec.podManagementPolicy"))
    strategy = spec.get("updateStrategy") or {}
    kind, rolling, path = strategy.get("type") or "", strategy.get("rollingUpdate"), "spec.updateStrategy"
    if not kind:
        errors.append(fields.required(path))
    elif kind == "OnDelete":
        if rolling is not None:
            text = "only allowed for updateStrategy 'RollingUpdate'"
            errors.append(fields.invalid(f"{path}.rollingUpdate", rolling, text))
    elif kind == "RollingUpdate":
        if rolling is not None:
            errors.extend(not_negative(rolling.get("partition"), f"{path}.rollingUpdate.partition"))
    else:
        text = "must be 'RollingUpdate' or 'OnDelete'"
        errors.append(fields.invalid(path, strategy, text))
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for name in ("whenDeleted", "whenScaled"):
        where = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
        errors.extend(one_of(retention.get(name), ("Delete", "Retain"), where, needed=False))
    for name in ("minReadySeconds", "revisionHistoryLimit"):
        errors.extend(not_negative(spec.get(name), f"spec.{name}"))
    errors.extend(not_negative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start"))
    return errors


def _with_claimed_volumes(spec: Tree) -> Tree:
    """Add to the template the volumes that every pod gets from its claims, so that containers can mount them."""
    claims = spec.get("volumeClaimTemplates")
    if not claims:
        return spec
    names = [(claim.get("metadata") or {}).get("name") or "" for claim in claims]
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    kept = [volume for volume in pod.get("volumes") or () if volume.get("name") not in names]
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {**spec, "template": {**template, "spec": {**pod, "volumes": [*kept, *added]}}}


def with_fixed_selector(create: Callable[[Tree, Context], list[FieldError]]) -> Callable[..., list[FieldError]]:
    """Make the update rule of a kind whose selector is immutable and whose other rules hold as on create."""

    def update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
        errors = create(new, context)
        selector = (new.get("spec") or {}).get("selector")
        if not same_meaning(selector, (old.get("spec") or {}).get("selector")):
            errors.append(fields.invalid("spec.selector", selector, IMMUTABLE))
        return errors

    return update


def stateful_set_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed StatefulSet: most of its spec is fixed."""
    errors = stateful_set(new, context)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if any(
        not same_meaning(spec.get(name), before.get(name)) for name in {*spec, *before} if name not in _STATEFUL_FREE
    ):
        errors.append(fields.forbidden("spec", _STATEFUL_FIXED))
    return errors


def status_counts(*names: str) -> Callable[[Tree, Tree, Context], list[FieldError]]:
    """Make the status rule of a kind: its counters are not negative."""

    def update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
        status = new.get("status") or {}
        return [error for name in names for error in not_negative(status.get(name), f"status.{name}")]

    return update


def int_or_percent(value: Any, path: str) -> list[FieldError]:
    """Check a number of pods or a share of them."""
    if isinstance(value, str):
        return [] if _PERCENT.fullmatch(value) else [fields.invalid(path, value, _PERCENT_FAULT)]
    return not_negative(value, path)


def _validate_pods(spec: Tree, named: str, owner: str, *, counted: bool = True) -> list[FieldError]:
    """Check replicas, selector and template, and that the two fit each other.

    `named` and `owner` are what upstream calls the kind in its sentences (a ReplicaSet is a "deployment" there).
    """
    errors = not_negative(spec.get("replicas"), "spec.replicas") if counted else []
    selector, template = spec.get("selector"), spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if selector is None:
        errors.append(fields.required("spec.selector"))
    else:
        errors.extend(validate_label_selector(selector, "spec.selector"))
        if is_empty(selector):
            errors.append(fields.invalid("spec.selector", selector, f"empty selector is invalid for {named}"))
    if selector is None or (not is_empty(selector) and not _selects(selector, labels or {})):
        text = "`selector` does not match template `labels`"
        errors.append(fields.invalid("spec.template.metadata.labels", labels, text))
    errors.extend(_validate_template(template, owner))
    return errors


def _validate_template(template: Tree, owner: str) -> list[FieldError]:
    path = "spec.template"
    errors = validate_template(template, path)
    spec = template.get("spec") or {}
    policy = spec.get("restartPolicy")
    if policy and policy != "Always":
        errors.append(fields.not_supported(f"{path}.spec.restartPolicy", policy, ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {owner} is not Supported"
        errors.append(fields.forbidden(f"{path}.spec.activeDeadlineSeconds", text))
    return errors


def _selects(selector: Tree, labels: Tree) -> bool:
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for requirement in selector.get("matchExpressions") or ():
        key, operator = requirement.get("key"), requirement.get("operator")
        values = requirement.get("values") or ()
        if operator == "In" and labels.get(key) not in values:
            return False
        if operator == "NotIn" and key in labels and labels[key] in values:
            return False
        if operator in ("Exists", "DoesNotExist") and (key in labels) != (operator == "Exists"):
            return False
    return True


def _validate_rolling(rolling: Tree, path: str) -> list[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    errors = int_or_percent(unavailable, f"{path}.maxUnavailable")
    errors.extend(int_or_percent(surge, f"{path}.maxSurge"))
    if _is_zero(unavailable) and _is_zero(surge):
        text = "may not be 0 when `maxSurge` is 0"
        errors.append(fields.invalid(f"{path}.maxUnavailable", unavailable, text))
    if isinstance(unavailable, str) and _PERCENT.fullmatch(unavailable) and int(unavailable[:-1]) > 100:
        errors.append(fields.invalid(f"{path}.maxUnavailable", unavailable, "must not be greater than 100%"))
    return errors


def _validate_daemon_rolling(rolling: Tree, path: str) -> list[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    errors = int_or_percent(unavailable, f"{path}.maxUnavailable")
    errors.extend(int_or_percent(surge, f"{path}.maxSurge"))
    if not _is_zero(unavailable) and not _is_zero(surge):
        text = "may not be set when maxUnavailable is non-zero"
        errors.append(fields.invalid(f"{path}.maxSurge", surge, text))
    elif _is_zero(unavailable) and _is_zero(surge):
        errors.append(fields.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def _is_zero(value: Any) -> bool:
    return value in (None, 0, "0%")
