"""Strategies of the kinds outside resource.k8s.io whose particularities are few.

All of them validate as every kind does (`rules`). Upstream counterpart: pkg/registry/*/*/strategy.go.
"""

from __future__ import annotations

import base64
from typing import Any

from kubedra.api.kinds import Kind
from kubedra.server.registry.rules import RuleStrategy
from kubedra.server.registry.strategy import StrategyContext

Tree = dict[str, Any]


class CreateOnUpdateStrategy(RuleStrategy):
    """Kinds that a PUT may create."""

    allow_create_on_update = True


class NamespaceStrategy(RuleStrategy):
    """A namespace begins Active, with the finalizer that its controller removes."""

    keeps_status_on_create = True

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Phase Active; the `kubernetes` finalizer beside those that were asked for."""
        super().prepare_for_create(tree, context)
        tree["status"] = {"phase": "Active"}
        spec = tree.setdefault("spec", {})
        finalizers = spec.get("finalizers") or []
        spec["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]
        self._label(tree)

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Only `finalize` may change the finalizers of the spec."""
        super().prepare_for_update(new, old, context)
        if context.subresource != "finalize":
            new.pop("spec", None)
            if "spec" in old:
                new["spec"] = old["spec"]
        self._label(new)

    @staticmethod
    def _label(tree: Tree) -> None:
        metadata = tree["metadata"]
        if metadata.get("name"):
            metadata["labels"] = (metadata.get("labels") or {}) | {"kubernetes.io/metadata.name": metadata["name"]}


class NodeStrategy(RuleStrategy):
    """Nodes may bring their status along: kubelets register with it."""

    keeps_status_on_create = True


class JobStrategy(RuleStrategy):
    """A job gets the selector and labels that tie its pods to it, unless it brings its own."""

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Generates selector and template labels from the uid."""
        super().prepare_for_create(tree, context)
        spec = tree.setdefault("spec", {})
        if spec.get("manualSelector"):
            return
        uid, name = tree["metadata"]["uid"], tree["metadata"].get("name", "")
        metadata = spec.setdefault("template", {}).setdefault("metadata", {})
        labels = metadata.setdefault("labels", {})
        for key, value in (
            ("job-name", name),
            ("controller-uid", uid),
            ("batch.kubernetes.io/job-name", name),
            ("batch.kubernetes.io/controller-uid", uid),
        ):
            labels.setdefault(key, value)
        selector = spec.setdefault("selector", {})
        selector.setdefault("matchLabels", {}).setdefault("batch.kubernetes.io/controller-uid", uid)


class SecretStrategy(RuleStrategy):
    """stringData is written into data."""

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Moves stringData."""
        super().prepare_for_create(tree, context)
        _string_data(tree)

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Moves stringData."""
        super().prepare_for_update(new, old, context)
        _string_data(new)


def _string_data(tree: Tree) -> None:
    given = tree.pop("stringData", None)
    if given:
        data = tree["data"] = dict(tree.get("data") or {})
        for key, value in given.items():
            data[key] = base64.b64encode(value.encode()).decode()


_RBAC = "rbac.authorization.k8s.io"
_OWN: dict[tuple[str, str], type[RuleStrategy]] = {
    ("", "Namespace"): NamespaceStrategy,
    ("", "Node"): NodeStrategy,
    ("", "Secret"): SecretStrategy,
    ("batch", "Job"): JobStrategy,
    ("coordination.k8s.io", "Lease"): CreateOnUpdateStrategy,
    ("", "Event"): CreateOnUpdateStrategy,
    ("", "Endpoints"): CreateOnUpdateStrategy,
    ("", "LimitRange"): CreateOnUpdateStrategy,
    ("", "Service"): CreateOnUpdateStrategy,
    (_RBAC, "Role"): CreateOnUpdateStrategy,
    (_RBAC, "RoleBinding"): CreateOnUpdateStrategy,
    (_RBAC, "ClusterRole"): CreateOnUpdateStrategy,
    (_RBAC, "ClusterRoleBinding"): CreateOnUpdateStrategy,
}


def own_strategy(kind: Kind[Any]) -> RuleStrategy | None:
    """The strategy of a kind of this file, or None."""
    found = _OWN.get((kind.group, kind.kind))
    return None if found is None else found(kind)
