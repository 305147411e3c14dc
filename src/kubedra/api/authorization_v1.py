"""Kubernetes 1.37, authorization/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from msgspec import Struct
from msgspec import field as _field

from kubedra.api import meta_v1


class FieldSelectorAttributes(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    raw_selector: str = ""
    requirements: tuple[meta_v1.FieldSelectorRequirement, ...] = ()


class LabelSelectorAttributes(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    raw_selector: str = ""
    requirements: tuple[meta_v1.LabelSelectorRequirement, ...] = ()


class NonResourceAttributes(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    path: str = ""
    verb: str = ""


class NonResourceRule(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    non_resource_urls: tuple[str, ...] = _field(default=(), name="nonResourceURLs")
    verbs: tuple[str, ...] = ()


class ResourceAttributes(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    field_selector: FieldSelectorAttributes | None = None
    group: str = ""
    label_selector: LabelSelectorAttributes | None = None
    name: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    verb: str = ""
    version: str = ""


class ResourceRule(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_groups: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


class SelfSubjectAccessReviewSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    non_resource_attributes: NonResourceAttributes | None = None
    resource_attributes: ResourceAttributes | None = None


class SubjectAccessReviewStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    allowed: bool = False
    denied: bool | None = None
    evaluation_error: str = ""
    reason: str = ""


class SelfSubjectAccessReview(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: SelfSubjectAccessReviewSpec = SelfSubjectAccessReviewSpec()
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()


class SelfSubjectRulesReviewSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    namespace: str = ""


class SubjectRulesReviewStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    evaluation_error: str = ""
    incomplete: bool = False
    non_resource_rules: tuple[NonResourceRule, ...] = ()
    resource_rules: tuple[ResourceRule, ...] = ()


class SelfSubjectRulesReview(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: SelfSubjectRulesReviewSpec = SelfSubjectRulesReviewSpec()
    status: SubjectRulesReviewStatus = SubjectRulesReviewStatus()


class SubjectAccessReviewSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    extra: dict[str, tuple[str, ...]] = {}
    groups: tuple[str, ...] = ()
    non_resource_attributes: NonResourceAttributes | None = None
    resource_attributes: ResourceAttributes | None = None
    uid: str = ""
    user: str = ""


class SubjectAccessReview(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: SubjectAccessReviewSpec = SubjectAccessReviewSpec()
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()
