"""Strategies of ResourceClaim and ResourceClaimTemplate: admin access, who may write which status, released devices.

Upstream counterpart: pkg/registry/resource/resourceclaim/strategy.go and pkg/registry/resource/utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubedra.api import fields
from kubedra.api.canonical import same_meaning
from kubedra.api.fields import FieldError
from kubedra.server.access.users import NODE_NAME_EXTRA, Attributes
from kubedra.server.registry.dropping import drop_from_claim_spec, drop_from_claim_status
from kubedra.server.registry.rules import RuleStrategy
from kubedra.server.registry.strategy import StrategyContext
from kubedra.validation.resource_claim_status import device_key, results

Tree = dict[str, Any]

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_ADMIN_FAULT = (
    "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
)
_SERVICE_ACCOUNT = "system:serviceaccount:"
_GROUP = "resource.k8s.io"
_PLURAL = "resourceclaims"


class ClaimStrategy(RuleStrategy):
    """ResourceClaim: an immutable spec and a status that several writers share."""

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Drops fields of disabled features."""
        drop_from_claim_spec(tree.get("spec") or {}, None, context.features)

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Drops fields of disabled features; a status update also forgets devices that it gives back."""
        if context.subresource != "status":
            drop_from_claim_spec(new.get("spec") or {}, old.get("spec"), context.features)
            return
        status = new.get("status")
        if isinstance(status, dict):
            drop_from_claim_status(status, old, context.features)
            _forget_released(status, old.get("status") or {})

    def validate_create(self, tree: Tree, context: StrategyContext) -> list[FieldError]:
        """The rules of claims, and whether the namespace allows admin access."""
        errors = admin_access_faults(tree.get("spec") or {}, context)
        return errors + super().validate_create(tree, context)

    def validate_update(self, new: Tree, old: Tree, context: StrategyContext) -> list[FieldError]:
        """The rules of claims; for the status also admin access and who may change which part."""
        errors = super().validate_update(new, old, context)
        if context.subresource == "status":
            errors.extend(_status_admin_faults(new, old, context))
            errors.extend(_permission_faults(new, old, context))
        return errors


class ClaimTemplateStrategy(RuleStrategy):
    """ResourceClaimTemplate: checked like the claims that will be made from it."""

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Drops fields of disabled features."""
        drop_from_claim_spec(_inner_spec(tree), None, context.features)

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Drops fields of disabled features that the stored template did not use."""
        drop_from_claim_spec(_inner_spec(new), _inner_spec(old), context.features)

    def validate_create(self, tree: Tree, context: StrategyContext) -> list[FieldError]:
        """The rules of templates, and whether the namespace allows admin access."""
        return admin_access_faults(_inner_spec(tree), context) + super().validate_create(tree, context)


def admin_access_faults(spec: Tree, context: StrategyContext) -> list[FieldError]:
    """Refuse admin access in a namespace that is not marked for it; the first such request is named."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    for index, request in enumerate(requests):
        if ((request or {}).get("exactly") or {}).get("adminAccess"):
            # Upstream names this path in templates, too.
            return _namespace_fault(f"spec.devices.requests[{index}].adminAccess", context)
    return []


def _status_admin_faults(new: Tree, old: Tree, context: StrategyContext) -> list[FieldError]:
    before = results(old.get("status") or {})
    if any(result.get("adminAccess") for result in before):
        return []
    for index, result in enumerate(results(new.get("status") or {})):
        if result.get("adminAccess"):
            return _namespace_fault(f"status.allocation.devices.results[{index}].adminAccess", context)
    return []


def _namespace_fault(path: str, context: StrategyContext) -> list[FieldError]:
    labels = context.namespace_labels(context.namespace)
    if labels is None:
        text = f'could not retrieve namespace to verify admin access: namespaces "{context.namespace}" not found'
        return [fields.internal(path, text)]
    return [] if labels.get(ADMIN_LABEL) == "true" else [fields.forbidden(path, _ADMIN_FAULT)]


def _inner_spec(tree: Tree) -> Tree:
    spec = (tree.get("spec") or {}).get("spec")
    return spec if isinstance(spec, dict) else {}


