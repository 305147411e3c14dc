"""Default tolerations of pods: five minutes on a node that stops answering.

Upstream counterpart: plugin/pkg/admission/defaulttolerationseconds.
"""

from __future__ import annotations

from typing import Any

from kubedra.server.admission.base import Plugin
from kubedra.server.calls import Call

Tree = dict[str, Any]
SECONDS = 300
_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerations(Plugin):
    """Adds the tolerations that a pod doesn't bring."""

    def create(self, call: Call, tree: Tree) -> None:
        """Adds them."""
        if call.served.storage == "pods":
            add_tolerations(tree.setdefault("spec", {}))

    def update(self, call: Call, tree: Tree, old: Tree) -> None:
        """Adds them again where an update of a pod dropped them."""
        if call.served.storage == "pods" and not call.subresource and "deletionTimestamp" not in tree["metadata"]:
            add_tolerations(tree.setdefault("spec", {}))


def add_tolerations(spec: Tree) -> None:
    """Tolerations for both taints, unless the pod tolerates them already."""
    tolerations = spec.get("tolerations") or []
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}
        for key in _KEYS
        if not any(t.get("key", "") in (key, "") and t.get("effect", "") in ("NoExecute", "") for t in tolerations)
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]
