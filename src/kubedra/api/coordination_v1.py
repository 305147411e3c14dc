"""Kubernetes 1.37, coordination/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from msgspec import Struct

from kubedra.api import meta_v1


class LeaseSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    acquire_time: str = ""
    holder_identity: str = ""
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    preferred_holder: str = ""
    renew_time: str = ""
    strategy: str = ""


class Lease(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
