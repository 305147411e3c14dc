"""Which other pods run nearby: preferred pod affinity, and soft topology spread.

Upstream: plugins/interpodaffinity/scoring.go, plugins/podtopologyspread/scoring.go.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from kubedra.scheduler.filters.pod_terms import term_of
from kubedra.scheduler.filters.topology_spread import constraints
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.scores import MAX_SCORE, WEIGHTS
from kubedra.scheduler.view import ClusterView

HARD_AFFINITY_WEIGHT = 1


def matters(pod: PodInfo, view: ClusterView) -> bool:
    """Whether either score can differ between nodes."""
    return bool(
        pod.preferred_affinity
        or pod.preferred_anti_affinity
        or view.pods_with_affinity
        or constraints(pod, "ScheduleAnyway")
    )


def score(pod: PodInfo, nodes: Sequence[NodeInfo], view: ClusterView) -> dict[str, int]:
    """Both scores of all nodes, weighed."""
    near, spread = affinity(pod, nodes, view), topology_spread(pod, nodes, view)
    return {
        node.name: WEIGHTS["InterPodAffinity"] * near[node.name] + WEIGHTS["PodTopologySpread"] * spread[node.name]
        for node in nodes
    }


def affinity(pod: PodInfo, nodes: Sequence[NodeInfo], view: ClusterView) -> dict[str, int]:
    """Likes of the pod for pods there and of pods there for the pod, stretched to 0..100."""
    domains: Counter[tuple[str, str]] = Counter()
    own = [(term_of(pod, t.pod_affinity_term), t.weight) for t in pod.preferred_affinity]
    own += [(term_of(pod, t.pod_affinity_term), -t.weight) for t in pod.preferred_anti_affinity]
    for node in view.nodes.values():
        for other in node.pods.values() if own else node.with_affinity.values():
            pairs = [(term, weight) for term, weight in own if term.matches(other, view.namespaces)]
            pairs += [
                (term_of(other, t.pod_affinity_term), sign * t.weight)
                for terms, sign in ((other.preferred_affinity, 1), (other.preferred_anti_affinity, -1))
                for t in terms
                if term_of(other, t.pod_affinity_term).matches(pod, view.namespaces)
            ]
            pairs += [
                (term_of(other, t), HARD_AFFINITY_WEIGHT)
                for t in other.required_affinity
                if term_of(other, t).matches(pod, view.namespaces)
            ]
            for term, weight in pairs:
                if term.topology_key in node.labels:
                    domains[term.topology_key, node.labels[term.topology_key]] += weight
    raw = {node.name: sum(domains[pair] for pair in node.labels.items() if pair in domains) for node in nodes}
    low, high = min(raw.values(), default=0), max(raw.values(), default=0)
    if low == high:
        return dict.fromkeys(raw, 0)
    return {name: MAX_SCORE * (value - low) // (high - low) for name, value in raw.items()}


def topology_spread(pod: PodInfo, nodes: Sequence[NodeInfo], view: ClusterView) -> dict[str, int]:
    """Fewer matching pods in the node's domains are better; domains count by their number (logarithm)."""
    soft = constraints(pod, "ScheduleAnyway")
    if not soft:
        return dict.fromkeys((node.name for node in nodes), 0)
    usable = [node for node in nodes if all(item.key in node.labels for item in soft)]
    raw: dict[str, float] = {node.name: 0.0 for node in usable}
    for item in soft:
        values = {node.labels[item.key] for node in usable}
        counted: Counter[str | None] = Counter()
        for node in view.nodes.values():
            domain = node.labels.get(item.key)
            if domain in values and item.includes(pod, node):
                counted[domain] += item.counts(node, pod.namespace)
        weight = math.log(len(values) + 2)
        for node in usable:
            raw[node.name] += counted[node.labels[item.key]] * weight + (item.raw.max_skew - 1)
    rounded = {name: round(value) for name, value in raw.items()}
    low, high = min(rounded.values(), default=0), max(rounded.values(), default=0)
    result = dict.fromkeys((node.name for node in nodes), 0)
    for name, value in rounded.items():
        result[name] = MAX_SCORE * (high + low - value) // high if high else MAX_SCORE
    return result
