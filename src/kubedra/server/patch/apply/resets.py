"""Fields that a request can't set because the strategy puts them back: they are nobody's through that endpoint.

The main resource never changes ``status``, the status endpoint never changes ``spec``; where upstream's strategies
reset more or less than that, the table says so.

Upstream counterpart: ``GetResetFields`` of each ``pkg/registry/*/strategy.go``.
"""

from __future__ import annotations

from typing import Final

from kubedra.api import schema
from kubedra.server.patch.apply.fieldset import FieldSet, of_path, union
from kubedra.server.patch.apply.types import short_name

Paths = tuple[tuple[str, ...], ...]

_SPEC: Final[Paths] = (("spec",),)
_STATUS: Final[Paths] = (("status",),)
_SPEC_AND_METADATA: Final[Paths] = (("metadata",), ("spec",))

_STATUS_ENDPOINT: Final[dict[str, Paths]] = {
    "apps.Deployment": (("metadata", "labels"), ("spec",)),
    "core.Pod": (("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"), ("spec",)),
    "resource.DeviceTaintRule": _SPEC_AND_METADATA,
    "resource.ResourceClaim": _SPEC_AND_METADATA,
    "resource.ResourcePoolStatusRequest": _SPEC_AND_METADATA,
}


def reset_paths(definition: str, subresource: str) -> Paths:
    """The paths that requests to this endpoint leave as they are."""
    if not definition:
        return _SPEC if subresource == "status" else _STATUS
    fields = schema.definition(definition).fields
    if subresource == "status":
        return _STATUS_ENDPOINT.get(short_name(definition), _SPEC)
    if subresource in ("", "ephemeralcontainers", "resize") and "status" in fields and "spec" in fields:
        return _STATUS
    return ()


def reset_fields(reset: Paths) -> FieldSet:
    """The paths as a set of fields."""
    out: FieldSet = {}
    for path in reset:
        out = union(out, of_path(tuple("f:" + name for name in path)))
    return out
