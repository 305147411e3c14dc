"""Rules of Job and CronJob.

Upstream counterpart: pkg/apis/batch/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.canonical import same_meaning
from kubedra.api.fields import FieldError
from kubedra.validation.choices import not_negative, one_of
from kubedra.validation.context import Context
from kubedra.validation.label_selectors import validate_label_selector
from kubedra.validation.metadata import IMMUTABLE
from kubedra.validation.pod import validate_template

Tree = dict[str, Any]

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
    "ttlSecondsAfterFinished",
)
_NAME_MAX = 63
_CRON_NAME_MAX = 52


def validate(tree: Tree, context: Context) -> list[FieldError]:
    """Check a new job."""
    spec = tree.get("spec") or {}
    errors = _validate_spec(spec, "spec")
    selector = spec.get("selector")
    if selector is None:
        errors.append(fields.required("spec.selector"))
    else:
        errors.extend(validate_label_selector(selector, "spec.selector"))
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        wanted = selector.get("matchLabels") or {}
        if any(labels.get(key) != value for key, value in wanted.items()):
            text = "`selector` does not match template `labels`"
            errors.append(fields.invalid("spec.template.metadata.labels", labels, text))
    return errors


def validate_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed job: what its pods look like is fixed."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    errors = _validate_spec(spec, "spec")
    for name in (
        "selector",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ):
        if not same_meaning(spec.get(name), before.get(name)):
            errors.append(fields.invalid(f"spec.{name}", spec.get(name), IMMUTABLE))
    if spec.get("completions") != before.get("completions") and (
        spec.get("completionMode") != "Indexed" or spec.get("completions") != spec.get("parallelism")
    ):
        errors.append(fields.invalid("spec.completions", spec.get("completions"), IMMUTABLE))
    if not _template_may_change(old) and not same_meaning(spec.get("template"), before.get("template")):
        errors.append(fields.invalid("spec.template", spec.get("template"), IMMUTABLE))
    return errors


def validate_cron(tree: Tree, context: Context) -> list[FieldError]:
    """Check a cron job (its schedule is only looked for, not read)."""
    spec = tree.get("spec") or {}
    errors: list[FieldError] = []
    name = (tree.get("metadata") or {}).get("name") or ""
    if len(name) > _CRON_NAME_MAX:
        text = f"must be no more than {_CRON_NAME_MAX} characters"
        errors.append(fields.invalid("metadata.name", name, text))
    if not spec.get("schedule"):
        errors.append(fields.required("spec.schedule"))
    policies = ("Allow", "Forbid", "Replace")
    errors.extend(one_of(spec.get("concurrencyPolicy"), policies, "spec.concurrencyPolicy"))
    for member in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors.extend(not_negative(spec.get(member), f"spec.{member}"))
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    errors.extend(_validate_spec(template, "spec.jobTemplate.spec"))
    return errors


def validate_cron_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed cron job."""
    return validate_cron(new, context)


def _template_may_change(old: Tree) -> bool:
    """Tell whether a job is suspended and has not started, so that its queue may still place its pods."""
    return bool((old.get("spec") or {}).get("suspend")) and not (old.get("status") or {}).get("startTime")


def _validate_spec(spec: Tree, path: str) -> list[FieldError]:
    errors = [error for name in _COUNTS for error in not_negative(spec.get(name), f"{path}.{name}")]
    mode = spec.get("completionMode")
    errors.extend(one_of(mode, ("NonIndexed", "Indexed"), f"{path}.completionMode", needed=False))
    if mode == "Indexed" and spec.get("completions") is None:
        text = "when completion mode is Indexed"
        errors.append(fields.required(f"{path}.completions", text))
    replacement = ("Failed", "TerminatingOrFailed")
    errors.extend(one_of(spec.get("podReplacementPolicy"), replacement, f"{path}.podReplacementPolicy", needed=False))
    template = spec.get("template") or {}
    errors.extend(validate_template(template, f"{path}.template"))
    policy = (template.get("spec") or {}).get("restartPolicy")
    at = f"{path}.template.spec.restartPolicy"
    if policy == "Always":
        errors.append(fields.required(at, 'valid values: "OnFailure", "Never"'))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        errors.append(fields.invalid(at, policy, text))
    return errors