def _forget_released(status: Tree, before: Tree) -> None:
    """Remove what drivers said about devices that are no longer allocated."""
    devices = status.get("devices")
    if not devices:
        return
    released = {device_key(result) for result in results(before)} - {device_key(result) for result in results(status)}
    if released:
        kept = [device for device in devices if device_key(device) not in released]
        if kept:
            status["devices"] = kept
        else:
            del status["devices"]


def _permission_faults(new: Tree, old: Tree, context: StrategyContext) -> Iterable[FieldError]:
    if not context.features.enabled("DRAResourceClaimGranularStatusAuthorization"):
        return
    status, before = new.get("status") or {}, old.get("status") or {}
    verb = "patch" if context.operation == "patch" else "update"
    if not all(same_meaning(status.get(name), before.get(name)) for name in ("allocation", "reservedFor")):
        fault = _binding_fault(verb, context)
        if fault is not None:
            yield fault
    if status.get("allocation") is not None and not same_meaning(status.get("devices"), before.get("devices")):
        for driver in sorted(_changed_drivers(status, before)):
            fault = _driver_fault(driver, verb, status["allocation"], context)
            if fault is not None:
                yield fault


def _binding_fault(verb: str, context: StrategyContext) -> FieldError | None:
    asked = Attributes(verb=verb, group=_GROUP, resource=_PLURAL, subresource="binding")
    decision = context.authorize(asked)
    if decision.allowed:
        return None
    refusal = f"{_PLURAL}.{_GROUP} is forbidden: {asked.refusal(context.user, decision.reason)}"
    text = (
        "changing status.allocation or status.reservedFor requires "
        f'resource="{_PLURAL}/binding", verb="{verb}" permission: {refusal}'
    )
    return fields.forbidden("status.allocation", text)


def _driver_fault(driver: str, verb: str, allocation: Tree, context: StrategyContext) -> FieldError | None:
    prefixes = ["arbitrary-node:"]
    node = _node_of_user(context)
    if node and node == _single_node(allocation):
        prefixes.insert(0, "associated-node:")
    verbs = [prefix + verb for prefix in prefixes]
    refusals: list[str] = []
    for asked_verb in verbs:
        asked = Attributes(
            verb=asked_verb,
            group=_GROUP,
            resource=_PLURAL,
            subresource="driver",
            namespace=context.namespace,
            name=driver,
        )
        decision = context.authorize(asked)
        if decision.allowed:
            return None
        refusal = asked.refusal(context.user, decision.reason)
        refusals.append(f'{_PLURAL}.{_GROUP} "{driver}" is forbidden: {refusal}')
    shown = refusals[0] if len(refusals) == 1 else "[" + ", ".join(refusals) + "]"
    text = (
        f'changing status.devices requires resource="{_PLURAL}/driver", verb="[{" ".join(verbs)}]" permission: {shown}'
    )
    return fields.forbidden("status.devices", text)


def _node_of_user(context: StrategyContext) -> str:
    """Name the node that a service account's token is bound to."""
    user = context.user
    nodes = user.extra.get(NODE_NAME_EXTRA) or ()
    return nodes[0] if user.name.startswith(_SERVICE_ACCOUNT) and len(nodes) == 1 else ""


def _single_node(allocation: Tree) -> str:
    """Name the node that an allocation is bound to, if its selector says nothing else."""
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if len(terms) != 1 or terms[0].get("matchExpressions"):
        return ""
    requirements = terms[0].get("matchFields") or []
    if len(requirements) != 1:
        return ""
    only = requirements[0]
    values = only.get("values") or []
    bound = only.get("key") == "metadata.name" and only.get("operator") == "In" and len(values) == 1
    return str(values[0]) if bound else ""


def _changed_drivers(status: Tree, before: Tree) -> set[str]:
    """Name the drivers whose device statuses differ."""
    new = {device_key(device): device for device in status.get("devices") or ()}
    old = {device_key(device): device for device in before.get("devices") or ()}
    return {key[0] for key in {*new, *old} if not same_meaning(new.get(key), old.get(key))}
