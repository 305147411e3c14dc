"""Kubernetes 1.37, meta/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec import field as _field


class ObjectMeta(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    annotations: dict[str, str] = {}
    creation_timestamp: str = ""
    deletion_grace_period_seconds: int | None = None
    deletion_timestamp: str = ""
    finalizers: tuple[str, ...] = ()
    generate_name: str = ""
    generation: int | None = None
    labels: dict[str, str] = {}
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()
    name: str = ""
    namespace: str = ""
    owner_references: tuple[OwnerReference, ...] = ()
    resource_version: str = ""
    self_link: str = ""
    uid: str = ""


class LabelSelector(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    match_labels: dict[str, str] = {}


class Condition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    last_transition_time: str = ""
    message: str = ""
    observed_generation: int | None = None
    reason: str = ""
    status: str = ""
    type: str = ""


class DeleteOptions(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    dry_run: tuple[str, ...] = ()
    grace_period_seconds: int | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
    kind: str = ""
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str = ""


class FieldSelectorRequirement(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelectorRequirement(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ListMeta(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    continue_: str = _field(default="", name="continue")
    remaining_item_count: int | None = None
    resource_version: str = ""
    self_link: str = ""
    shard_info: ShardInfo | None = None


class ManagedFieldsEntry(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    fields_type: str = ""
    fields_v1: Any = None
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str = ""


class OwnerReference(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    api_version: str = ""
    block_owner_deletion: bool | None = None
    controller: bool | None = None
    kind: str = ""
    name: str = ""
    uid: str = ""


class Preconditions(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    resource_version: str = ""
    uid: str = ""


class ShardInfo(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    selector: str = ""


class Status(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    code: int | None = None
    details: StatusDetails | None = None
    kind: str = ""
    message: str = ""
    metadata: ListMeta = ListMeta()
    reason: str = ""
    status: str = ""


class StatusCause(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    field: str = ""
    message: str = ""
    reason: str = ""


class StatusDetails(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    causes: tuple[StatusCause, ...] = ()
    group: str = ""
    kind: str = ""
    name: str = ""
    retry_after_seconds: int | None = None
    uid: str = ""
