"""Kinds: what the server serves and clients ask for, from one table.

``Kind`` says where the objects of a kind live and which struct reads them; the constants below are the kinds that our
own code reads. Every other built-in kind is in ``ALL`` with plain trees (``dict``) as its type.
The table is written by ``tools/generate_api.py``.
"""

from __future__ import annotations

import importlib
from functools import cached_property
from importlib import resources
from typing import Any, Generic, TypeVar, cast

import msgspec

from kubedra.api import (
    apps_v1,
    batch_v1,
    coordination_v1,
    core_v1,
    events_v1,
    policy_v1,
    rbac_v1,
    resource_v1,
    resource_v1alpha3,
    scheduling_v1,
    scheduling_v1beta1,
)

T = TypeVar("T")
Tree = dict[str, Any]


class Subresource(msgspec.Struct, frozen=True):
    """A subresource of a kind: the kind of its body and the verbs it takes."""

    group: str
    version: str
    kind: str
    verbs: tuple[str, ...] = ()


class _Row(msgspec.Struct, frozen=True, rename="camel"):
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: tuple[str, ...]
    definition: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: dict[str, Subresource] = {}
    module: str = ""


class Kind(Generic[T]):
    """One kind in one version; identical objects for the same group, version and kind.

    ``type`` is the struct class that decodes its objects, or ``dict`` for kinds we only carry.
    """

    def __init__(self, row: _Row) -> None:
        self.group = row.group
        self.version = row.version
        self.kind = row.kind
        self.plural = row.plural
        self.singular = row.kind.lower()
        self.namespaced = row.namespaced
        self.verbs = row.verbs
        self.definition = row.definition
        self.short_names = row.short_names
        self.categories = row.categories
        self.subresources = row.subresources
        self.api_version = f"{row.group}/{row.version}" if row.group else row.version
        self.group_resource = f"{row.plural}.{row.group}" if row.group else row.plural
        self.root = f"/apis/{self.api_version}" if row.group else f"/api/{self.api_version}"
        self._module = row.module

    @cached_property
    def type(self) -> type[T]:
        """The class that objects of this kind decode to."""
        if not self._module:
            return cast("type[T]", dict)
        module = importlib.import_module(f"kubedra.api.{self._module}")
        return cast("type[T]", getattr(module, self.kind))

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """URL path of a collection, an object or a subresource; no namespace means all namespaces."""
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def __repr__(self) -> str:
        return f"Kind({self.api_version} {self.kind})"


def _load() -> tuple[Kind[Any], ...]:
    data = resources.files("kubedra.api").joinpath("kinds_data.json").read_bytes()
    return tuple(Kind(row) for row in msgspec.json.decode(data, type=tuple[_Row, ...]))


ALL: tuple[Kind[Any], ...] = _load()
_BY_KIND = {(k.group, k.version, k.kind): k for k in ALL}
_BY_RESOURCE = {(k.group, k.version, k.plural): k for k in ALL}


def lookup(group: str, version: str, kind: str) -> Kind[Any] | None:
    """The kind of that group, version and name, or None."""
    return _BY_KIND.get((group, version, kind))


def by_resource(group: str, version: str, plural: str) -> Kind[Any] | None:
    """The kind served under that plural, or None."""
    return _BY_RESOURCE.get((group, version, plural))


def by_api_version(api_version: str, kind: str) -> Kind[Any] | None:
    """The kind that an object's ``apiVersion`` and ``kind`` name, or None."""
    group, _, version = api_version.rpartition("/")
    return _BY_KIND.get((group, version, kind))


def _kind(group: str, version: str, kind: str) -> Any:
    return _BY_KIND[(group, version, kind)]


POD: Kind[core_v1.Pod] = _kind("", "v1", "Pod")
NODE: Kind[core_v1.Node] = _kind("", "v1", "Node")
NAMESPACE: Kind[core_v1.Namespace] = _kind("", "v1", "Namespace")
CORE_EVENT: Kind[core_v1.Event] = _kind("", "v1", "Event")
CONFIG_MAP: Kind[core_v1.ConfigMap] = _kind("", "v1", "ConfigMap")
SECRET: Kind[core_v1.Secret] = _kind("", "v1", "Secret")
SERVICE_ACCOUNT: Kind[core_v1.ServiceAccount] = _kind("", "v1", "ServiceAccount")
RESOURCE_QUOTA: Kind[core_v1.ResourceQuota] = _kind("", "v1", "ResourceQuota")
PERSISTENT_VOLUME_CLAIM: Kind[core_v1.PersistentVolumeClaim] = _kind("", "v1", "PersistentVolumeClaim")
DEPLOYMENT: Kind[apps_v1.Deployment] = _kind("apps", "v1", "Deployment")
REPLICA_SET: Kind[apps_v1.ReplicaSet] = _kind("apps", "v1", "ReplicaSet")
STATEFUL_SET: Kind[apps_v1.StatefulSet] = _kind("apps", "v1", "StatefulSet")
DAEMON_SET: Kind[apps_v1.DaemonSet] = _kind("apps", "v1", "DaemonSet")
CONTROLLER_REVISION: Kind[apps_v1.ControllerRevision] = _kind("apps", "v1", "ControllerRevision")
JOB: Kind[batch_v1.Job] = _kind("batch", "v1", "Job")
LEASE: Kind[coordination_v1.Lease] = _kind("coordination.k8s.io", "v1", "Lease")
EVENT: Kind[events_v1.Event] = _kind("events.k8s.io", "v1", "Event")
POD_DISRUPTION_BUDGET: Kind[policy_v1.PodDisruptionBudget] = _kind("policy", "v1", "PodDisruptionBudget")
PRIORITY_CLASS: Kind[scheduling_v1.PriorityClass] = _kind("scheduling.k8s.io", "v1", "PriorityClass")
POD_GROUP: Kind[scheduling_v1beta1.PodGroup] = _kind("scheduling.k8s.io", "v1beta1", "PodGroup")
ROLE: Kind[rbac_v1.Role] = _kind("rbac.authorization.k8s.io", "v1", "Role")
ROLE_BINDING: Kind[rbac_v1.RoleBinding] = _kind("rbac.authorization.k8s.io", "v1", "RoleBinding")
CLUSTER_ROLE: Kind[rbac_v1.ClusterRole] = _kind("rbac.authorization.k8s.io", "v1", "ClusterRole")
CLUSTER_ROLE_BINDING: Kind[rbac_v1.ClusterRoleBinding] = _kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")
RESOURCE_CLAIM: Kind[resource_v1.ResourceClaim] = _kind("resource.k8s.io", "v1", "ResourceClaim")
RESOURCE_CLAIM_TEMPLATE: Kind[resource_v1.ResourceClaimTemplate] = _kind(
    "resource.k8s.io", "v1", "ResourceClaimTemplate"
)
RESOURCE_SLICE: Kind[resource_v1.ResourceSlice] = _kind("resource.k8s.io", "v1", "ResourceSlice")
DEVICE_CLASS: Kind[resource_v1.DeviceClass] = _kind("resource.k8s.io", "v1", "DeviceClass")
DEVICE_TAINT_RULE: Kind[resource_v1.DeviceTaintRule] = _kind("resource.k8s.io", "v1", "DeviceTaintRule")
RESOURCE_POOL_STATUS_REQUEST: Kind[resource_v1alpha3.ResourcePoolStatusRequest] = _kind(
    "resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest"
)
