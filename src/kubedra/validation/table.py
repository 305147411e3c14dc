"""Which rules belong to which kind: one table, read by the doors of this room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubedra.api.fields import FieldError
from kubedra.validation import (
    core_kinds,
    device_class,
    device_taint_rule,
    job,
    node,
    pod,
    pod_group,
    pod_update,
    policy_kinds,
    pool_status_request,
    resource_claim,
    resource_claim_status,
    resource_claim_template,
    resource_slice,
    workloads,
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
_RBAC = "rbac.authorization.k8s.io"
_REPLICAS = ("replicas", "readyReplicas", "availableReplicas", "observedGeneration")

_TABLE: dict[tuple[str, str], Rules] = {
    ("", "ConfigMap"): Rules(core_kinds.config_map, core_kinds.config_map_update),
    ("", "Event"): Rules(core_kinds.event),
    ("", "Namespace"): Rules(
        core_kinds.namespace,
        subresources={"finalize": core_kinds.namespace_finalize, "status": core_kinds.namespace_status_update},
    ),
    ("", "Node"): Rules(node.validate, node.validate_update, {"status": node.validate_status_update}),
    ("", "Pod"): Rules(
        pod.validate,
        pod_update.validate_update,
        {
            "ephemeralcontainers": pod_update.validate_ephemeral_containers,
            "resize": pod_update.validate_resize,
            "status": pod_update.validate_status_update,
        },
    ),
    ("", "ReplicationController"): Rules(
        workloads.replication_controller,
        lambda new, _old, context: workloads.replication_controller(new, context),
        {"status": workloads.status_counts(*_REPLICAS)},
    ),
    ("", "ResourceQuota"): Rules(core_kinds.resource_quota, core_kinds.resource_quota_update),
    ("", "Secret"): Rules(core_kinds.secret, core_kinds.secret_update),
    ("apps", "DaemonSet"): Rules(
        workloads.daemon_set,
        workloads.with_fixed_selector(workloads.daemon_set),
        {"status": workloads.status_counts("currentNumberScheduled", "desiredNumberScheduled", "numberReady")},
    ),
    ("apps", "Deployment"): Rules(
        workloads.deployment,
        workloads.with_fixed_selector(workloads.deployment),
        {"status": workloads.status_counts(*_REPLICAS, "updatedReplicas", "unavailableReplicas")},
    ),
    ("apps", "ReplicaSet"): Rules(
        workloads.replica_set,
        workloads.with_fixed_selector(workloads.replica_set),
        {"status": workloads.status_counts(*_REPLICAS, "fullyLabeledReplicas")},
    ),
    ("apps", "StatefulSet"): Rules(
        workloads.stateful_set,
        workloads.stateful_set_update,
        {"status": workloads.status_counts(*_REPLICAS, "currentReplicas", "updatedReplicas")},
    ),
    ("batch", "CronJob"): Rules(job.validate_cron, job.validate_cron_update),
    ("batch", "Job"): Rules(
        job.validate, job.validate_update, {"status": workloads.status_counts("active", "succeeded", "failed")}
    ),
    ("coordination.k8s.io", "Lease"): Rules(policy_kinds.lease, policy_kinds.lease_update),
    ("policy", "PodDisruptionBudget"): Rules(
        policy_kinds.disruption_budget,
        policy_kinds.disruption_budget_update,
        {"status": policy_kinds.disruption_budget_status},
    ),
    ("scheduling.k8s.io", "PodGroup"): Rules(
        pod_group.validate, pod_group.validate_update, {"status": pod_group.validate_status_update}
    ),
    ("scheduling.k8s.io", "PriorityClass"): Rules(policy_kinds.priority_class, policy_kinds.priority_class_update),
    (_RBAC, "ClusterRole"): Rules(policy_kinds.cluster_role, policy_kinds.cluster_role_update),
    (_RBAC, "ClusterRoleBinding"): Rules(policy_kinds.cluster_role_binding, policy_kinds.cluster_role_binding_update),
    (_RBAC, "Role"): Rules(policy_kinds.role, policy_kinds.role_update),
    (_RBAC, "RoleBinding"): Rules(policy_kinds.role_binding, policy_kinds.role_binding_update),
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
