"""Strategies of the kinds whose particularities are few: namespaces, nodes, workloads, and all that count generations.

Pods and resource.k8s.io have their own in `strategies`. Validation is that of `validation` for every kind.
Upstream counterpart: pkg/registry/*/*/strategy.go.
"""

from __future__ import annotations

from typing import Any

from kubedra.api.kinds import Kind
from kubedra.server.registry.strategy import Strategy, StrategyContext
from kubedra.server.registry.validating import ValidatingStrategy

Tree = dict[str, Any]


class GenerationStrategy(ValidatingStrategy):
    """Kinds whose generation counts changes of the spec."""

    has_generation = True


class CreateOnUpdateStrategy(ValidatingStrategy):
    """Kinds that a PUT may create."""

    allow_create_on_update = True


class NamespaceStrategy(ValidatingStrategy):
    """A namespace begins Active, with the finalizer that its controller removes."""

    keeps_status_on_create = True

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Phase Active; the `kubernetes` finalizer beside those that were asked for."""
        tree["status"] = {"phase": "Active"}
        spec = tree.setdefault("spec", {})
        finalizers = spec.get("finalizers") or []
        spec["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]
        labels = tree["metadata"].setdefault("labels", {})
        labels["kubernetes.io/metadata.name"] = tree["metadata"].get("name", "")

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Only `finalize` may change the finalizers of the spec."""
        if context.subresource != "finalize":
            new.pop("spec", None)
            if "spec" in old:
                new["spec"] = old["spec"]
        labels = new["metadata"].setdefault("labels", {})
        labels["kubernetes.io/metadata.name"] = new["metadata"]["name"]


class NodeStrategy(ValidatingStrategy):
    """Nodes may bring their status along: kubelets register with it."""

    keeps_status_on_create = True


class DeploymentStrategy(GenerationStrategy):
    """Status updates of a deployment leave its labels alone."""


class JobStrategy(GenerationStrategy):
    """A job gets the selector and labels that tie its pods to it, unless it brings its own."""

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Generates selector and template labels from the uid."""
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


class SecretStrategy(ValidatingStrategy):
    """stringData is written into data."""

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Moves stringData."""
        _string_data(tree)

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Moves stringData."""
        _string_data(new)


def _string_data(tree: Tree) -> None:
    import base64

    given = tree.pop("stringData", None)
    if given:
        data = tree.setdefault("data", {})
        for key, value in given.items():
            data[key] = base64.b64encode(value.encode()).decode()


_GENERATION = {
    ("apps", "DaemonSet"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("", "ReplicationController"),
    ("policy", "PodDisruptionBudget"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("scheduling.k8s.io", "PodGroup"),
    ("scheduling.k8s.io", "Workload"),
    ("scheduling.k8s.io", "CompositePodGroup"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
}
_CREATE_ON_UPDATE = {
    ("coordination.k8s.io", "Lease"),
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("", "LimitRange"),
    ("", "Service"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
}
_OWN: dict[tuple[str, str], type[Strategy]] = {
    ("", "Namespace"): NamespaceStrategy,
    ("", "Node"): NodeStrategy,
    ("", "Secret"): SecretStrategy,
    ("apps", "Deployment"): DeploymentStrategy,
    ("batch", "Job"): JobStrategy,
}


def strategy_for(kind: Kind[Any]) -> Strategy:
    """The strategy of a kind that has none in `strategies`."""
    key = (kind.group, kind.kind)
    own = _OWN.get(key)
    if own is not None:
        return own()
    if key in _GENERATION:
        return GenerationStrategy()
    if key in _CREATE_ON_UPDATE:
        return CreateOnUpdateStrategy()
    return ValidatingStrategy()
