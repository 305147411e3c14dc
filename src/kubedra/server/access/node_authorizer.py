"""What the identity of one node may do beyond the rules of `system:node`: what its pods need, and its own slices.

Upstream counterpart: plugin/pkg/auth/authorizer/node. The relations are read from the store when they are asked for
instead of being kept as a graph: one agent asks seldom, and there is no second truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubedra.base.selectors import SelectorError, parse_field_selector
from kubedra.server.access.users import Attributes, Decision
from kubedra.server.store import Key, Store

Tree = dict[str, Any]
_ALLOWED = Decision(True)
CLAIMS, SLICES = "resourceclaims", "resourceslices"
_INDIVIDUAL = Decision(False, "can only get individual resources of this type")


def authorize_node(store: Store, node: str, attributes: Attributes) -> Decision | None:
    """The decision about things that depend on the node; None leaves it to the rules."""
    resource, group, verb = attributes.resource, attributes.group, attributes.verb
    if group == "resource.k8s.io" and resource == SLICES:
        return _slices(store, node, attributes)
    related = {("resource.k8s.io", CLAIMS): "claims", ("", "secrets"): "secrets", ("", "configmaps"): "configmaps"}
    kind = related.get((group, resource))
    if kind is None:
        return None
    if attributes.subresource or verb not in ("get", "list", "watch"):
        return Decision(False)
    if verb != "get":
        if kind == "claims":
            return _INDIVIDUAL
        name = _exact(attributes.field_selector, "metadata.name")
        if not name:
            return Decision(False, "can only list/watch single objects of this type by name")
        attributes = attributes._replace(name=name)
    for pod in _pods_on(store, node, attributes.namespace):
        if attributes.name in _references(pod, kind):
            return _ALLOWED
    return _unrelated(node)


def _unrelated(node: str) -> Decision:
    return Decision(False, f"no relationship found between node '{node}' and this object")


def _slices(store: Store, node: str, attributes: Attributes) -> Decision:
    verb = attributes.verb
    if verb == "create":
        return _ALLOWED
    if verb in ("list", "watch", "deletecollection"):
        if _exact(attributes.field_selector, "spec.nodeName") == node:
            return _ALLOWED
        return Decision(False, "can only list/watch/deletecollection resourceslices with nodeName field selector")
    record = store.get(Key("resourceslices.resource.k8s.io", "", attributes.name))
    if record is not None and (record.shared_tree().get("spec") or {}).get("nodeName") == node:
        return _ALLOWED
    return _unrelated(node)


def _exact(selector: str, path: str) -> str:
    try:
        return parse_field_selector(selector).exact(path) or ""
    except SelectorError:
        return ""


def _pods_on(store: Store, node: str, namespace: str) -> Iterator[Tree]:
    for record in store.listing("pods", namespace):
        pod = record.shared_tree()
        if (pod.get("spec") or {}).get("nodeName") == node:
            yield pod


def _references(pod: Tree, kind: str) -> set[str]:
    """Names of the claims, secrets or config maps that a pod needs."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    found: set[str] = set()
    if kind == "claims":
        for entry in (*(spec.get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ())):
            found.add(entry.get("resourceClaimName") or "")
        found.add((status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName") or "")
        for entry in status.get("nodeAllocatableResourceClaimStatuses") or ():
            found.add(entry.get("resourceClaimName") or "")
        return found - {""}
    volume_member, name_member = ("secret", "secretName") if kind == "secrets" else ("configMap", "name")
    env_member, key_member = ("secretRef", "secretKeyRef") if kind == "secrets" else ("configMapRef", "configMapKeyRef")
    for volume in spec.get("volumes") or ():
        found.add((volume.get(volume_member) or {}).get(name_member) or "")
        for source in (volume.get("projected") or {}).get("sources") or ():
            found.add((source.get(volume_member) or {}).get("name") or "")
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for source in container.get("envFrom") or ():
            found.add((source.get(env_member) or {}).get("name") or "")
        for variable in container.get("env") or ():
            found.add(((variable.get("valueFrom") or {}).get(key_member) or {}).get("name") or "")
    if kind == "secrets":
        found |= {entry.get("name", "") for entry in spec.get("imagePullSecrets") or ()}
    return found - {""}
