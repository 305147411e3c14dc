"""Nodes: new ones are tainted until they are ready; a node may change only itself (optional).

Upstream counterpart: plugin/pkg/admission/nodetaint and plugin/pkg/admission/noderestriction.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import errors
from kubedra.server.access.users import node_name
from kubedra.server.admission.base import Plugin
from kubedra.server.calls import Call

Tree = dict[str, Any]
NOT_READY = "node.kubernetes.io/not-ready"
_RESTRICTED = "node-restriction.kubernetes.io/"


class TaintNodes(Plugin):
    """A node that registers itself is not ready yet; one that somebody else makes is what they say it is, on demand."""

    def __init__(self, every: bool = True) -> None:
        self._every = every

    def create(self, call: Call, tree: Tree) -> None:
        """Adds the not-ready taint."""
        if call.served.storage != "nodes" or not (self._every or node_name(call.request.user)):
            return
        spec = tree.setdefault("spec", {})
        taints = spec.get("taints") or []
        if not any(t.get("key") == NOT_READY and t.get("effect") == "NoSchedule" for t in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]


class NodeRestriction(Plugin):
    """What the identity of a node may not do."""

    def create(self, call: Call, tree: Tree) -> None:
        """Only its own Node, only mirror pods on itself, only slices of itself."""
        node = node_name(call.request.user)
        if not node:
            return
        name = tree["metadata"].get("name", "")
        storage = call.served.storage
        if storage == "nodes":
            self._own(call, node, name)
            self._labels(call, name, tree, {})
        elif storage == "pods":
            annotations = tree["metadata"].get("annotations") or {}
            if "kubernetes.io/config.mirror" not in annotations:
                why = (
                    f'pod does not have "kubernetes.io/config.mirror" annotation, node "{node}" '
                    "can only create mirror pods"
                )
                raise errors.forbidden(call.served.kind, name, why)
            if (tree.get("spec") or {}).get("nodeName") != node:
                why = f'node "{node}" can only create pods with spec.nodeName set to itself'
                raise errors.forbidden(call.served.kind, name, why)
        elif storage == "resourceslices.resource.k8s.io" and (tree.get("spec") or {}).get("nodeName") != node:
            why = "can only create ResourceSlice with the same NodeName as the requesting node"
            raise errors.forbidden(call.served.kind, name, why)

    def update(self, call: Call, tree: Tree, old: Tree) -> None:
        """Its own Node without taints and reserved labels; status of its pods without labels."""
        node = node_name(call.request.user)
        if not node:
            return
        storage, name = call.served.storage, call.name
        if storage == "nodes":
            self._own(call, node, name)
            if (tree.get("spec") or {}).get("taints") != (old.get("spec") or {}).get("taints"):
                raise errors.forbidden(call.served.kind, name, f'node "{node}" is not allowed to modify taints')
            self._labels(call, name, tree, old["metadata"].get("labels") or {})
        elif storage == "pods":
            if call.subresource != "status":
                raise errors.forbidden(call.served.kind, name, f'node "{node}" can only update pod status')
            if (old.get("spec") or {}).get("nodeName") != node:
                why = f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
                raise errors.forbidden(call.served.kind, name, why)
            if (tree["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {}):
                why = f'node "{node}" cannot update labels through pod status'
                raise errors.forbidden(call.served.kind, name, why)

    def delete(self, call: Call, old: Tree) -> None:
        """Only pods and slices of itself."""
        node = node_name(call.request.user)
        if not node:
            return
        mine = (old.get("spec") or {}).get("nodeName") == node
        if call.served.storage == "pods" and not mine:
            why = f'node "{node}" can only delete pods with spec.nodeName set to itself'
            raise errors.forbidden(call.served.kind, call.name, why)
        if call.served.storage == "resourceslices.resource.k8s.io" and not mine:
            why = "can only delete ResourceSlice with the same NodeName as the requesting node"
            raise errors.forbidden(call.served.kind, call.name, why)

    @staticmethod
    def _own(call: Call, node: str, name: str) -> None:
        if name != node:
            raise errors.forbidden(call.served.kind, name, f'node "{node}" is not allowed to modify node "{name}"')

    @staticmethod
    def _labels(call: Call, name: str, tree: Tree, old: Tree) -> None:
        new = tree["metadata"].get("labels") or {}
        changed = {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}
        bad = sorted(key for key in changed if key.split("/")[0].endswith(_RESTRICTED[:-1]))
        if bad:
            raise errors.forbidden(call.served.kind, name, f"is not allowed to modify labels: {', '.join(bad)}")
