"""Required affinity and anti-affinity between pods, in both directions. Upstream: plugins/interpodaffinity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from kubedra.scheduler.filters.pod_terms import Term, term_of
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import Rejection, rejection
from kubedra.scheduler.view import ClusterView

PLUGIN = "InterPodAffinity"
AFFINITY = rejection(PLUGIN, "node(s) didn't match pod affinity rules", unresolvable=True)
ANTI_AFFINITY = rejection(PLUGIN, "node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = rejection(PLUGIN, "node(s) didn't satisfy existing pods anti-affinity rules")

Domain = tuple[str, str]


def prepare(pod: PodInfo, view: ClusterView) -> Callable[[NodeInfo], Rejection | None] | None:
    """Count, per topology domain, the pods that matter; ask only if any can."""
    attract = [term_of(pod, term) for term in pod.required_affinity]
    repel = [term_of(pod, term) for term in pod.required_anti_affinity]
    if not attract and not repel and not view.pods_with_anti_affinity:
        return None
    forbidden = _forbidden_domains(pod, view) if view.pods_with_anti_affinity else frozenset[Domain]()
    attracted, repelled = _count(attract, repel, view) if attract or repel else (Counter[Domain](), Counter[Domain]())
    first_of_its_kind = not attracted and all(term.matches(pod, view.namespaces) for term in attract)

    def check(node: NodeInfo) -> Rejection | None:
        for term in attract:
            value = node.labels.get(term.topology_key)
            if value is None or not (attracted[term.topology_key, value] or first_of_its_kind):
                return AFFINITY
        for term in repel:
            value = node.labels.get(term.topology_key)
            if value is not None and repelled[term.topology_key, value]:
                return ANTI_AFFINITY
        if forbidden and not forbidden.isdisjoint(node.labels.items()):
            return EXISTING_ANTI_AFFINITY
        return None

    return check


def _forbidden_domains(pod: PodInfo, view: ClusterView) -> frozenset[Domain]:
    """Domains in which a pod already there wants no pod like this one."""
    domains: set[Domain] = set()
    for node in view.nodes.values():
        for existing in node.with_anti_affinity.values():
            for raw in existing.required_anti_affinity:
                value = node.labels.get(raw.topology_key)
                if value is not None and term_of(existing, raw).matches(pod, view.namespaces):
                    domains.add((raw.topology_key, value))
    return frozenset(domains)


def _count(attract: list[Term], repel: list[Term], view: ClusterView) -> tuple[Counter[Domain], Counter[Domain]]:
    """Pods by domain: those that meet all affinity terms, and those that any anti-affinity term means."""
    attracted: Counter[Domain] = Counter()
    repelled: Counter[Domain] = Counter()
    namespaces = view.namespaces
    for node in view.nodes.values():
        labels = node.labels
        for other in node.pods.values():
            if attract and all(term.matches(other, namespaces) for term in attract):
                for term in attract:
                    if term.topology_key in labels:
                        attracted[term.topology_key, labels[term.topology_key]] += 1
            for term in repel:
                if term.topology_key in labels and not other.deleting and term.matches(other, namespaces):
                    repelled[term.topology_key, labels[term.topology_key]] += 1
    return attracted, repelled
