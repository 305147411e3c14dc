"""The strategy that most kinds have: canonical spelling, status kept from clients, and the rules of validation."""

from __future__ import annotations

from typing import Any

from kubedra import validation
from kubedra.api import canonical
from kubedra.api.fields import FieldError
from kubedra.api.kinds import Kind
from kubedra.server.registry.strategy import Strategy, StrategyContext

Tree = dict[str, Any]

# Kinds whose generation counts changes of the spec.
_WITH_GENERATION = frozenset(
    {
        ("", "Pod"),
        ("", "ReplicationController"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("networking.k8s.io", "Ingress"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("policy", "PodDisruptionBudget"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourceSlice"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("scheduling.k8s.io", "PodGroup"),
    }
)

# A node may say what it has when it registers.
_STATUS_ON_CREATE = frozenset({("", "Node")})


class RuleStrategy(Strategy):
    """Validates by `kubedra.validation`, wipes the status of new objects, spells values canonically."""

    def __init__(self, kind: Kind[Any]) -> None:
        self._kind = kind
        self.has_generation = (kind.group, kind.kind) in _WITH_GENERATION
        self._wipes_status = "status" in kind.subresources and (kind.group, kind.kind) not in _STATUS_ON_CREATE

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Respells values and forgets a status that the client sent."""
        canonical.normalise(self._kind.definition, tree)
        if self._wipes_status:
            tree.pop("status", None)

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Respells values."""
        canonical.normalise(self._kind.definition, new)

    def canonicalize(self, tree: Tree) -> None:
        """Drops empty members and adds those that are always printed."""
        canonical.canonicalize(self._kind.definition, tree)

    def validate_create(self, tree: Tree, context: StrategyContext) -> list[FieldError]:
        """All faults by the rules of the kind and of metadata."""
        return validation.validate_create(self._kind, tree, rule_context(context))

    def validate_update(self, new: Tree, old: Tree, context: StrategyContext) -> list[FieldError]:
        """All faults of a change by the rules of the kind and of metadata."""
        return validation.validate_update(self._kind, new, old, rule_context(context), context.subresource)

    def warnings(self, new: Tree, old: Tree | None, context: StrategyContext) -> list[str]:
        """What the rules of the kind warn of."""
        return validation.warnings(self._kind, new, old)


def rule_context(context: StrategyContext) -> validation.Context:
    """What validation may know of a request."""
    return validation.Context(features=context.features, namespace_labels=context.namespace_labels)
