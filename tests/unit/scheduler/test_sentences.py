"""Our own sentence: what is missing, in words that do not tell of other namespaces."""

from __future__ import annotations

from kubedra.scheduler.cycle import NoPlace
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.sentences import PREEMPTABLE, Sentences
from tests.unit.scheduler.making import Cluster, allocated_on, claim, device_class, exactly, node, pod, slice_of, using


def said(cluster: Cluster, wanted: PodInfo, sentences: Sentences | None = None) -> str:
    verdict = cluster.place(wanted)
    assert isinstance(verdict, NoPlace)
    sentences = sentences or Sentences(cluster.dra)
    quick = sentences.quick(verdict, 0)
    return sentences.slow(verdict, 0) if quick is None else quick


def with_devices(*devices: str, **attributes: str) -> Cluster:
    cluster = Cluster(node("a"))
    cluster.add(device_class(), slice_of("a", *devices, **attributes))
    return cluster


def test_the_selector_that_fails_is_named() -> None:
    cluster = with_devices("x", "y", model="small")
    cluster.add(claim("c", exactly("r", selector="model=big")))
    assert said(cluster, using("p", "c")).startswith("Claim t/c, request r: 0 of 2 devices match model=big")


def test_claims_of_other_namespaces_are_not_named() -> None:
    cluster = with_devices("x", "y")
    cluster.add(claim("mine", status=allocated_on("a", "x")))
    cluster.add(claim("secret", namespace="u", status=allocated_on("a", "y")), claim("c"))
    text = said(cluster, using("p", "c"))
    assert "(held by mine and 1 more)" in text
    assert "secret" not in text


def test_equal_pods_share_a_sentence_up_to_the_names_of_their_claims() -> None:
    cluster = with_devices("x", model="small")
    cluster.add(claim("c", exactly("r", selector="model=big")), claim("d", exactly("r", selector="model=big")))
    sentences = Sentences(cluster.dra)
    first = said(cluster, using("p", "c"), sentences)
    verdict = cluster.place(using("q", "d"))
    assert isinstance(verdict, NoPlace)
    assert sentences.quick(verdict, 0) == first.replace("t/c", "t/d")
    assert sentences.quick(verdict, 100) is None


def test_a_missing_class_is_answered_with_those_that_exist() -> None:
    cluster = with_devices("x")
    cluster.add(claim("c", exactly("r", "nope")))
    assert said(cluster, using("p", "c")) == "Device classes that exist: gpu."


def test_pods_in_the_way_are_mentioned_and_stay() -> None:
    cluster = Cluster(node("a"))
    cluster.add(pod("low", node="a", cpu="7"))
    verdict = cluster.place(pod("high", cpu="4", priority=9))
    assert isinstance(verdict, NoPlace)
    assert verdict.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert Sentences(cluster.dra).quick(verdict, 0) == PREEMPTABLE


def test_evicting_is_of_no_use_where_devices_are_missing_too() -> None:
    cluster = with_devices("x")
    cluster.add(pod("low", node="a", cpu="7"), claim("held", status=allocated_on("a", "x")), claim("c"))
    assert cluster.refused(using("high", "c", cpu="4", priority=9)) == (
        "0/1 nodes are available: 1 Insufficient cpu. still not schedulable,"
        " preemption: 0/1 nodes are available: 1 cannot allocate all claims."
    )


def test_a_pod_that_must_not_preempt_says_so() -> None:
    cluster = Cluster(node("a"))
    cluster.add(pod("low", node="a", cpu="7"))
    assert cluster.refused(pod("high", cpu="4", priority=9, preemptionPolicy="Never")).endswith(
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    )
