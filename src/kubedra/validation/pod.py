"""Rules of pods and of the pod specs inside workloads.

The fields that people use are checked as upstream checks them; of security and of the rarer volume types only what
keeps an object readable. What changes later is in `pod_update`.

Upstream counterpart: ValidatePodCreate and ValidatePodSpec of pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base.quantity import Quantity
from kubedra.validation import formats
from kubedra.validation.choices import one_of, within
from kubedra.validation.containers import validate_containers
from kubedra.validation.context import Context
from kubedra.validation.metadata import validate_annotations, validate_labels
from kubedra.validation.pod_claims import validate_pod_claims
from kubedra.validation.pod_scheduling import validate_scheduling
from kubedra.validation.resources import is_huge_pages, quantity, validate_requirements
from kubedra.validation.volumes import validate_volumes

Tree = dict[str, Any]

MAX_INT32 = 2**31 - 1
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION = ("PreemptLowerPriority", "Never")


def validate(tree: Tree, context: Context) -> list[FieldError]:
    """Check a new pod."""
    spec, metadata = tree.get("spec") or {}, tree.get("metadata") or {}
    errors = validate_pod_spec(spec, "spec")
    errors.extend(_validate_mirror(spec, metadata.get("annotations") or {}))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        errors.append(fields.forbidden("spec.nodeName", text))
    if spec.get("ephemeralContainers"):
        text = "cannot be set on create"
        errors.append(fields.forbidden("spec.ephemeralContainers", text))
    return errors


def validate_template(template: Tree, path: str) -> list[FieldError]:
    """Check the pod template of a workload."""
    metadata = template.get("metadata") or {}
    errors = validate_labels(metadata.get("labels"), f"{path}.metadata.labels")
    errors.extend(validate_annotations(metadata.get("annotations"), f"{path}.metadata.annotations"))
    spec = template.get("spec") or {}
    errors.extend(validate_pod_spec(spec, f"{path}.spec"))
    if spec.get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        errors.append(fields.forbidden(f"{path}.spec.ephemeralContainers", text))
    return errors


def validate_pod_spec(spec: Tree, path: str) -> list[FieldError]:
    """Check a pod spec."""
    errors = validate_volumes(spec.get("volumes"), f"{path}.volumes")
    errors.extend(validate_pod_claims(spec.get("resourceClaims"), f"{path}.resourceClaims"))
    errors.extend(validate_containers(spec, path))
    errors.extend(one_of(spec.get("restartPolicy"), RESTART_POLICIES, f"{path}.restartPolicy"))
    errors.extend(one_of(spec.get("dnsPolicy"), _DNS_POLICIES, f"{path}.dnsPolicy"))
    errors.extend(validate_scheduling(spec, path))
    errors.extend(_validate_names(spec, path))
    deadline = spec.get("activeDeadlineSeconds")
    errors.extend(within(deadline, 1, MAX_INT32, f"{path}.activeDeadlineSeconds"))
    errors.extend(one_of(spec.get("preemptionPolicy"), _PREEMPTION, f"{path}.preemptionPolicy", needed=False))
    if spec.get("resources"):
        errors.extend(_validate_pod_level(spec, f"{path}.resources"))
    return errors


def _validate_names(spec: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, check in (
        ("nodeName", formats.node_name),
        ("serviceAccountName", formats.subdomain),
        ("hostname", formats.label),
        ("subdomain", formats.label),
        ("priorityClassName", formats.subdomain),
        ("runtimeClassName", formats.subdomain),
        ("schedulerName", formats.subdomain),
    ):
        value = spec.get(name)
        if value:
            errors.extend(check(value, f"{path}.{name}"))
    return errors


def _validate_mirror(spec: Tree, annotations: Tree) -> list[FieldError]:
    """Check pods that a node made from a file: they stand on a node and have nothing that must be allocated."""
    if MIRROR_ANNOTATION not in annotations:
        return []
    errors: list[FieldError] = []
    if not spec.get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        at = f"metadata.annotations[{MIRROR_ANNOTATION}]"
        errors.append(fields.invalid(at, annotations[MIRROR_ANNOTATION], text))
    if spec.get("resourceClaims"):
        # Upstream names no field here.
        errors.append(fields.forbidden("[]", "static pods do not support resource claims"))
    return errors


def _pod_level_name(name: str, path: str) -> list[FieldError]:
    if name in ("cpu", "memory") or is_huge_pages(name):
        return []
    return [fields.not_supported(path, name, ("cpu", "memory", "hugepages-"))]


def _validate_pod_level(spec: Tree, path: str) -> list[FieldError]:
    resources = spec["resources"]
    errors = validate_requirements(resources, path, _pod_level_name)
    if resources.get("claims"):
        text = "claims may not be set for Resources at pod-level"
        errors.append(fields.forbidden(f"{path}.claims", text))
    for name, total in _container_totals(spec).items():
        asked = (resources.get("requests") or {}).get(name)
        if asked is not None and quantity(asked) < total:
            text = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(fields.invalid(f"{path}.requests[{name}]", str(quantity(asked)), text))
    for name, limit in (resources.get("limits") or {}).items():
        errors.extend(_validate_container_limits(spec, name, quantity(limit), path))
    return errors


def _container_totals(spec: Tree) -> dict[str, Quantity]:
    totals: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        for name, amount in ((container.get("resources") or {}).get("requests") or {}).items():
            value = quantity(amount)
            totals[name] = totals[name] + value if name in totals else value
    return totals


def _validate_container_limits(spec: Tree, name: str, most: Quantity, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    parent = path.removesuffix(".resources")
    for index, container in enumerate(spec.get("containers") or ()):
        limit = ((container.get("resources") or {}).get("limits") or {}).get(name)
        if limit is not None and quantity(limit) > most:
            text = f"must be less than or equal to pod limits of {most}"
            at = f"{parent}.containers[{index}].resources.limits[{name}]"
            errors.append(fields.invalid(at, str(quantity(limit)), text))
    return errors
