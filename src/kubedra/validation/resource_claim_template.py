"""Rules of ResourceClaimTemplate: a claim spec with labels and annotations for the claims made from it.

Upstream counterpart: ValidateResourceClaimTemplate of pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.validation.context import Context
from kubedra.validation.metadata import validate_annotations, validate_labels
from kubedra.validation.resource_claim import validate_same_spec, validate_spec

Tree = dict[str, Any]

# Upstream derives these names from Go's, hence "uID".
_FORBIDDEN = {
    "name": "name",
    "generateName": "generateName",
    "namespace": "namespace",
    "uid": "uID",
    "resourceVersion": "resourceVersion",
    "generation": "generation",
    "creationTimestamp": "creationTimestamp",
    "deletionTimestamp": "deletionTimestamp",
    "deletionGracePeriodSeconds": "deletionGracePeriodSeconds",
    "ownerReferences": "ownerReferences",
    "finalizers": "finalizers",
    "managedFields": "managedFields",
}


def validate(tree: Tree, context: Context) -> list[FieldError]:
    """Check a new template."""
    spec = tree.get("spec") or {}
    errors = validate_template_metadata(spec.get("metadata") or {}, "spec.metadata")
    errors.extend(validate_spec(spec.get("spec") or {}, "spec.spec", context))
    return errors


def validate_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed template: its spec is what it was."""
    return validate_same_spec(new, old)


def validate_template_metadata(metadata: Tree, path: str) -> list[FieldError]:
    """Check the metadata that generated objects get: labels and annotations, nothing else."""
    errors = validate_labels(metadata.get("labels"), f"{path}.labels")
    errors.extend(validate_annotations(metadata.get("annotations"), f"{path}.annotations"))
    for name, shown in _FORBIDDEN.items():
        if metadata.get(name):
            errors.append(fields.forbidden(f"{path}.{shown}", "cannot be set"))
    return errors
