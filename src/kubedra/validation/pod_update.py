"""Rules of changes to pods: few fields of the spec may change, the status follows the spec.

Upstream counterpart: ValidatePodUpdate, ValidatePodStatusUpdate, ValidatePodEphemeralContainersUpdate and
ValidatePodResize of pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.canonical import same_meaning
from kubedra.api.fields import FieldError
from kubedra.validation import formats
from kubedra.validation.choices import within
from kubedra.validation.containers import validate_container_resources, validate_containers, validate_image
from kubedra.validation.context import Context
from kubedra.validation.metadata import IMMUTABLE
from kubedra.validation.pod import MAX_INT32
from kubedra.validation.pod_claims import validate_claim_statuses, validate_extended_status, validate_health

Tree = dict[str, Any]

_FIXED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_CONTAINER_LISTS = ("containers", "initContainers")
_STATUS_LISTS = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}
_FREE = ("schedulingGates", "tolerations", "activeDeadlineSeconds")


def validate_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a change of the pod itself."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for name in _CONTAINER_LISTS:
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            # Nothing else can be compared then.
            return [fields.forbidden(f"spec.{name}", "pod updates may not add or remove containers")]
    errors = _validate_images(spec)
    errors.extend(_validate_deadline(spec, before))
    errors.extend(_validate_tolerations(spec, before))
    errors.extend(_validate_gates(spec, before))
    if not same_meaning(_fixed_part(spec, before), _fixed_part(before, before)):
        errors.append(fields.forbidden("spec", _FIXED))
    return errors


def validate_status_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a new status."""
    status, before = new.get("status") or {}, old.get("status") or {}
    spec = new.get("spec") or {}
    errors: list[FieldError] = []
    nominated = status.get("nominatedNodeName")
    if nominated:
        errors.extend(formats.node_name(nominated, "status.nominatedNodeName"))
    if (before.get("qosClass") or "") != (status.get("qosClass") or "") and before.get("qosClass"):
        errors.append(fields.invalid("status.qosClass", status.get("qosClass"), IMMUTABLE))
    errors.extend(
        validate_claim_statuses(
            status.get("resourceClaimStatuses"), spec.get("resourceClaims"), "status.resourceClaimStatuses"
        )
    )
    extended = status.get("extendedResourceClaimStatus")
    if extended is not None:
        errors.extend(validate_extended_status(extended, spec, "status.extendedResourceClaimStatus"))
    for list_name, containers in _STATUS_LISTS.items():
        errors.extend(_validate_container_statuses(status, before, spec, list_name, containers))
    return errors


def validate_ephemeral_containers(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check added ephemeral containers: those that are there stay as they are."""
    spec = new.get("spec") or {}
    errors = [error for error in validate_containers(spec, "spec") if error.field.startswith("spec.ephemeral")]
    known = {container.get("name"): container for container in spec.get("ephemeralContainers") or ()}
    for container in (old.get("spec") or {}).get("ephemeralContainers") or ():
        name = container.get("name")
        if name not in known:
            text = f'existing ephemeral containers "{name}" may not be removed'
            errors.append(fields.forbidden("spec.ephemeralContainers", text + "\n"))
        elif not same_meaning(known[name], container):
            text = f'existing ephemeral containers "{name}" may not be changed'
            errors.append(fields.forbidden("spec.ephemeralContainers", text + "\n"))
    return errors


def validate_resize(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a change of requests and limits of running containers."""
    spec = new.get("spec") or {}
    errors: list[FieldError] = []
    for name in _CONTAINER_LISTS:
        for index, container in enumerate(spec.get(name) or ()):
            errors.extend(validate_container_resources(container, spec, f"spec.{name}[{index}]"))
    before, after = ((tree.get("spec") or {}).get("resourceClaims") for tree in (old, new))
    if not same_meaning(before, after):
        errors.append(fields.forbidden("spec", "only cpu and memory resources are mutable"))
    return errors


def _validate_images(spec: Tree) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in _CONTAINER_LISTS:
        for index, container in enumerate(spec.get(name) or ()):
            errors.extend(validate_image(container.get("image") or "", f"spec.{name}[{index}].image"))
    return errors


def _validate_deadline(spec: Tree, before: Tree) -> list[FieldError]:
    path = "spec.activeDeadlineSeconds"
    deadline, stored = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if deadline is None:
        return (
            []
            if stored is None
            else [fields.invalid(path, None, "must not update from a positive integer to nil value")]
        )
    errors = within(deadline, 1, MAX_INT32, path)
    if not errors and stored is not None and deadline > stored:
        text = "must be less than or equal to previous value"
        errors.append(fields.invalid(path, deadline, text))
    return errors


def _validate_tolerations(spec: Tree, before: Tree) -> list[FieldError]:
    def identity(toleration: Tree) -> tuple[Any, ...]:
        return tuple(toleration.get(name) or "" for name in ("key", "operator", "value", "effect"))

    given = {identity(toleration) for toleration in spec.get("tolerations") or ()}
    if all(identity(toleration) in given for toleration in before.get("tolerations") or ()):
        return []
    text = "existing toleration can not be modified except its tolerationSeconds"
    return [fields.forbidden("spec.tolerations", text)]


def _validate_gates(spec: Tree, before: Tree) -> list[FieldError]:
    known = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    return [
        fields.forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name') or ''}'",
        )
        for index, gate in enumerate(spec.get("schedulingGates") or ())
        if gate.get("name") not in known
    ]


def _fixed_part(spec: Tree, before: Tree) -> Tree:
    """Leave out of a spec what may change."""
    fixed = {name: value for name, value in spec.items() if name not in _FREE}
    for name in _CONTAINER_LISTS:
        if spec.get(name):
            fixed[name] = [
                {member: value for member, value in container.items() if member != "image"} for container in spec[name]
            ]
    grace, stored = spec.get("terminationGracePeriodSeconds"), before.get("terminationGracePeriodSeconds")
    if grace == 1 and isinstance(stored, int) and stored < 0:
        fixed["terminationGracePeriodSeconds"] = stored
    if before.get("schedulingGates"):
        # While a pod is held back, where it may run can still be narrowed.
        selector = dict(spec.get("nodeSelector") or {})
        stored_selector = before.get("nodeSelector") or {}
        if all(selector.get(key) == value for key, value in stored_selector.items()):
            fixed["nodeSelector"] = stored_selector
        fixed.pop("affinity", None)
    return fixed


def _validate_container_statuses(
    status: Tree, before: Tree, spec: Tree, list_name: str, containers: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    known = {container.get("name"): container for container in spec.get(containers) or ()}
    stored = {entry.get("name"): entry for entry in before.get(list_name) or ()}
    ends = spec.get("restartPolicy") in ("OnFailure", "Never")
    for index, entry in enumerate(status.get(list_name) or ()):
        at = f"status.{list_name}[{index}]"
        name = entry.get("name")
        if entry.get("allocatedResourcesStatus"):
            path = f"{at}.allocatedResourcesStatus"
            errors.extend(validate_health(entry["allocatedResourcesStatus"], known.get(name) or {}, path))
        old_state = (stored.get(name) or {}).get("state") or {}
        if not ends or old_state.get("terminated") is None or list_name != "containerStatuses":
            continue
        failed = old_state["terminated"].get("exitCode") or 0
        if spec.get("restartPolicy") == "OnFailure" and failed:
            continue
        if (entry.get("state") or {}).get("terminated") is None:
            text = "may not be transitioned to non-terminated state"
            errors.append(fields.forbidden(f"{at}.state", text))
    return errors
