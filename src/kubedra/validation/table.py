"""Which rules belong to which kind: one table, read by the doors of this room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubedra.api.fields import FieldError
from kubedra.validation import (
    device_class,
    device_taint_rule,
    pool_status_request,
    resource_claim,
    resource_claim_status,
    resource_claim_template,
    resource_slice,
)
from kubedra.validation.context import Context

Tree = dict[str, Any]
Create = Callable[[Tree, Context], list[FieldError]]
Update = Callable[[Tree, Tree, Context], list[FieldError]]


@dataclass(frozen=True)
class Rules:
    """The rules of one kind; what is missing is not checked."""

    create: Create | None = None
    update: Update | None = None
    subresources: Mapping[str, Update] = field(default_factory=dict)
    warnings: Callable[[Tree, Tree | None], list[str]] | None = None


_RESOURCE = "resource.k8s.io"

_TABLE: dict[tuple[str, str], Rules] = {
    (_RESOURCE, "DeviceClass"): Rules(device_class.validate, device_class.validate_update),
    (_RESOURCE, "DeviceTaintRule"): Rules(
        device_taint_rule.validate,
        device_taint_rule.validate_update,
        {"status": device_taint_rule.validate_status_update},
    ),
    (_RESOURCE, "ResourceClaim"): Rules(
        resource_claim.validate,
        resource_claim.validate_update,
        {"status": resource_claim_status.validate_status_update},
    ),
    (_RESOURCE, "ResourceClaimTemplate"): Rules(
        resource_claim_template.validate, resource_claim_template.validate_update
    ),
    (_RESOURCE, "ResourcePoolStatusRequest"): Rules(
        pool_status_request.validate,
        pool_status_request.validate_update,
        {"status": pool_status_request.validate_status_update},
    ),
    (_RESOURCE, "ResourceSlice"): Rules(
        resource_slice.validate,
        resource_slice.validate_update,
        warnings=lambda tree, _old: resource_slice.warnings(tree),
    ),
}


def rules_for(group: str, kind: str) -> Rules | None:
    """Find the rules of a kind, whatever its version."""
    return _TABLE.get((group, kind))
