"""Rules of PodGroup: its policy, and the claims that all its pods share.

Upstream counterpart: the declarative validation of scheduling/v1beta1 (its exact sentences are not known to us).
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.canonical import same_meaning
from kubedra.api.fields import FieldError
from kubedra.validation.choices import positive
from kubedra.validation.conditions import validate_conditions
from kubedra.validation.context import Context
from kubedra.validation.metadata import IMMUTABLE
from kubedra.validation.pod_claims import validate_claim_statuses, validate_pod_claims

Tree = dict[str, Any]

CLAIMS_MAX = 4
CONDITIONS_MAX = 10
_ONE_POLICY = "must specify exactly one of: `basic`, `gang`"


def validate(tree: Tree, context: Context) -> list[FieldError]:
    """Check a new group."""
    spec = tree.get("spec") or {}
    policy, path = spec.get("schedulingPolicy") or {}, "spec.schedulingPolicy"
    given = [name for name in ("basic", "gang") if policy.get(name) is not None]
    errors: list[FieldError] = []
    if len(given) != 1:
        errors.append(fields.invalid(path, policy, _ONE_POLICY))
    if policy.get("gang") is not None:
        errors.extend(positive(policy["gang"].get("minCount") or 0, f"{path}.gang.minCount"))
    claims = spec.get("resourceClaims") or []
    if len(claims) > CLAIMS_MAX:
        errors.append(fields.too_many("spec.resourceClaims", len(claims), CLAIMS_MAX))
    else:
        errors.extend(validate_pod_claims(claims, "spec.resourceClaims"))
    return errors


def validate_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed group: its claims are fixed."""
    claims, before = ((tree.get("spec") or {}).get("resourceClaims") for tree in (new, old))
    errors = validate(new, context)
    if not same_meaning(claims, before):
        errors.append(fields.invalid("spec.resourceClaims", claims, IMMUTABLE))
    return errors


def validate_status_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check which claims the group's entries have become."""
    status, spec = new.get("status") or {}, new.get("spec") or {}
    errors = validate_conditions(status.get("conditions"), "status.conditions", CONDITIONS_MAX)
    statuses, path = status.get("resourceClaimStatuses") or [], "status.resourceClaimStatuses"
    if len(statuses) > CLAIMS_MAX:
        errors.append(fields.too_many(path, len(statuses), CLAIMS_MAX))
    else:
        errors.extend(validate_claim_statuses(statuses, spec.get("resourceClaims"), path))
    return errors
