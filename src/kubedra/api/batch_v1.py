"""Kubernetes 1.37, batch/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from msgspec import Struct

from kubedra.api import core_v1, meta_v1, scheduling_v1alpha3


class JobSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    completion_mode: str = ""
    completions: int | None = None
    managed_by: str = ""
    manual_selector: bool | None = None
    max_failed_indexes: int | None = None
    parallelism: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: str = ""
    scheduling: JobSchedulingConfiguration | None = None
    selector: meta_v1.LabelSelector | None = None
    success_policy: SuccessPolicy | None = None
    suspend: bool | None = None
    template: core_v1.PodTemplateSpec = core_v1.PodTemplateSpec()
    ttl_seconds_after_finished: int | None = None


class JobStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    active: int | None = None
    completed_indexes: str = ""
    completion_time: str = ""
    conditions: tuple[JobCondition, ...] = ()
    failed: int | None = None
    failed_indexes: str = ""
    ready: int | None = None
    start_time: str = ""
    succeeded: int | None = None
    terminating: int | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobCondition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    last_probe_time: str = ""
    last_transition_time: str = ""
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class JobSchedulingConfiguration(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    disruption_mode: scheduling_v1alpha3.WorkloadPodGroupDisruptionMode | None = None
    resource_claims: tuple[scheduling_v1alpha3.WorkloadPodGroupResourceClaim, ...] = ()
    scheduling_constraints: scheduling_v1alpha3.WorkloadPodGroupSchedulingConstraints | None = None
    scheduling_policy: scheduling_v1alpha3.WorkloadPodGroupSchedulingPolicy | None = None


class PodFailurePolicy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    rules: tuple[PodFailurePolicyRule, ...] = ()


class PodFailurePolicyOnExitCodesRequirement(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    container_name: str = ""
    operator: str = ""
    values: tuple[int, ...] = ()


class PodFailurePolicyOnPodConditionsPattern(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    status: str = ""
    type: str = ""


class PodFailurePolicyRule(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    action: str = ""
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: tuple[PodFailurePolicyOnPodConditionsPattern, ...] = ()


class SuccessPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    rules: tuple[SuccessPolicyRule, ...] = ()


class SuccessPolicyRule(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    succeeded_count: int | None = None
    succeeded_indexes: str = ""


class UncountedTerminatedPods(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    failed: tuple[str, ...] = ()
    succeeded: tuple[str, ...] = ()
