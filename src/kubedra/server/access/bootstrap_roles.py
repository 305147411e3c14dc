"""The default roles and bindings of a cluster, as facts.

Upstream counterpart: plugin/pkg/auth/authorizer/rbac/bootstrappolicy. Only what the parts of a cluster and ordinary
users need; `view`, `edit` and `admin` list the resources that this server gives behaviour to.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import kinds
from kubedra.api.kinds import Kind

Tree = dict[str, Any]
READ = ["get", "list", "watch"]
WRITE = ["create", "delete", "deletecollection", "patch", "update"]
ALL = READ + WRITE


def rule(verbs: list[str], group: str, *resources: str, names: list[str] | None = None) -> Tree:
    """One policy rule."""
    found: Tree = {"verbs": verbs, "apiGroups": [group], "resources": list(resources)}
    if names:
        found["resourceNames"] = names
    return found


def paths(verbs: list[str], *urls: str) -> Tree:
    """A rule for paths that are no resources."""
    return {"verbs": verbs, "nonResourceURLs": list(urls)}


DRA = "resource.k8s.io"
_CORE_VIEW = (
    "configmaps", "endpoints", "events", "limitranges", "namespaces", "namespaces/status", "persistentvolumeclaims",
    "persistentvolumeclaims/status", "pods", "pods/log", "pods/status", "replicationcontrollers",
    "replicationcontrollers/scale", "replicationcontrollers/status", "resourcequotas", "resourcequotas/status",
    "serviceaccounts", "services", "services/status", "bindings",
)  # fmt: skip
_APPS = (
    "controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale",
    "deployments/status", "replicasets", "replicasets/scale", "replicasets/status", "statefulsets",
    "statefulsets/scale", "statefulsets/status",
)  # fmt: skip
_VIEW = [
    rule(READ, "", *_CORE_VIEW),
    rule(READ, "apps", *_APPS),
    rule(READ, "autoscaling", "horizontalpodautoscalers", "horizontalpodautoscalers/status"),
    rule(READ, "batch", "cronjobs", "cronjobs/status", "jobs", "jobs/status"),
    rule(READ, "discovery.k8s.io", "endpointslices"),
    rule(READ, "events.k8s.io", "events"),
    rule(READ, "networking.k8s.io", "ingresses", "ingresses/status", "networkpolicies"),
    rule(READ, "policy", "poddisruptionbudgets", "poddisruptionbudgets/status"),
    rule(READ, DRA, "resourceclaims", "resourceclaims/status", "resourceclaimtemplates"),
]
_EDIT = [
    rule(READ, "", "secrets", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy"),
    rule(["impersonate"], "", "serviceaccounts"),
    rule(
        WRITE, "", "pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "configmaps", "events",
        "persistentvolumeclaims", "replicationcontrollers", "replicationcontrollers/scale", "secrets",
        "serviceaccounts", "services", "services/proxy", "endpoints",
    ),
    rule(["create"], "", "pods/eviction", "serviceaccounts/token"),
    rule(WRITE, "apps", "daemonsets", "deployments", "deployments/rollback", "deployments/scale", "replicasets",
         "replicasets/scale", "statefulsets", "statefulsets/scale"),
    rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
    rule(WRITE, "batch", "cronjobs", "jobs"),
    rule(WRITE, "networking.k8s.io", "ingresses", "networkpolicies"),
    rule(WRITE, "policy", "poddisruptionbudgets"),
    rule(ALL, "coordination.k8s.io", "leases"),
    rule(WRITE, DRA, "resourceclaims", "resourceclaimtemplates"),
]  # fmt: skip
_ADMIN = [
    rule(["create"], "authorization.k8s.io", "localsubjectaccessreviews"),
    rule(ALL, "rbac.authorization.k8s.io", "rolebindings", "roles"),
]
_SCHEDULER = [
    rule(["create", "patch", "update"], "", "events"),
    rule(["create", "patch", "update"], "events.k8s.io", "events"),
    rule(["create"], "coordination.k8s.io", "leases"),
    rule(["get", "list", "update", "watch"], "coordination.k8s.io", "leases"),
    rule(READ, "", "nodes", "namespaces", "services", "replicationcontrollers", "persistentvolumes"),
    rule([*READ, "delete"], "", "pods"),
    rule(["create"], "", "bindings", "pods/binding"),
    rule(["patch", "update"], "", "pods/status"),
    rule(["update"], "", "pods/finalizers"),
    rule(READ, "apps", "replicasets", "statefulsets"),
    rule(READ, "policy", "poddisruptionbudgets"),
    rule([*READ, "patch", "update"], "", "persistentvolumeclaims"),
    rule(READ, "storage.k8s.io", "csinodes", "csidrivers", "csistoragecapacities", "storageclasses",
         "volumeattachments"),
    rule(READ, DRA, "deviceclasses", "resourceslices", "devicetaintrules"),
    rule([*READ, "patch", "update", "create", "delete"], DRA, "resourceclaims"),
    rule([*READ, "patch", "update"], DRA, "resourceclaims/status"),
    rule(["patch", "update"], DRA, "resourceclaims/binding"),
    rule(READ, DRA, "resourceclaimtemplates"),
    rule(READ, "scheduling.k8s.io", "priorityclasses", "podgroups", "workloads"),
    rule([*READ, "patch", "update"], "scheduling.k8s.io", "podgroups/status"),
    rule(["create"], "authentication.k8s.io", "tokenreviews"),
    rule(["create"], "authorization.k8s.io", "subjectaccessreviews"),
]  # fmt: skip
_NODE = [
    rule(["create", "get", "list", "watch"], "", "nodes"),
    rule(["patch", "update"], "", "nodes"),
    rule(["patch", "update"], "", "nodes/status"),
    rule(["create", "patch", "update"], "", "events"),
    rule(["create", "patch", "update"], "events.k8s.io", "events"),
    rule([*READ, "create", "delete"], "", "pods"),
    rule(["patch", "update"], "", "pods/status"),
    rule(["create"], "", "pods/eviction"),
    rule(READ, "", "services", "persistentvolumes", "persistentvolumeclaims"),
    rule(["get"], "", "serviceaccounts"),
    rule(["create"], "", "serviceaccounts/token"),
    rule(["create", "delete", "get", "patch", "update"], "coordination.k8s.io", "leases"),
    rule(["create", "get", "list", "watch"], "storage.k8s.io", "csinodes", "csidrivers"),
    rule(["get"], DRA, "resourceclaims"),
    rule(["deletecollection"], DRA, "resourceslices"),
    rule(READ, "node.k8s.io", "runtimeclasses"),
    rule(["create"], "authentication.k8s.io", "tokenreviews"),
    rule(["create"], "authorization.k8s.io", "subjectaccessreviews"),
]
# The controllers run in one process under one identity, which may do what upstream's many controllers may.
_CONTROLLERS = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, paths(["get"], "*")]
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz",
              "/version", "/version/")  # fmt: skip

_ROLES: dict[str, list[Tree]] = {
    "cluster-admin": [rule(["*"], "*", "*"), paths(["*"], "*")],
    "admin": _ADMIN + _EDIT + _VIEW,
    "edit": _EDIT + _VIEW,
    "view": _VIEW,
    "system:discovery": [paths(["get"], *_DISCOVERY)],
    "system:monitoring": [paths(["get"], "/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis",
                                "/readyz", "/readyz/*")],
    "system:public-info-viewer": [paths(["get"], "/healthz", "/livez", "/readyz", "/version", "/version/")],
    "system:basic-user": [
        rule(["create"], "authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
        rule(["create"], "authentication.k8s.io", "selfsubjectreviews"),
    ],
    "system:kube-scheduler": _SCHEDULER,
    "system:kube-controller-manager": _CONTROLLERS,
    "system:node": _NODE,
    "system:auth-delegator": [
        rule(["create"], "authentication.k8s.io", "tokenreviews"),
        rule(["create"], "authorization.k8s.io", "subjectaccessreviews"),
    ],
    "kubedra:agent": [
        *_NODE,
        rule(READ, "", "configmaps", "secrets"),
        rule(["delete"], "", "nodes"),
        rule(READ, DRA, "resourceclaims"),
        rule(ALL, DRA, "resourceslices"),
        rule(["patch", "update"], DRA, "resourceclaims/status"),
    ],
    # Drivers of this cluster publish slices and write the status of the devices they prepared.
    "kubedra:dra-driver": [
        rule(ALL, DRA, "resourceslices"),
        rule(READ, DRA, "resourceclaims", "deviceclasses"),
        rule(["patch", "update"], DRA, "resourceclaims/status"),
        rule(["associated-node:patch", "associated-node:update", "arbitrary-node:patch", "arbitrary-node:update"], DRA,
             "resourceclaims/driver"),
        rule(["get", "list", "watch"], "", "nodes", "pods"),
        rule(["create", "patch", "update"], "events.k8s.io", "events"),
        rule(["create", "patch", "update"], "", "events"),
        rule(["create", "get", "update", "patch"], "coordination.k8s.io", "leases"),
    ],
}  # fmt: skip
_BINDINGS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "cluster-admin": ("cluster-admin", [("Group", "system:masters")]),
    "system:discovery": ("system:discovery", [("Group", "system:authenticated")]),
    "system:monitoring": ("system:monitoring", [("Group", "system:monitoring")]),
    "system:public-info-viewer": (
        "system:public-info-viewer",
        [("Group", "system:authenticated"), ("Group", "system:unauthenticated")],
    ),
    "system:basic-user": ("system:basic-user", [("Group", "system:authenticated")]),
    "system:kube-scheduler": ("system:kube-scheduler", [("User", "system:kube-scheduler")]),
    "system:kube-controller-manager": (
        "system:kube-controller-manager",
        [("User", "system:kube-controller-manager")],
    ),
    "kubedra:dra-driver": ("kubedra:dra-driver", [("Group", "kubedra:dra-drivers")]),
    # One agent process serves many nodes under one identity.
    "kubedra:agents": ("kubedra:agent", [("Group", "kubedra:agents")]),
}
_META = {"labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}


def objects() -> list[tuple[Kind[Any], Tree]]:
    """All default roles and bindings."""
    group = "rbac.authorization.k8s.io"
    found: list[tuple[Kind[Any], Tree]] = [
        (kinds.CLUSTER_ROLE, {"metadata": {"name": name, "labels": dict(_META["labels"])}, "rules": rules})
        for name, rules in _ROLES.items()
    ]
    for name, (role, subjects) in _BINDINGS.items():
        tree: Tree = {
            "metadata": {"name": name, "labels": dict(_META["labels"])},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": group, "kind": kind, "name": subject} for kind, subject in subjects],
        }
        found.append((kinds.CLUSTER_ROLE_BINDING, tree))
    return found
