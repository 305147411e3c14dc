"""What the terms of pod affinity and the constraints of topology spread select: labels and namespaces of pods.

Upstream: kube-scheduler/framework/types.go (AffinityTerm), apimachinery LabelSelectorAsSelector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubedra.api import core_v1, meta_v1
from kubedra.base.node_selectors import matches_label
from kubedra.scheduler.pods import PodInfo


def matches_labels(selector: meta_v1.LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels: none selects nothing, an empty one everything."""
    if selector is None:
        return False
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            return False
    return all(matches_label(requirement, labels) for requirement in selector.match_expressions)


def with_label_keys(
    selector: meta_v1.LabelSelector | None, labels: Mapping[str, str], same: Sequence[str], other: Sequence[str] = ()
) -> meta_v1.LabelSelector | None:
    """Add what matchLabelKeys (same value as the pod) and mismatchLabelKeys (another value) ask for."""
    extra = [
        meta_v1.LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for keys, operator in ((same, "In"), (other, "NotIn"))
        for key in keys
        if key in labels
    ]
    if selector is None or not extra:
        return selector
    return meta_v1.LabelSelector(
        match_labels=selector.match_labels, match_expressions=(*selector.match_expressions, *extra)
    )


@dataclass(frozen=True, slots=True)
class Term:
    """An affinity term of one pod, with the namespaces that it means."""

    selector: meta_v1.LabelSelector | None
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: meta_v1.LabelSelector | None

    def matches(self, pod: PodInfo, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether the term means that pod; `namespaces`: labels by namespace."""
        if pod.namespace not in self.namespaces and not (
            self.namespace_selector is not None
            and matches_labels(self.namespace_selector, namespaces.get(pod.namespace, {}))
        ):
            return False
        return matches_labels(self.selector, pod.labels)


def term_of(pod: PodInfo, term: core_v1.PodAffinityTerm) -> Term:
    """Read a term: without namespaces it means the pod's own."""
    own = not term.namespaces and term.namespace_selector is None
    return Term(
        selector=with_label_keys(term.label_selector, pod.labels, term.match_label_keys, term.mismatch_label_keys),
        topology_key=term.topology_key,
        namespaces=frozenset((pod.namespace,)) if own else frozenset(term.namespaces),
        namespace_selector=term.namespace_selector,
    )
