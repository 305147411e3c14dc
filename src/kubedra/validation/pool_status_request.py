"""Rules of ResourcePoolStatusRequest: a question that is asked once and answered once.

Upstream counterpart: the declarative validation of resource/v1alpha3 (hence its own wording of name faults).
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields
from kubedra.api.canonical import same_meaning
from kubedra.api.fields import FieldError
from kubedra.base import names
from kubedra.validation import formats
from kubedra.validation.conditions import validate_conditions
from kubedra.validation.context import Context
from kubedra.validation.lists import check_list
from kubedra.validation.metadata import IMMUTABLE

Tree = dict[str, Any]

LIMIT_MAX = 1000
POOLS_MAX = 1000
CONDITIONS_MAX = 10
ERROR_MAX = 256
SUMMARIES_MAX = 32

_COUNTS = ("totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices")


def validate(tree: Tree, context: Context) -> list[FieldError]:
    """Check a new request."""
    spec = tree.get("spec") or {}
    errors = _driver(spec.get("driver") or "", "spec.driver")
    pool = spec.get("poolName")
    if pool is not None:
        errors.extend(_pool(pool, "spec.poolName"))
    limit = spec.get("limit")
    if limit is not None:
        errors.extend(_at_least(limit, 1, "spec.limit"))
        if limit > LIMIT_MAX:
            errors.append(fields.invalid("spec.limit", limit, f"must be less than or equal to {LIMIT_MAX}"))
    attribute = spec.get("defaultPartitionTypeAttribute")
    if attribute is not None:
        errors.extend(formats.fully_qualified(attribute, "spec.defaultPartitionTypeAttribute"))
    return errors


def validate_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check a changed request: its spec is what it was."""
    spec = new.get("spec") or {}
    return [] if same_meaning(spec, old.get("spec") or {}) else [fields.invalid("spec", spec, IMMUTABLE)]


def validate_status_update(new: Tree, old: Tree, context: Context) -> list[FieldError]:
    """Check the answer; one that was given is not changed."""
    status, before = new.get("status"), old.get("status")
    if before is not None and not same_meaning(status, before):
        return [fields.invalid("status", status, IMMUTABLE)]
    if status is None:
        return []
    errors: list[FieldError] = []
    count = status.get("poolCount")
    if count is None:
        errors.append(fields.required("status.poolCount"))
    else:
        errors.extend(_at_least(count, 0, "status.poolCount"))
    errors.extend(check_list(status.get("pools"), POOLS_MAX, _validate_pool, "status.pools"))
    conditions = status.get("conditions") or []
    if len(conditions) > CONDITIONS_MAX:
        errors.append(fields.too_many("status.conditions", len(conditions), CONDITIONS_MAX))
    else:
        errors.extend(validate_conditions(conditions, "status.conditions", CONDITIONS_MAX))
    return errors


def _validate_pool(pool: Tree, path: str) -> list[FieldError]:
    errors = _driver(pool.get("driver") or "", f"{path}.driver")
    name = pool.get("poolName") or ""
    errors.extend(_pool(name, f"{path}.poolName") if name else [fields.required(f"{path}.poolName")])
    errors.extend(_at_least(pool.get("generation") or 0, 0, f"{path}.generation"))
    if pool.get("resourceSliceCount") is not None:
        errors.extend(_at_least(pool["resourceSliceCount"], 1, f"{path}.resourceSliceCount"))
    for member in _COUNTS:
        if pool.get(member) is not None:
            errors.extend(_at_least(pool[member], 0, f"{path}.{member}"))
    node = pool.get("nodeName")
    if node is not None:
        errors.extend(formats.node_name(node, f"{path}.nodeName"))
    if len((pool.get("validationError") or "").encode()) > ERROR_MAX:
        errors.append(fields.too_long(f"{path}.validationError", ERROR_MAX))
    for member, items in (
        ("partitionSummary", pool.get("partitionSummary")),
        ("shareableSummary.capacity", (pool.get("shareableSummary") or {}).get("capacity")),
    ):
        errors.extend(check_list(items, SUMMARIES_MAX, lambda _item, _at: [], f"{path}.{member}"))
    return errors


def _driver(value: str, path: str) -> list[FieldError]:
    if not value:
        return [fields.required(path)]
    return [fields.invalid(path, value, fault) for fault in names.caseless_dns_subdomain(value, unit="bytes")]


def _pool(value: str, path: str) -> list[FieldError]:
    """Check a pool's name; here the whole name is quoted and the faulty segment counted."""
    errors: list[FieldError] = []
    if len(value.encode()) > formats.POOL_MAX:
        errors.append(fields.too_long(path, formats.POOL_MAX))
    for index, part in enumerate(value.split("/")):
        if not part:
            errors.append(fields.invalid(path, value, f"segment {index}: must not be empty"))
            continue
        for fault in names.dns_subdomain(part, unit="bytes"):
            errors.append(fields.invalid(path, value, f"segment {index}: {fault}"))
    return errors


def _at_least(value: int, least: int, path: str) -> list[FieldError]:
    return [] if value >= least else [fields.invalid(path, value, f"must be greater than or equal to {least}")]
