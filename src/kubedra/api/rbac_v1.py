"""Kubernetes 1.37, rbac/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from msgspec import Struct
from msgspec import field as _field

from kubedra.api import meta_v1


class AggregationRule(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    cluster_role_selectors: tuple[meta_v1.LabelSelector, ...] = ()


class ClusterRole(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    aggregation_rule: AggregationRule | None = None
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    rules: tuple[PolicyRule, ...] = ()


class RoleRef(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class ClusterRoleBinding(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    role_ref: RoleRef = RoleRef()
    subjects: tuple[Subject, ...] = ()


class PolicyRule(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_groups: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = _field(default=(), name="nonResourceURLs")
    resource_names: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


class Role(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    rules: tuple[PolicyRule, ...] = ()


class RoleBinding(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    role_ref: RoleRef = RoleRef()
    subjects: tuple[Subject, ...] = ()


class Subject(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    api_group: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
