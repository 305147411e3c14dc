"""Facts about upstream's Go types that the OpenAPI schema doesn't tell, and that ownership shows.

A struct held by value is always there: an object that a client creates does not "add" ``spec`` or ``spec.template``,
so nobody becomes owner of these paths themselves, only of what is in them. The same holds for a list that is written
without ``omitempty``. Versions of a group are alike in this, so the names here carry no version.
"""

from __future__ import annotations

from typing import Final

# Definition (group and name) -> fields held by value.
VALUE_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "apps.DaemonSetSpec": ("template", "updateStrategy"),
    "apps.DeploymentSpec": ("template", "strategy"),
    "apps.ReplicaSetSpec": ("template",),
    "apps.StatefulSetSpec": ("template", "updateStrategy"),
    "autoscaling.HorizontalPodAutoscalerSpec": ("scaleTargetRef",),
    "batch.CronJobSpec": ("jobTemplate",),
    "batch.JobSpec": ("template",),
    "batch.JobTemplateSpec": ("metadata", "spec"),
    "core.Container": ("resources",),
    "core.ContainerStatus": ("state", "lastState"),
    "core.EphemeralContainer": ("resources",),
    "core.Event": ("metadata", "involvedObject", "source"),
    "core.NodeDaemonEndpoints": ("kubeletEndpoint",),
    "core.NodeStatus": ("daemonEndpoints", "nodeInfo"),
    "core.PersistentVolumeClaimSpec": ("resources",),
    "core.PersistentVolumeClaimTemplate": ("metadata", "spec"),
    "core.PodSpec": ("containers",),
    "core.PodTemplate": ("template",),
    "core.PodTemplateSpec": ("metadata", "spec"),
    "core.ServiceStatus": ("loadBalancer",),
    "events.Event": ("metadata", "regarding", "deprecatedSource"),
    "networking.IngressStatus": ("loadBalancer",),
    "networking.NetworkPolicySpec": ("podSelector",),
    "rbac.ClusterRoleBinding": ("metadata", "roleRef"),
    "rbac.RoleBinding": ("metadata", "roleRef"),
    "resource.AllocationResult": ("devices",),
    "resource.DeviceTaintRuleSpec": ("taint",),
    "resource.ResourceClaimSpec": ("devices",),
    "resource.ResourceClaimTemplateSpec": ("metadata", "spec"),
    "resource.ResourceSliceSpec": ("pool",),
}

# Kinds whose spec or status is a pointer upstream: what is held by value at the top.
VALUE_ROOTS: Final[dict[str, tuple[str, ...]]] = {
    "resource.ResourcePoolStatusRequest": ("metadata", "spec"),
}
