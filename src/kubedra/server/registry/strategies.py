"""Which strategy a kind has. The verbs ask here; a kind that is not named gets the general one."""

from __future__ import annotations

from functools import cache
from typing import Any

from kubedra.api.kinds import Kind
from kubedra.server.registry.claims import ClaimStrategy, ClaimTemplateStrategy
from kubedra.server.registry.cluster import JobStrategy, NamespaceStrategy, NodeStrategy, SecretStrategy
from kubedra.server.registry.devices import DeviceStrategy, TaintRuleStrategy
from kubedra.server.registry.pods import PodGroupStrategy, PodStrategy
from kubedra.server.registry.rules import RuleStrategy
from kubedra.server.registry.strategy import Strategy

_RESOURCE = "resource.k8s.io"

_BY_KIND: dict[tuple[str, str], type[RuleStrategy]] = {
    ("", "Namespace"): NamespaceStrategy,
    ("", "Node"): NodeStrategy,
    ("", "Pod"): PodStrategy,
    ("", "Secret"): SecretStrategy,
    ("batch", "Job"): JobStrategy,
    ("scheduling.k8s.io", "PodGroup"): PodGroupStrategy,
    (_RESOURCE, "DeviceClass"): DeviceStrategy,
    (_RESOURCE, "DeviceTaintRule"): TaintRuleStrategy,
    (_RESOURCE, "ResourceClaim"): ClaimStrategy,
    (_RESOURCE, "ResourceClaimTemplate"): ClaimTemplateStrategy,
    (_RESOURCE, "ResourcePoolStatusRequest"): DeviceStrategy,
    (_RESOURCE, "ResourceSlice"): DeviceStrategy,
}


@cache
def strategy_for(kind: Kind[Any]) -> Strategy:
    """The strategy of a kind; `kind` is the storage version."""
    return _BY_KIND.get((kind.group, kind.kind), RuleStrategy)(kind)
