"""The pod's node selector and required node affinity. Upstream: plugins/nodeaffinity."""

from __future__ import annotations

from collections.abc import Callable

from kubedra.api import core_v1
from kubedra.base.node_selectors import NODE_NAME_FIELD, matches_node_selector
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import Rejection, rejection

PLUGIN = "NodeAffinity"
NO_MATCH = rejection(PLUGIN, "node(s) didn't match Pod's node affinity/selector", unresolvable=True)
NOT_NAMED = rejection(PLUGIN, "node(s) didn't satisfy plugin(s) [NodeAffinity]", unresolvable=True)


def prepare(pod: PodInfo) -> Callable[[NodeInfo], Rejection | None] | None:
    """Labels of the selector, then one of the required terms."""
    wanted = pod.spec.node_selector.items()
    required = required_selector(pod)
    if not wanted and required is None:
        return None
    named = None if required is None else _named_nodes(required)

    def check(node: NodeInfo) -> Rejection | None:
        if named is not None and node.name not in named:
            return NOT_NAMED
        if not wanted <= node.labels.items():
            return NO_MATCH
        if required is not None and not matches_node_selector(required, node.labels, node.name):
            return NO_MATCH
        return None

    return check


def required_selector(pod: PodInfo) -> core_v1.NodeSelector | None:
    """The required part of the pod's node affinity."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def matches(pod: PodInfo, node: NodeInfo) -> bool:
    """Whether selector and required affinity select the node."""
    required = required_selector(pod)
    return pod.spec.node_selector.items() <= node.labels.items() and (
        required is None or matches_node_selector(required, node.labels, node.name)
    )


def _named_nodes(selector: core_v1.NodeSelector) -> frozenset[str] | None:
    """Node names when every term pins one: upstream sorts all other nodes out beforehand, with another text."""
    names: set[str] = set()
    for term in selector.node_selector_terms:
        pinned: set[str] | None = None
        for field in term.match_fields:
            if field.key == NODE_NAME_FIELD and field.operator == "In":
                pinned = set(field.values) if pinned is None else pinned & set(field.values)
        if pinned is None:
            return None
        names |= pinned
    return frozenset(names)
