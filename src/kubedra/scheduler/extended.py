"""Extended resources that DRA provides: `example.com/gpu: 2` in a container becomes a claim (KEP-5004).

A class serves an extended resource by naming it, or by its own name under `deviceclass.resource.kubernetes.io/`. On a
node that offers the resource itself (a device plugin) nothing changes; elsewhere the pod gets a claim that the
scheduler makes when the node is chosen. How containers become requests is `allocation.bridge`'s business.

Where upstream keeps using a class that lost the name, or finds none when the newest of several goes, here the newest
class that has the name now is the one (cluster-observed note 3).

Upstream: plugins/dynamicresources/extendeddynamicresources.go, the extended resource cache of dynamicresources.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubedra.allocation.bridge import CLAIM_ANNOTATION, IMPLICIT_PREFIX, BridgeClaim, bridge_claim, placeholder_claim
from kubedra.api.codec import to_tree
from kubedra.api.core_v1 import ContainerExtendedResourceRequest
from kubedra.api.resource_v1 import DeviceClass, ResourceClaim
from kubedra.scheduler.claim_writes import FINALIZER
from kubedra.scheduler.claims import ClaimStore
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo


@dataclass(slots=True)
class ExtendedState:
    """The extended resources of one pod during one attempt."""

    pod: PodInfo
    classes: dict[str, DeviceClass]
    """Extended resource to class."""
    stale: ResourceClaim | None
    """A claim of the pod left over from an attempt that failed: it must go first."""
    made: dict[frozenset[str], tuple[ResourceClaim, BridgeClaim]] = field(default_factory=dict)


class ExtendedResources:
    """Which class serves which extended resource, and the claims made for pods."""

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._classes: dict[str, DeviceClass] = {}
        self._named: dict[str, list[DeviceClass]] = {}
        self._of_pod: dict[str, dict[str, tuple[str, str]]] = {}

    # --- following the cluster ------------------------------------------------------------------------

    def update_class(self, old: DeviceClass | None, new: DeviceClass | None) -> frozenset[str]:
        """Follow a class; returns the extended resources that are served differently now."""
        class_ = new or old
        if class_ is None:
            return frozenset()
        name = class_.metadata.name
        before = self._classes.pop(name, None)
        changed = {IMPLICIT_PREFIX + name}
        if before is not None and before.spec.extended_resource_name:
            resource = before.spec.extended_resource_name
            self._named[resource] = [item for item in self._named[resource] if item.metadata.name != name]
            changed.add(resource)
        if new is not None:
            self._classes[name] = new
            if new.spec.extended_resource_name:
                named = self._named.setdefault(new.spec.extended_resource_name, [])
                named.append(new)
                named.sort(key=lambda item: item.metadata.name)
                named.sort(key=lambda item: item.metadata.creation_timestamp, reverse=True)
                changed.add(new.spec.extended_resource_name)
        return frozenset(changed)

    def observe(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Follow claims: remember which pods own one for extended resources."""
        claim = new or old
        if claim is None or claim.metadata.annotations.get(CLAIM_ANNOTATION) != "true":
            return
        metadata = claim.metadata
        for owner in metadata.owner_references:
            if owner.controller and owner.kind == "Pod":
                if new is not None:
                    self._of_pod.setdefault(owner.uid, {})[metadata.uid] = (metadata.namespace, metadata.name)
                elif owner.uid in self._of_pod:
                    self._of_pod[owner.uid].pop(metadata.uid, None)
                    if not self._of_pod[owner.uid]:
                        del self._of_pod[owner.uid]

    # --- asking ---------------------------------------------------------------------------------------

    def class_of(self, resource: str) -> str | None:
        """The class that serves an extended resource."""
        if not self._enabled:
            return None
        if resource.startswith(IMPLICIT_PREFIX):
            name = resource.removeprefix(IMPLICIT_PREFIX)
            return name if name in self._classes else None
        named = self._named.get(resource)
        return named[0].metadata.name if named else None

    def bridged(self, pod: PodInfo) -> frozenset[str]:
        """The extended resources of the pod that DRA may provide."""
        if len(pod.requests) <= 2 and not pod.requests.keys() - {"cpu", "memory"}:
            return frozenset()
        return frozenset(name for name, value in pod.requests.items() if value and self.class_of(name) is not None)

    def prepare(self, pod: PodInfo, store: ClaimStore) -> ExtendedState | None:
        """Look at the pod's extended resources before any node; None when DRA provides none of them."""
        names = self.bridged(pod)
        if not names:
            return None
        classes = {name: self._classes[found] for name in names if (found := self.class_of(name)) is not None}
        stale = None
        for name in self._of_pod.get(pod.uid, {}).values():
            claim = store.get(name)
            if claim is not None and not claim.metadata.deletion_timestamp:
                stale = claim
        return ExtendedState(pod, classes, stale)

    def claim_for(self, state: ExtendedState, node: NodeInfo) -> ResourceClaim | None:
        """The claim that the pod would need on this node; None when the node has all the resources itself."""
        needed = frozenset(name for name in state.classes if not node.allocatable.get(name))
        if not needed:
            return None
        made = state.made.get(needed)
        if made is None:
            bridge = bridge_claim(state.pod.pod, {name: state.classes[name] for name in needed})
            uid = f"extended-resources-of-{state.pod.uid}"
            made = state.made[needed] = (placeholder_claim(state.pod.pod, bridge, uid), bridge)
        return made[0]

    def mappings_for(self, state: ExtendedState, claim: ResourceClaim) -> tuple[ContainerExtendedResourceRequest, ...]:
        """Which container's resource is served by which request of a claim made here."""
        return next(bridge.mappings for made, bridge in state.made.values() if made is claim)


def creation_tree(claim: ResourceClaim) -> dict[str, Any]:
    """The claim as it is created: with a generated name, and the finalizer at once (a write saved)."""
    tree: dict[str, Any] = to_tree(claim)
    metadata = tree["metadata"]
    metadata.pop("name")
    metadata.pop("uid")
    metadata["finalizers"] = [FINALIZER]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": tree["spec"]}
