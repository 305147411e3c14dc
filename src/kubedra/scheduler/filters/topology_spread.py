"""Hard topology spread constraints (whenUnsatisfiable: DoNotSchedule). Upstream: plugins/podtopologyspread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubedra.api import core_v1, meta_v1
from kubedra.scheduler.filters import node_affinity
from kubedra.scheduler.filters.pod_terms import matches_labels, with_label_keys
from kubedra.scheduler.filters.taint_toleration import tolerated
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import Rejection, rejection
from kubedra.scheduler.view import ClusterView

PLUGIN = "PodTopologySpread"
SKEWED = rejection(PLUGIN, "node(s) didn't match pod topology spread constraints")
MISSING_LABEL = rejection(
    PLUGIN, "node(s) didn't match pod topology spread constraints (missing required label)", unresolvable=True
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint with its selector made complete."""

    raw: core_v1.TopologySpreadConstraint
    selector: meta_v1.LabelSelector | None

    @property
    def key(self) -> str:
        """The label that names the domain."""
        return self.raw.topology_key

    def counts(self, node: NodeInfo, namespace: str) -> int:
        """How many pods of the node the constraint means."""
        return sum(
            1
            for pod in node.pods.values()
            if pod.namespace == namespace and not pod.deleting and matches_labels(self.selector, pod.labels)
        )

    def includes(self, pod: PodInfo, node: NodeInfo) -> bool:
        """Whether the node's domain takes part: by default only nodes that the pod's affinity selects."""
        if self.raw.node_affinity_policy != "Ignore" and not node_affinity.matches(pod, node):
            return False
        return self.raw.node_taints_policy != "Honor" or all(
            tolerated(taint, pod.spec.tolerations) for taint in node.hard_taints
        )


def constraints(pod: PodInfo, when: str) -> list[Constraint]:
    """The pod's constraints of one kind (`DoNotSchedule` or `ScheduleAnyway`)."""
    return [
        Constraint(raw, with_label_keys(raw.label_selector, pod.labels, raw.match_label_keys))
        for raw in pod.spec.topology_spread_constraints
        if (raw.when_unsatisfiable or "DoNotSchedule") == when
    ]


def prepare(pod: PodInfo, view: ClusterView) -> Callable[[NodeInfo], Rejection | None] | None:
    """Count matching pods per domain once; a node may not make its domain exceed the emptiest by more than maxSkew."""
    hard = constraints(pod, "DoNotSchedule")
    if not hard:
        return None
    counted: list[dict[str, int]] = [{} for _ in hard]
    for node in view.nodes.values():
        if not all(item.key in node.labels for item in hard):
            continue
        for item, domains in zip(hard, counted, strict=True):
            if item.includes(pod, node):
                value = node.labels[item.key]
                domains[value] = domains.get(value, 0) + item.counts(node, pod.namespace)
    lowest: list[int] = []
    for item, domains in zip(hard, counted, strict=True):
        enough = len(domains) >= (item.raw.min_domains or 1)
        lowest.append(min(domains.values(), default=0) if enough else 0)
    own = [int(matches_labels(item.selector, pod.labels)) for item in hard]

    def check(node: NodeInfo) -> Rejection | None:
        for item, domains, low, mine in zip(hard, counted, lowest, own, strict=True):
            value = node.labels.get(item.key)
            if value is None:
                return MISSING_LABEL
            if domains.get(value, 0) + mine - low > item.raw.max_skew:
                return SKEWED
        return None

    return check
