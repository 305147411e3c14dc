"""Kubernetes 1.37, resource/v1alpha3: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from msgspec import Struct

from kubedra.api import meta_v1


class PartitionTypeStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    allocatable: int = 0
    attribute: str = ""
    total: int = 0
    type: str = ""


class PoolStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    allocated_devices: int | None = None
    available_devices: int | None = None
    driver: str = ""
    generation: int = 0
    node_name: str = ""
    partition_summary: tuple[PartitionTypeStatus, ...] = ()
    pool_name: str = ""
    resource_slice_count: int | None = None
    shareable_summary: ShareableSummaryStatus | None = None
    total_devices: int | None = None
    unavailable_devices: int | None = None
    validation_error: str = ""


class ResourcePoolStatusRequestSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    default_partition_type_attribute: str = ""
    driver: str = ""
    limit: int | None = None
    pool_name: str = ""


class ResourcePoolStatusRequestStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    conditions: tuple[meta_v1.Condition, ...] = ()
    pool_count: int = 0
    pools: tuple[PoolStatus, ...] = ()


class ResourcePoolStatusRequest(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: ResourcePoolStatusRequestSpec = ResourcePoolStatusRequestSpec()
    status: ResourcePoolStatusRequestStatus = ResourcePoolStatusRequestStatus()


class ShareableCapacityStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    available: str = ""
    consumed: str = ""
    name: str = ""
    total: str = ""


class ShareableSummaryStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    capacity: tuple[ShareableCapacityStatus, ...] = ()
    fully_available_devices: int = 0
    partially_available_devices: int = 0
