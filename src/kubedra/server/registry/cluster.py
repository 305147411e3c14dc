"""Strategies of namespaces, nodes, secrets and jobs: what the server itself writes into them.

Upstream counterpart: pkg/registry/core/{namespace,node,secret}/strategy.go and pkg/registry/batch/job/strategy.go.
"""

from __future__ import annotations

import base64
from typing import Any

from kubedra.server.registry.rules import RuleStrategy
from kubedra.server.registry.strategy import StrategyContext

Tree = dict[str, Any]

NAME_LABEL = "kubernetes.io/metadata.name"
NAMESPACE_FINALIZER = "kubernetes"


class NamespaceStrategy(RuleStrategy):
    """A namespace begins Active, with the finalizer that its controller removes."""

    keeps_status_on_create = True

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Phase Active; the `kubernetes` finalizer beside those that were asked for."""
        tree["status"] = {"phase": "Active"}
        spec = tree.setdefault("spec", {})
        finalizers = spec.get("finalizers") or []
        spec["finalizers"] = finalizers if NAMESPACE_FINALIZER in finalizers else [*finalizers, NAMESPACE_FINALIZER]
        _label(tree)

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Only `finalize` may change the finalizers of the spec."""
        if context.subresource != "finalize":
            new.pop("spec", None)
            if "spec" in old:
                new["spec"] = old["spec"]
        _label(new)


class NodeStrategy(RuleStrategy):
    """Nodes may bring their status along: kubelets register with it."""

    keeps_status_on_create = True


class SecretStrategy(RuleStrategy):
    """Text in stringData is written into data."""

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Moves stringData."""
        _encode_strings(tree)

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Moves stringData."""
        _encode_strings(new)


class JobStrategy(RuleStrategy):
    """A job gets the selector and labels that tie its pods to it, unless it brings its own."""

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Generates selector and template labels from the uid."""
        spec = tree.setdefault("spec", {})
        if spec.get("manualSelector"):
            return
        uid, name = tree["metadata"]["uid"], tree["metadata"].get("name", "")
        template = spec.setdefault("template", {})
        labels = template.setdefault("metadata", {}).setdefault("labels", {})
        for prefix in ("", "batch.kubernetes.io/"):
            labels.setdefault(f"{prefix}job-name", name)
            labels.setdefault(f"{prefix}controller-uid", uid)
        selector = spec.setdefault("selector", {})
        selector.setdefault("matchLabels", {}).setdefault("batch.kubernetes.io/controller-uid", uid)


def _label(tree: Tree) -> None:
    """Give a namespace its name as a label; the labels may be shared with a stored object."""
    metadata = tree["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: metadata.get("name", "")}


def _encode_strings(tree: Tree) -> None:
    given = tree.pop("stringData", None)
    if given:
        encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in given.items()}
        tree["data"] = {**(tree.get("data") or {}), **encoded}
