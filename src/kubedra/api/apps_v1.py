"""Kubernetes 1.37, apps/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kubedra.api import core_v1, meta_v1


class ControllerRevision(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    data: Any = None
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    revision: int | None = None


class DaemonSetSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    min_ready_seconds: int | None = None
    revision_history_limit: int | None = None
    selector: meta_v1.LabelSelector = meta_v1.LabelSelector()
    template: core_v1.PodTemplateSpec = core_v1.PodTemplateSpec()
    update_strategy: DaemonSetUpdateStrategy | None = None


class DaemonSetStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    collision_count: int | None = None
    conditions: tuple[DaemonSetCondition, ...] = ()
    current_number_scheduled: int = 0
    desired_number_scheduled: int = 0
    number_available: int | None = None
    number_misscheduled: int = 0
    number_ready: int = 0
    number_unavailable: int | None = None
    observed_generation: int | None = None
    updated_number_scheduled: int | None = None


class DaemonSet(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class DaemonSetCondition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    last_transition_time: str = ""
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class DaemonSetUpdateStrategy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    rolling_update: RollingUpdateDaemonSet | None = None
    type: str = ""


class DeploymentSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    min_ready_seconds: int | None = None
    paused: bool | None = None
    progress_deadline_seconds: int | None = None
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: meta_v1.LabelSelector = meta_v1.LabelSelector()
    strategy: DeploymentStrategy | None = None
    template: core_v1.PodTemplateSpec = core_v1.PodTemplateSpec()


class DeploymentStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    available_replicas: int | None = None
    collision_count: int | None = None
    conditions: tuple[DeploymentCondition, ...] = ()
    observed_generation: int | None = None
    ready_replicas: int | None = None
    replicas: int | None = None
    terminating_replicas: int | None = None
    unavailable_replicas: int | None = None
    updated_replicas: int | None = None


class Deployment(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class DeploymentCondition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    last_transition_time: str = ""
    last_update_time: str = ""
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class DeploymentStrategy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    rolling_update: RollingUpdateDeployment | None = None
    type: str = ""


class ReplicaSetSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    min_ready_seconds: int | None = None
    replicas: int | None = None
    selector: meta_v1.LabelSelector = meta_v1.LabelSelector()
    template: core_v1.PodTemplateSpec = core_v1.PodTemplateSpec()


class ReplicaSetStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    available_replicas: int | None = None
    conditions: tuple[ReplicaSetCondition, ...] = ()
    fully_labeled_replicas: int | None = None
    observed_generation: int | None = None
    ready_replicas: int | None = None
    replicas: int = 0
    terminating_replicas: int | None = None


class ReplicaSet(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class ReplicaSetCondition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    last_transition_time: str = ""
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class RollingUpdateDaemonSet(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class RollingUpdateDeployment(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class RollingUpdateStatefulSetStrategy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    max_unavailable: int | str | None = None
    partition: int | None = None


class StatefulSetSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    min_ready_seconds: int | None = None
    ordinals: StatefulSetOrdinals | None = None
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    pod_management_policy: str = ""
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: meta_v1.LabelSelector = meta_v1.LabelSelector()
    service_name: str = ""
    template: core_v1.PodTemplateSpec = core_v1.PodTemplateSpec()
    update_strategy: StatefulSetUpdateStrategy | None = None
    volume_claim_templates: tuple[core_v1.PersistentVolumeClaim, ...] = ()


class StatefulSetStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    available_replicas: int | None = None
    collision_count: int | None = None
    conditions: tuple[StatefulSetCondition, ...] = ()
    current_replicas: int | None = None
    current_revision: str = ""
    observed_generation: int | None = None
    ready_replicas: int | None = None
    replicas: int = 0
    update_revision: str = ""
    updated_replicas: int | None = None


class StatefulSet(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class StatefulSetCondition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    last_transition_time: str = ""
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class StatefulSetOrdinals(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    start: int | None = None


class StatefulSetPersistentVolumeClaimRetentionPolicy(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetUpdateStrategy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    rolling_update: RollingUpdateStatefulSetStrategy | None = None
    type: str = ""
