"""Kubernetes 1.37, policy/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from msgspec import Struct

from kubedra.api import meta_v1


class Eviction(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    delete_options: meta_v1.DeleteOptions | None = None
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()


class PodDisruptionBudgetSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    max_unavailable: int | str | None = None
    min_available: int | str | None = None
    selector: meta_v1.LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    conditions: tuple[meta_v1.Condition, ...] = ()
    current_healthy: int | None = None
    desired_healthy: int | None = None
    disrupted_pods: dict[str, str] = {}
    disruptions_allowed: int | None = None
    expected_pods: int | None = None
    observed_generation: int | None = None


class PodDisruptionBudget(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
