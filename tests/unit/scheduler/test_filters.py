"""Each filter rejects with upstream's words, and says whether removing pods could help."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra.api import core_v1
from kubedra.scheduler import filters
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.verdicts import Rejection
from kubedra.scheduler.view import ClusterView
from tests.unit.scheduler.making import info, node, pod, view

NOTHING: frozenset[str] = frozenset()
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


def local(wanted: PodInfo, item: core_v1.Node, *others: PodInfo, bridged: frozenset[str] = NOTHING) -> Rejection | None:
    return filters.local(wanted, bridged)(info(item, *others))


def placement(wanted: PodInfo, cluster: ClusterView) -> dict[str, str]:
    """First rejection text of each node."""
    found: dict[str, str] = {}
    for check in filters.placement(wanted, cluster):
        for name, item in cluster.nodes.items():
            rejected = check(item)
            if rejected is not None:
                found.setdefault(name, rejected.reasons[0])
    return found


def affinity(kind: str, app: str, key: str = "zone", **term: Any) -> dict[str, Any]:
    return {
        kind: {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **term}
            ]
        }
    }


def test_a_pod_that_wants_nothing_fits() -> None:
    assert local(pod("p"), node("n")) is None


@pytest.mark.parametrize(
    ("wanted", "item", "reason"),
    [
        (pod("p"), node("n", unschedulable=True), "node(s) were unschedulable"),
        (pod("p"), node("n", taints=[TAINT]), "node(s) had untolerated taint(s)"),
        (pod("p", nodeSelector={"a": "b"}), node("n"), "node(s) didn't match Pod's node affinity/selector"),
        (pod("p", cpu="9"), node("n"), "Insufficient cpu"),
        (pod("p", requests={"x.io/y": "1"}), node("n"), "Insufficient x.io/y"),
    ],
)
def test_what_other_pods_have_no_part_in_is_unresolvable(wanted: PodInfo, item: core_v1.Node, reason: str) -> None:
    rejected = local(wanted, item)
    assert rejected is not None
    assert rejected.reasons == (reason,)
    assert rejected.unresolvable


def test_room_taken_by_others_could_be_freed() -> None:
    rejected = local(pod("p", cpu="5", memory="9Gi"), node("n"), pod("q", node="n", cpu="4", memory="8Gi"))
    assert rejected is not None
    assert rejected.reasons == ("Insufficient cpu", "Insufficient memory")
    assert not rejected.unresolvable


def test_a_node_takes_as_many_pods_as_it_says() -> None:
    rejected = local(pod("p"), node("n", allocatable={"pods": "1"}), pod("q", node="n"))
    assert rejected is not None
    assert rejected.reasons == ("Too many pods",)


def test_an_extended_resource_that_dra_provides_is_left_to_dra_where_the_node_has_none() -> None:
    wanted, bridged = pod("p", requests={"x.io/y": "2"}), frozenset({"x.io/y"})
    assert local(wanted, node("n"), bridged=bridged) is None
    rejected = local(wanted, node("n", allocatable={"x.io/y": "1"}), bridged=bridged)
    assert rejected is not None
    assert rejected.reasons == ("Insufficient x.io/y",)


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"value": "v"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], fits: bool) -> None:
    assert (local(pod("p", tolerations=[toleration]), node("n", taints=[TAINT])) is None) is fits


def test_tolerating_the_taint_of_cordoned_nodes_is_enough() -> None:
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    assert local(pod("p", tolerations=[toleration]), node("n", unschedulable=True)) is None


def test_terms_that_name_nodes_sort_all_others_out() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]}
    wanted = pod(
        "p",
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [named]}}},
    )
    rejected = local(wanted, node("n"))
    assert rejected is not None
    assert rejected.reasons == ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)
    assert local(wanted, node("other")) is None


@pytest.mark.parametrize(
    ("mine", "theirs", "fits"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, False),
    ],
)
def test_host_ports(mine: dict[str, Any], theirs: dict[str, Any], fits: bool) -> None:
    def with_port(name: str, port: dict[str, Any], **spec: Any) -> PodInfo:
        return pod(name, containers=[{"name": "c", "ports": [{"containerPort": 1, **port}]}], **spec)

    rejected = local(with_port("p", mine), node("n"), with_port("q", theirs, node="n"))
    assert (rejected is None) is fits
    if rejected is not None:
        assert rejected.reasons == ("node(s) didn't have free ports for the requested pod ports",)


def test_pods_that_are_gone_leave_nothing_behind() -> None:
    cluster = view(node("n"), pods=(pod("q", node="n", cpu="8", memory="1Gi"),))
    cluster.remove_pod("uid-q")
    item = cluster.nodes["n"]
    assert (item.requested, item.nonzero_cpu, item.nonzero_memory, item.pods) == ({}, 0, 0, {})


def two_zones(*pods: PodInfo) -> ClusterView:
    return view(node("a", labels={"zone": "1"}), node("b", labels={"zone": "2"}), node("bare"), pods=tuple(pods))


def test_affinity_needs_a_matching_pod_in_the_domain() -> None:
    wanted = pod("p", affinity=affinity("podAffinity", "web"))
    assert placement(wanted, two_zones(pod("q", node="a", labels={"app": "web"}))) == {
        "b": "node(s) didn't match pod affinity rules",
        "bare": "node(s) didn't match pod affinity rules",
    }


def test_affinity_does_not_keep_the_first_pod_of_its_kind_out() -> None:
    wanted = pod("p", labels={"app": "web"}, affinity=affinity("podAffinity", "web"))
    assert placement(wanted, two_zones()) == {"bare": "node(s) didn't match pod affinity rules"}


def test_affinity_looks_at_its_own_namespace_unless_told_otherwise() -> None:
    stranger = pod("q", namespace="u", node="a", labels={"app": "web"})
    assert "a" in placement(pod("p", affinity=affinity("podAffinity", "web")), two_zones(stranger))
    wanted = pod("p", affinity=affinity("podAffinity", "web", namespaceSelector={}))
    assert "a" not in placement(wanted, two_zones(stranger))


def test_anti_affinity_works_in_both_directions() -> None:
    web = {"app": "web"}
    assert placement(
        pod("p", affinity=affinity("podAntiAffinity", "web")), two_zones(pod("q", node="a", labels=web))
    ) == {"a": "node(s) didn't match pod anti-affinity rules"}
    assert placement(
        pod("p", labels=web), two_zones(pod("q", node="a", affinity=affinity("podAntiAffinity", "web")))
    ) == {"a": "node(s) didn't satisfy existing pods anti-affinity rules"}


def test_spread_keeps_domains_within_the_skew() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    wanted = pod("p", labels={"app": "web"}, topologySpreadConstraints=[spread])
    assert placement(wanted, two_zones(pod("q", node="a", labels={"app": "web"}))) == {
        "a": "node(s) didn't match pod topology spread constraints",
        "bare": "node(s) didn't match pod topology spread constraints (missing required label)",
    }
