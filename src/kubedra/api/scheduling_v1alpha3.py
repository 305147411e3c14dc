"""Kubernetes 1.37, scheduling/v1alpha3: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from msgspec import Struct


class TopologyConstraint(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    key: str = ""


class WorkloadPodGroupAllDisruptionMode(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    pass


class WorkloadPodGroupBasicSchedulingPolicy(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    pass


class WorkloadPodGroupDisruptionMode(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    all: WorkloadPodGroupAllDisruptionMode | None = None
    single: WorkloadPodGroupSingleDisruptionMode | None = None


class WorkloadPodGroupGangSchedulingPolicy(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    min_count: int | None = None


class WorkloadPodGroupResourceClaim(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class WorkloadPodGroupSchedulingConstraints(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    topology: tuple[TopologyConstraint, ...] = ()


class WorkloadPodGroupSchedulingPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    basic: WorkloadPodGroupBasicSchedulingPolicy | None = None
    gang: WorkloadPodGroupGangSchedulingPolicy | None = None


class WorkloadPodGroupSingleDisruptionMode(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    pass
