"""Kubernetes 1.37, authentication/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from msgspec import Struct

from kubedra.api import meta_v1


class BoundObjectReference(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class SelfSubjectReviewStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    user_info: UserInfo | None = None


class SelfSubjectReview(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    status: SelfSubjectReviewStatus = SelfSubjectReviewStatus()


class TokenRequestSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    attestations: dict[str, tuple[str, ...]] = {}
    audiences: tuple[str, ...] = ()
    bound_object_ref: BoundObjectReference | None = None
    expiration_seconds: int | None = None


class TokenRequestStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    expiration_timestamp: str = ""
    token: str = ""


class TokenRequest(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: TokenRequestSpec = TokenRequestSpec()
    status: TokenRequestStatus = TokenRequestStatus()


class TokenReviewSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    audiences: tuple[str, ...] = ()
    token: str = ""


class TokenReviewStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    audiences: tuple[str, ...] = ()
    authenticated: bool | None = None
    error: str = ""
    user: UserInfo | None = None


class TokenReview(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: TokenReviewSpec = TokenReviewSpec()
    status: TokenReviewStatus = TokenReviewStatus()


class UserInfo(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    extra: dict[str, tuple[str, ...]] = {}
    groups: tuple[str, ...] = ()
    uid: str = ""
    username: str = ""
