"""Kubernetes 1.37, scheduling/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from msgspec import Struct

from kubedra.api import meta_v1


class PriorityClass(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    description: str = ""
    global_default: bool | None = None
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    preemption_policy: str = ""
    value: int | None = None
