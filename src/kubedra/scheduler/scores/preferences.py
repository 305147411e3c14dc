"""What the pod would like of its node: preferred node affinity, and no PreferNoSchedule taints it does not tolerate.

Upstream: plugins/nodeaffinity, plugins/tainttoleration (scores).
"""

from __future__ import annotations

from collections.abc import Iterable

from kubedra.api import core_v1
from kubedra.base.node_selectors import matches_term
from kubedra.scheduler.filters.taint_toleration import tolerated
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.scores import WEIGHTS, normalize


def preferred_terms(pod: PodInfo) -> tuple[core_v1.PreferredSchedulingTerm, ...]:
    """The pod's preferences among nodes."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return ()
    return affinity.node_affinity.preferred_during_scheduling_ignored_during_execution


def score(pod: PodInfo, nodes: Iterable[NodeInfo]) -> dict[str, int]:
    """Both scores of all nodes, weighed."""
    nodes = list(nodes)
    terms = preferred_terms(pod)
    liked = {node.name: _liked(terms, node) for node in nodes} if terms else dict.fromkeys((n.name for n in nodes), 0)
    disliked = {node.name: _untolerated(pod, node) for node in nodes}
    liked, disliked = normalize(liked), normalize(disliked, reverse=True)
    return {
        node.name: WEIGHTS["NodeAffinity"] * liked[node.name] + WEIGHTS["TaintToleration"] * disliked[node.name]
        for node in nodes
    }


def _liked(terms: tuple[core_v1.PreferredSchedulingTerm, ...], node: NodeInfo) -> int:
    total = 0
    for term in terms:
        preference = term.preference
        empty = not preference.match_expressions and not preference.match_fields
        # An empty preference likes every node; as a required term it would select none.
        if term.weight and (empty or matches_term(preference, node.labels, node.name)):
            total += term.weight
    return total


def _untolerated(pod: PodInfo, node: NodeInfo) -> int:
    if not node.soft_taints:
        return 0
    tolerations = [t for t in pod.spec.tolerations if t.effect in ("", "PreferNoSchedule")]
    return sum(1 for taint in node.soft_taints if not tolerated(taint, tolerations))
