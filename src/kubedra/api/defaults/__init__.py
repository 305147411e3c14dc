"""What an object means where its author said nothing: upstream's defaults, a file per API group.

Defaults belong to a version: they are applied to the decoded object in the version of the request, before it is
converted and validated, and again to what a patch produced. They only add; what was given is never changed (one
exception that upstream makes too: a count of 0 in a request means 1).

The tree is changed in place and belongs to the caller: apply defaults to what was just decoded, never to an object
that a cache or a watcher shares. Upstream counterpart: pkg/apis/*/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubedra.api.defaults import cluster, pods, resource, workloads

Tree = dict[str, Any]
Defaulter = Callable[[Tree], None]

_BY_KIND: dict[tuple[str, str], Defaulter] = {
    ("", "Pod"): pods.default_pod,
    ("", "PodTemplate"): pods.default_pod_template_object,
    ("", "Node"): cluster.default_node,
    ("", "Namespace"): cluster.default_namespace,
    ("", "Secret"): cluster.default_secret,
    ("", "Service"): cluster.default_service,
    ("", "PersistentVolumeClaim"): cluster.default_volume_claim,
    ("", "PersistentVolume"): cluster.default_volume,
    ("", "ReplicationController"): workloads.default_replication_controller,
    ("apps", "Deployment"): workloads.default_deployment,
    ("apps", "ReplicaSet"): workloads.default_replica_set,
    ("apps", "StatefulSet"): workloads.default_stateful_set,
    ("apps", "DaemonSet"): workloads.default_daemon_set,
    ("batch", "Job"): workloads.default_job,
    ("batch", "CronJob"): workloads.default_cron_job,
    ("rbac.authorization.k8s.io", "RoleBinding"): cluster.default_role_binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): cluster.default_role_binding,
    ("scheduling.k8s.io", "PriorityClass"): cluster.default_priority_class,
    ("storage.k8s.io", "StorageClass"): cluster.default_storage_class,
    ("networking.k8s.io", "NetworkPolicy"): cluster.default_network_policy,
}


def apply_defaults(group: str, version: str, kind: str, tree: Tree, *, now: str) -> Tree:
    """Fill in the defaults of one object in place and return it.

    `now` (RFC 3339, whole seconds) is when taints that carry no time count as added. Applying twice changes nothing.
    """
    if group == resource.GROUP:
        resource.default(version, kind, tree, now)
        return tree
    defaulter = _BY_KIND.get((group, kind))
    if defaulter is not None:
        defaulter(tree)
    return tree
