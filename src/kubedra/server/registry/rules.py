"""The strategy that most kinds have: canonical spelling and the rules of validation."""

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
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("discovery.k8s.io", "EndpointSlice"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("networking.k8s.io", "Ingress"),
        ("networking.k8s.io", "IngressClass"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("policy", "PodDisruptionBudget"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourceSlice"),
        ("scheduling.k8s.io", "CompositePodGroup"),
        ("scheduling.k8s.io", "PodGroup"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("scheduling.k8s.io", "Workload"),
    }
)

# Kinds that a PUT may create.
_CREATE_ON_UPDATE = frozenset(
    {
        ("", "Endpoints"),
        ("", "Event"),
        ("", "LimitRange"),
        ("", "Service"),
        ("coordination.k8s.io", "Lease"),
        ("events.k8s.io", "Event"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
    }
)


class RuleStrategy(Strategy):
    """Validates by `kubedra.validation` and spells valid objects canonically."""

    # Whether a new object may bring its status along.
    keeps_status_on_create = False

    def __init__(self, kind: Kind[Any]) -> None:
        self._kind = kind
        self.has_generation = (kind.group, kind.kind) in _WITH_GENERATION
        self.allow_create_on_update = (kind.group, kind.kind) in _CREATE_ON_UPDATE

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
