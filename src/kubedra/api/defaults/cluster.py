"""Defaults of nodes, namespaces, secrets, services, storage, RBAC, priorities and network policies.

Upstream counterpart: the defaults.go of core, rbac, scheduling, storage and networking.
"""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]

RBAC_GROUP = "rbac.authorization.k8s.io"
NAME_LABEL = "kubernetes.io/metadata.name"


def default_node(tree: Tree) -> None:
    """Let a node give out all that it has where it does not say less."""
    status = tree.get("status")
    if isinstance(status, dict) and status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])


def default_namespace(tree: Tree) -> None:
    """Give a namespace its name as a label, so that selectors can name it."""
    metadata = tree.get("metadata")
    if isinstance(metadata, dict) and metadata.get("name"):
        labels = metadata.get("labels")
        metadata["labels"] = {**(labels if isinstance(labels, dict) else {}), NAME_LABEL: metadata["name"]}


def default_secret(tree: Tree) -> None:
    """Call a secret of no type Opaque."""
    if not tree.get("type"):
        tree["type"] = "Opaque"


def default_service(tree: Tree) -> None:
    """Fill in type, affinity and ports of a service."""
    spec = tree.get("spec")
    if not isinstance(spec, dict):
        return
    _empty(spec, "sessionAffinity", "None")
    _empty(spec, "type", "ClusterIP")
    if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
        _empty(spec, "internalTrafficPolicy", "Cluster")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        _empty(spec, "externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True
    for port in spec.get("ports") or ():
        if isinstance(port, dict):
            _empty(port, "protocol", "TCP")
            if port.get("targetPort") in (None, 0, "") and port.get("port"):
                port["targetPort"] = port["port"]


def default_volume_claim(tree: Tree) -> None:
    """Ask for a file system where a volume claim does not say."""
    spec = tree.get("spec")
    if isinstance(spec, dict):
        _empty(spec, "volumeMode", "Filesystem")


def default_volume(tree: Tree) -> None:
    """Keep a volume's data where its author does not say."""
    spec = tree.get("spec")
    if isinstance(spec, dict):
        _empty(spec, "persistentVolumeReclaimPolicy", "Retain")
        _empty(spec, "volumeMode", "Filesystem")


def default_role_binding(tree: Tree) -> None:
    """Name the API group of a binding's role, users and groups."""
    role = tree.get("roleRef")
    if isinstance(role, dict):
        _empty(role, "apiGroup", RBAC_GROUP)
    for subject in tree.get("subjects") or ():
        if isinstance(subject, dict) and subject.get("kind") in ("User", "Group"):
            _empty(subject, "apiGroup", RBAC_GROUP)


def default_priority_class(tree: Tree) -> None:
    """Let a priority push out lower ones."""
    _empty(tree, "preemptionPolicy", "PreemptLowerPriority")


def default_storage_class(tree: Tree) -> None:
    """Delete volumes with their claims and bind them at once."""
    _empty(tree, "reclaimPolicy", "Delete")
    _empty(tree, "volumeBindingMode", "Immediate")


def default_network_policy(tree: Tree) -> None:
    """Name the directions of a network policy and the protocol of its ports."""
    spec = tree.get("spec")
    if not isinstance(spec, dict):
        return
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in (rule.get("ports") or ()) if isinstance(rule, dict) else ():
            if isinstance(port, dict):
                _empty(port, "protocol", "TCP")


def _empty(tree: Tree, name: str, value: Any) -> None:
    if not tree.get(name):
        tree[name] = value
