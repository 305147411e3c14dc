"""Public reports that ``why`` exists for: a person who knows nothing of DRA must be able to act on the text."""

from __future__ import annotations

from typing import Any

from kubedra.base.features import FeatureGates
from tests.unit.insight.clusters import (
    Tree,
    ask,
    claim,
    class_of,
    device,
    held,
    node,
    partitioned_card,
    pod,
    request,
    slice_of,
    snapshot,
)


def test_a_runtime_error_names_device_selector_and_key_and_offers_the_guarded_form() -> None:
    # C30
    answer, text = ask(
        snapshot(
            slice_of("n1", [device("a", {"healthy": True})]),
            slice_of("n2", [device("b", {})]),
            slice_of("n3", [device("c", {"healthy": True})]),
            claim("x", request("r", 'device.attributes["d.example"].healthy')),
            pod("p", "x"),
        )
    )
    assert answer.exit_code == 3
    assert answer.reasons[0].code == "selector-fails"
    assert "selector #0 on device d.example/n2/b" in text
    assert "no such key: healthy" in text
    assert "1 of 3 devices lacks d.example/healthy" in text
    guarded = 'device.attributes["d.example"].?healthy.orValue(false)'
    assert guarded in [remedy.change for remedy in answer.remedies]


def test_a_typo_is_named_with_the_attribute_that_was_meant() -> None:
    # C32
    selector = 'has(device.attributes["d.example"].modle) && device.attributes["d.example"].modle == "A"'
    answer, text = ask(
        snapshot(
            slice_of("n1", [device("a", {"model": "A"}), device("b", {"model": "B"})]),
            claim("x", request("r", selector)),
            pod("p", "x"),
        )
    )
    assert answer.reasons[0].code == "selector-matches-too-few"
    assert "the attribute 'modle' exists on 0 of 2 devices (nearest: the attribute model)" in text
    assert answer.remedies[0].code == "correct-name"
    assert answer.remedies[0].change == selector.replace("modle", "model")


def test_too_few_matches_reads_differently_from_too_few_free_ones() -> None:
    # C37
    selector = 'device.attributes["d.example"].model == "A"'
    wanted = claim("x", request("r", selector, count=2))
    one = slice_of("n1", [device("a", {"model": "A"}), device("b", {"model": "B"})])
    two = slice_of("n1", [device("a", {"model": "A"}), device("b", {"model": "A"})])
    _, few = ask(snapshot(one, wanted, pod("p", "x")))
    answer, taken = ask(snapshot(two, wanted, held("y", "b", pods=["q"]), pod("q", "y", node_name="n1"), pod("p", "x")))
    assert "1 of 2 devices match the selector" in few
    assert "2 requested" in few
    assert "2 devices match, 1 of them is free" in taken
    assert "pod default/q (claim y, for 3h)" in taken
    assert answer.reasons[0].code == "in-use"


def test_half_of_a_new_generation_is_told() -> None:
    # C38
    slices = (
        slice_of("n1", ["a"], name="s1", generation=1, count=1),
        slice_of("n1", ["b"], name="s2", generation=2, count=2),
    )
    answer, text = ask(snapshot(*slices, claim("x", request("r", count=2)), pod("p", "x")))
    assert answer.reasons[0].code == "pool-incomplete"
    assert "n1 incomplete (1/2 slices, generation 2)" in text
    everything = claim("x", request("r", allocationMode="All"))
    _, text = ask(snapshot(*slices, everything, pod("p", "x")))
    assert "currently being updated" in text


def test_an_incomplete_pool_is_told_for_one_device_too() -> None:
    # C39
    answer, text = ask(
        snapshot(
            slice_of("n1", ["a"], name="s1", generation=1, count=1),
            slice_of("n1", ["b"], name="s2", generation=2, count=2),
            claim("x", request("r")),
            pod("p", "x"),
        )
    )
    assert answer.reasons[0].code == "pool-incomplete"
    assert "pool n1 incomplete (1/2 slices, generation 2)" in text


def test_a_shared_claim_that_is_full_says_so() -> None:
    # C75
    users = [f"q{number}" for number in range(256)]
    answer, text = ask(snapshot(slice_of("n1", ["a"]), held("x", "a", pods=users), pod("p", "x")))
    assert answer.reasons[0].code == "claim-full"
    assert "256 consumers" in text
    assert "ResourceClaimTemplate" in text


def test_a_pod_that_bypassed_the_scheduler_is_told_so() -> None:
    # C76
    answer, text = ask(snapshot(slice_of("n1", ["a"]), claim("x", request("r")), pod("p", "x", node_name="n1")))
    assert answer.exit_code == 3
    assert answer.reasons[0].code == "scheduler-bypassed"
    assert "scheduler bypassed" in text
    assert "not allowed to use" in text
    assert "create the pod without spec.nodeName" in text


def _profile(name: str) -> str:
    return f'device.attributes["d.example"].profile == "{name}"'


def test_scattered_partitions_name_the_one_pod_to_move_and_what_still_fits() -> None:
    # 1g partitions at the places 0, 1 and 5 block a 3g although four slices are free.
    objects = [*partitioned_card()]
    for number, place in enumerate((0, 1, 5)):
        small = held(f"c{number}", f"gpu-0-1g-{place}", pods=[f"q{number}"])
        small["spec"]["devices"]["requests"] = [request("r", _profile("1g.10gb"))]
        objects += [small, pod(f"q{number}", f"c{number}", node_name="n1", phase="Running")]
    answer, text = ask(snapshot(*objects, claim("x", request("r", _profile("3g.40gb"))), pod("p", "x")))
    assert answer.reasons[0].code == "no-room"
    assert "memory-slice-5 (0 left, 1 needed) of gpu-0, which is used by gpu-0-1g-5 of pod default/q2" in text
    assert "what still fits there: 4 × 1g.10gb or 1 × 2g.20gb" in text
    remedy = answer.remedies[0]
    assert remedy.code == "move-pod"
    assert "Move pod default/q2" in remedy.text
    assert "this pod then gets d.example/n1/gpu-0-3g-4" in remedy.text
    assert "the moved pod gets d.example/n1/gpu-0-1g-2" in remedy.text


