"""The strategy of pods: a new pod is pending, has its class of service, and says why it is not scheduled.

Upstream counterpart: pkg/registry/core/pod/strategy.go and component-helpers' qos.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubedra.base.quantity import Quantity, QuantityError
from kubedra.server.registry.rules import RuleStrategy
from kubedra.server.registry.strategy import StrategyContext

Tree = dict[str, Any]

_COMPUTE = ("cpu", "memory")


class PodStrategy(RuleStrategy):
    """Pods."""

    keeps_status_on_create = True

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """A fresh status, whatever the client sent."""
        spec = tree.setdefault("spec", {})
        status: Tree = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if spec.get("schedulingGates"):
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastTransitionTime": context.now,
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]
        tree["status"] = status

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """What a subresource may not change stays; what a status leaves out of what is fixed comes back."""
        if context.subresource == "status":
            self._prepare_status(new, old, context)
        elif context.subresource in ("ephemeralcontainers", "resize"):
            self._prepare_part(new, old, context.subresource)

    def _prepare_status(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        status, before = new.get("status"), old.get("status") or {}
        if not isinstance(status, dict):
            status = new["status"] = {}
        if not status.get("qosClass") and before.get("qosClass"):
            status["qosClass"] = before["qosClass"]
        features = context.features
        if not features.enabled("DRAExtendedResource") and before.get("extendedResourceClaimStatus") is None:
            status.pop("extendedResourceClaimStatus", None)
        name = "nodeAllocatableResourceClaimStatuses"
        if not features.enabled("DRANodeAllocatableResources") and not before.get(name):
            status.pop(name, None)
        if not features.enabled("ResourceHealthStatus") and not any(
            entry.get("allocatedResourcesStatus") for entry in _container_statuses(before)
        ):
            for entry in _container_statuses(status):
                entry.pop("allocatedResourcesStatus", None)
        owners = old["metadata"].get("ownerReferences")
        if owners is None:
            new["metadata"].pop("ownerReferences", None)
        else:
            new["metadata"]["ownerReferences"] = owners

    def _prepare_part(self, new: Tree, old: Tree, subresource: str) -> None:
        """Take only the part of the spec that a subresource is for."""
        given = new.get("spec") or {}
        spec = dict(old.get("spec") or {})
        if subresource == "ephemeralcontainers":
            spec.pop("ephemeralContainers", None)
            if given.get("ephemeralContainers"):
                spec["ephemeralContainers"] = given["ephemeralContainers"]
        else:
            for name in ("containers", "initContainers"):
                if spec.get(name):
                    spec[name] = _resized(spec[name], given.get(name) or [])
        new["spec"] = spec
        metadata = dict(old["metadata"])
        for name in ("managedFields", "generation"):
            if name in new["metadata"]:
                metadata[name] = new["metadata"][name]
        metadata.pop("resourceVersion", None)
        new["metadata"].clear()
        new["metadata"].update(metadata)
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]


def _resized(stored: list[Tree], given: list[Tree]) -> list[Tree]:
    """Take resources and resize policies from the containers of the same names."""
    by_name = {container.get("name"): container for container in given}
    result = []
    for container in stored:
        wanted = by_name.get(container.get("name"))
        if wanted is None:
            result.append(container)
            continue
        changed = dict(container)
        for name in ("resources", "resizePolicy"):
            changed.pop(name, None)
            if wanted.get(name) is not None:
                changed[name] = wanted[name]
        result.append(changed)
    return result


def quality_of_service(spec: Tree) -> str:
    """Name the class of service of a pod: by its containers, or by the pod's own resources where it has some."""
    own = spec.get("resources")
    owners = [own] if own and (own.get("requests") or own.get("limits")) else list(_resources(spec))
    requested = limited = False
    guaranteed = True
    totals: dict[str, dict[str, Quantity]] = {"requests": {}, "limits": {}}
    for resources in owners:
        for part, total in totals.items():
            for name, amount in _amounts(resources, part):
                total[name] = total[name] + amount if name in total else amount
        limits = {name for name, _ in _amounts(resources, "limits")}
        requested = requested or any(True for _ in _amounts(resources, "requests"))
        limited = limited or bool(limits)
        guaranteed = guaranteed and limits == set(_COMPUTE)
    if not requested and not limited:
        return "BestEffort"
    if guaranteed and totals["requests"] == totals["limits"]:
        return "Guaranteed"
    return "Burstable"


def _resources(spec: Tree) -> Iterator[Tree]:
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            yield container.get("resources") or {}


def _amounts(resources: Tree, part: str) -> Iterator[tuple[str, Quantity]]:
    amounts = resources.get(part) or {}
    for name in _COMPUTE:
        if name in amounts:
            try:
                amount = Quantity.parse(amounts[name])
            except QuantityError:
                continue
            if amount.sign > 0:
                yield name, amount


def _container_statuses(status: Tree) -> Iterator[Tree]:
    for name in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        yield from status.get(name) or ()


class PodGroupStrategy(RuleStrategy):
    """Pod groups: claims of a group are dropped while their feature is off."""

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Drops claims of a disabled feature."""
        self._drop(tree, {}, context)

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Drops claims of a disabled feature that the stored group did not use."""
        self._drop(new, old, context)

    @staticmethod
    def _drop(tree: Tree, old: Tree, context: StrategyContext) -> None:
        if context.features.enabled("DRAWorkloadResourceClaims"):
            return
        for part, name in (("spec", "resourceClaims"), ("status", "resourceClaimStatuses")):
            if not (old.get(part) or {}).get(name) and isinstance(tree.get(part), dict):
                tree[part].pop(name, None)
