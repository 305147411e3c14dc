"""The objects of a cluster at one moment, wherever they come from: the input of every read-only answer.

A snapshot says what is missing from it (a user may not list other namespaces, a dump holds only some kinds), so that
an answer can say how far it holds. Building one is the business of ``cli.sources``; nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from kubedra.api import coordination_v1, core_v1, resource_v1
from kubedra.base.clock import parse_time
from kubedra.base.features import FeatureGates

ObjectName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Unseen:
    """Objects that could not be read. ``namespace``: the only one that was read, or "" when none was."""

    plural: str
    why: str
    namespace: str = ""


@dataclass(frozen=True)
class Snapshot:
    """What was read, in the order of the source. ``where`` names the source for people."""

    where: str = ""
    now: datetime = field(default_factory=lambda: datetime.fromtimestamp(0, UTC))
    gates: FeatureGates = field(default_factory=FeatureGates)
    live: bool = False
    """Whether it comes from a running cluster (and not from a dump or a fleet file)."""
    embedded: bool = False
    """Whether the cluster is one of kubedra's own, whose scheduler refuses some fields."""
    pods: tuple[core_v1.Pod, ...] = ()
    nodes: tuple[core_v1.Node, ...] = ()
    namespaces: tuple[core_v1.Namespace, ...] = ()
    events: tuple[core_v1.Event, ...] = ()
    leases: tuple[coordination_v1.Lease, ...] = ()
    claims: tuple[resource_v1.ResourceClaim, ...] = ()
    templates: tuple[resource_v1.ResourceClaimTemplate, ...] = ()
    classes: tuple[resource_v1.DeviceClass, ...] = ()
    slices: tuple[resource_v1.ResourceSlice, ...] = ()
    rules: tuple[resource_v1.DeviceTaintRule, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    driver_logs: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """The last lines that a driver wrote about a node, where they could be reached: (node, driver) -> lines."""

    @cached_property
    def pods_by_name(self) -> dict[ObjectName, core_v1.Pod]:
        """Pods by namespace and name."""
        return {(p.metadata.namespace, p.metadata.name): p for p in self.pods}

    @cached_property
    def pods_by_uid(self) -> dict[str, core_v1.Pod]:
        """Pods by uid."""
        return {p.metadata.uid: p for p in self.pods if p.metadata.uid}

    @cached_property
    def claims_by_name(self) -> dict[ObjectName, resource_v1.ResourceClaim]:
        """Claims by namespace and name."""
        return {(c.metadata.namespace, c.metadata.name): c for c in self.claims}

    @cached_property
    def claims_by_key(self) -> dict[str, resource_v1.ResourceClaim]:
        """Claims by what the ledger calls them."""
        return {c.metadata.uid or f"{c.metadata.namespace}/{c.metadata.name}": c for c in self.claims}

    @cached_property
    def templates_by_name(self) -> dict[ObjectName, resource_v1.ResourceClaimTemplate]:
        """Claim templates by namespace and name."""
        return {(t.metadata.namespace, t.metadata.name): t for t in self.templates}

    def sees(self, plural: str, namespace: str = "") -> bool:
        """Whether all objects of a kind were read (of a namespace, when one is given)."""
        return not any(u.plural == plural and (not namespace or u.namespace != namespace) for u in self.unseen)

    def age(self, timestamp: str) -> str:
        """How long ago a time of the API is, as kubectl writes it; "" when that can't be told."""
        try:
            seconds = (self.now - parse_time(timestamp)).total_seconds()
        except ValueError:
            return ""
        return duration(seconds)


def duration(seconds: float) -> str:
    """A span in kubectl's short form: 45s, 12m, 3h, 5d."""
    total = max(int(seconds), 0)
    if total < 120:
        return f"{total}s"
    if total < 3 * 3600:
        return f"{total // 60}m"
    if total < 2 * 86400:
        return f"{total // 3600}h"
    return f"{total // 86400}d"