def test_an_attribute_of_another_name_says_which_driver_lacks_it_and_what_it_has() -> None:
    root = "resource.kubernetes.io/pcieRoot"
    gpus = [device(f"gpu-{i}", {"gpu.x/pciRoot": f"pci0000:{i:02x}"}) for i in range(2)]
    nics = [device(f"nic-{i}", {root: f"pci0000:{i:02x}"}) for i in range(2)]
    answer, text = ask(
        snapshot(
            slice_of("n1", gpus, driver="gpu.x"),
            slice_of("n1", nics, driver="nic.y"),
            class_of("gpu", "gpu.x"),
            class_of("nic", "nic.y"),
            claim(
                "x",
                request("gpu", device_class="gpu"),
                request("nic", device_class="nic"),
                constraints=[{"matchAttribute": root}],
            ),
            pod("p", "x"),
        )
    )
    assert answer.reasons[0].code == "constraint"
    assert f"none of the 2 matching devices of the driver gpu.x has {root}" in text
    assert "what the driver publishes instead is gpu.x/pciRoot" in text
    assert answer.remedies[0].code == "drop-constraint"
    assert answer.exit_code == 3


def test_a_shared_device_says_how_much_is_left_and_what_would_fit() -> None:
    nic = device("nic0", {"model": "CX7"}, bandwidth="100G")
    nic["allowMultipleAllocations"] = True
    objects = [slice_of("n1", [nic])]
    for name, amount in (("q1", "60G"), ("q2", "20G")):
        share = held(f"c-{name}", "nic0", pods=[name])
        share["status"]["allocation"]["devices"]["results"][0] |= {
            "shareID": f"s-{name}",
            "consumedCapacity": {"bandwidth": amount},
        }
        objects += [share, pod(name, f"c-{name}", node_name="n1", phase="Running")]
    wanted = claim("x", request("r", capacity={"requests": {"bandwidth": "30G"}}))
    answer, text = ask(snapshot(*objects, wanted, pod("p", "x")))
    assert answer.reasons[0].code == "no-room"
    assert "nic0 on n1 has 20G of 100G bandwidth left, 30G asked for" in text
    assert "Ask for 20G of bandwidth instead of 30G" in text


def test_an_extended_resource_is_called_by_its_name_not_by_its_claim() -> None:
    bridge = class_of()
    bridge["spec"]["extendedResourceName"] = "example.com/gpu"
    wants = {"name": "main", "image": "x", "resources": {"requests": {"example.com/gpu": "2"}}}
    answer, text = ask(snapshot(bridge, slice_of("n1", ["a"]), pod("p", containers=[wants])))
    assert answer.reasons[0].code == "too-few-devices"
    assert "example.com/gpu of container main: the cluster has 1 device that matches, 2 devices are needed" in text
    assert "<extended-resources>" not in text


def test_a_shared_claim_that_is_elsewhere_says_where_and_who_uses_it() -> None:
    def busy(name: str, cpu: str, **more: Any) -> Tree:
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        return pod(name, "x", containers=[container], **more)

    objects = (node("n1"), node("n2"), slice_of("n1", ["a"]), held("x", "a", pods=["q"]))
    answer, text = ask(snapshot(*objects, busy("q", "6", node_name="n1"), busy("p", "4")))
    assert answer.reasons[0].code == "nodes-reject"
    assert "too little cpu: 4 wanted, 2 of 8 free" in text
    assert "claim x has its devices on n1, used by pod q" in text


def test_an_allocation_that_nobody_uses_is_given_back_and_told() -> None:
    # C77
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "4"}}}
    full = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "8"}}}
    other = pod("q", node_name="n1", containers=[full])
    objects = (node("n1"), node("n2"), slice_of("n1", ["a"]), held("x", "a"), other)
    _, text = ask(snapshot(*objects, pod("p", "x", containers=[container])))
    assert "The scheduler gives the devices of claim x back, which nobody uses, and tries again" in text


def test_what_a_newer_version_would_change_is_named() -> None:
    partitions = partitioned_card()
    wanted = claim("x", request("r", _profile("3g.40gb")))
    answer, text = ask(snapshot(*partitions, wanted, pod("p", "x"), gates=FeatureGates("1.35")))
    assert answer.exit_code == 3
    assert "This is the answer of Kubernetes 1.35; with 1.37 it would fit on n1" in text


def test_the_fewest_pods_are_named_on_the_node_where_the_fewest_must_go() -> None:
    objects: list[Tree] = [slice_of(f"n{i}", ["a", "b", "c", "d"]) for i in range(3)]
    for where, devices in (("n0", "abcd"), ("n1", "abd"), ("n2", "ab")):
        for name in devices:
            objects += [
                held(f"c-{where}-{name}", name, pods=[f"q-{where}-{name}"], node_name=where),
                pod(f"q-{where}-{name}", f"c-{where}-{name}", node_name=where, phase="Running"),
            ]
    answer, text = ask(snapshot(*objects, claim("x", request("r", count=3)), pod("p", "x")))
    remedy = next(r for r in answer.remedies if r.freed)
    assert remedy.freed == ("uid-c-n2-a",)
    assert not answer.remedies_cut
    assert "n2, has 2" in text or "node n2" in text
