"""Kubernetes 1.37, scheduling/v1beta1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from msgspec import Struct

from kubedra.api import meta_v1


class AllDisruptionMode(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    pass


class BasicSchedulingPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    pass


class DisruptionMode(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    all: AllDisruptionMode | None = None
    single: SingleDisruptionMode | None = None


class GangSchedulingPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    min_count: int = 0


class PodGroupSchedulingPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class PodGroupSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    disruption_mode: DisruptionMode | None = None
    parent_composite_pod_group_name: str = ""
    preemption_policy: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    workload_ref: WorkloadReference | None = None


class PodGroupStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    conditions: tuple[meta_v1.Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class PodGroupResourceClaim(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodGroupResourceClaimStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    resource_claim_name: str = ""


class PodGroupSchedulingConstraints(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    topology: tuple[TopologyConstraint, ...] = ()


class SingleDisruptionMode(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    pass


class TopologyConstraint(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    key: str = ""


class WorkloadReference(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    template_name: str = ""
    workload_name: str = ""
