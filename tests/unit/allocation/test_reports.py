"""Public bug reports as tests, by their number in the collection of reports (sections A to D).

Section E is in test_bridge_reports.py; what the API server must refuse is in tests/unit/validation/test_reports.py.
"""

from __future__ import annotations

import time

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.engine import cel_engine
from kubedra.allocation.features import Features
from kubedra.allocation.finder import Aborted, Finder
from kubedra.allocation.ledger import Ledger
from kubedra.allocation.reasons import explain
from kubedra.allocation.scenario import claims_of, load
from tests.unit.allocation.scenarios import (
    DRIVER,
    Tree,
    answer,
    answers,
    claim,
    device,
    devices_of,
    exactly,
    fast_answer,
    first_available,
    resource_slice,
    taken,
    world,
)

TAINT = {"key": "t", "value": "", "effect": "NoSchedule"}
ATTRIBUTES = f'device.attributes["{DRIVER}"]'


def sentence(scenario: Tree) -> str:
    features = Features()
    inventory, ledger = load(scenario, features, cel_engine(features))
    allocator = Allocator(inventory, ledger)
    pod = allocator.prepare(claims_of(scenario))
    return explain(inventory, ledger, pod, inventory.node_names()).sentence()


def shared(name: str, amount: int = 1, **fields: object) -> Tree:
    return device(name, {"c": amount}, allowMultipleAllocations=True, **fields)


# -- A. allocation semantics ------------------------------------------------------------------------------------------


def test_c01_all_with_counters_takes_the_device() -> None:
    slices = [
        resource_slice("s-counters", count=2, counters={"cs": {"mem": 8}}),
        resource_slice("s-dev", [device("a", uses={"cs": {"mem": 8}})], count=2),
    ]
    assert devices_of(answer(world(slices, claim(exactly(None))))) == ["a"]


def test_c02_all_means_at_least_one() -> None:
    results = answers(world([resource_slice("s", [device("a")])], claim(exactly(None)), nodes=["n1", "n2"]))
    assert [devices_of(r) for r in results] == [["a"], None]


def test_c03_all_fails_when_a_matching_shared_device_is_full() -> None:
    wanted = claim(exactly(None, capacity={"requests": {"c": "1"}}))
    scenario = world([resource_slice("s", [shared("d1"), shared("d2")])], wanted)
    assert devices_of(answer(scenario)) == ["d1", "d2"]
    scenario["allocated"] = [taken("other", ("d1", "share", {"c": "1"}))]
    assert devices_of(answer(scenario)) is None


def test_c05_all_that_can_not_be_met_leaves_the_next_alternative() -> None:
    devices = [device("a", attributes={"kind": "gpu"}), device("b", attributes={"kind": "nic"})]
    request = first_available(exactly(None, f'{ATTRIBUTES}.kind == "fpga"'), exactly(1, f'{ATTRIBUTES}.kind == "gpu"'))
    wanted = claim(request, exactly(1, f'{ATTRIBUTES}.kind == "nic"'))
    assert devices_of(answer(world([resource_slice("s", devices)], wanted))) == ["a", "b"]


def test_c06_a_claim_gets_32_devices_and_not_33() -> None:
    slices = [resource_slice("s", [device(f"d{i:02}") for i in range(40)])]
    assert len(devices_of(answer(world(slices, claim(exactly(32))))) or ()) == 32
    assert len(devices_of(answer(world(slices, claim(exactly(16), exactly(16))))) or ()) == 32
    assert "exceeds the claim limit of 32" in answer(world(slices, claim(exactly(33))))["error"]


def test_c07_one_device_too_few_is_said_at_once() -> None:
    slices = [resource_slice("s", [device(f"d{i:02}") for i in range(31)])]
    start = time.process_time()
    assert devices_of(fast_answer(world(slices, claim(exactly(32))))) is None
    two = claim(first_available(exactly(32), exactly(16)), first_available(exactly(32), exactly(16)))
    assert devices_of(fast_answer(world(slices, two))) is None
    assert time.process_time() - start < 5
    assert "31 devices match, 31 of them are free, 32 requested" in sentence(world(slices, claim(exactly(32))))


def test_c09_distinct_attribute_within_one_request() -> None:
    devices = [device(f"d{i}", attributes={"numa": numa}) for i, numa in enumerate((1, 2, 1, 3), 1)]
    wanted = claim(exactly(3), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])
    assert devices_of(answer(world([resource_slice("s", devices)], wanted))) == ["d1", "d2", "d4"]


def test_c10_distinct_attribute_over_two_drivers() -> None:
    numa = "x.example/numa"
    slices = [
        resource_slice("net", [device("nic0", attributes={numa: 0})], driver="net.example"),
        resource_slice(
            "cpu",
            [device(f"cpu{i}", {"cpu": 16}, attributes={numa: i}, allowMultipleAllocations=True) for i in range(2)],
            driver="cpu.example",
        ),
    ]
    classes = [
        {"metadata": {"name": n}, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{n}.example"'}}]}}
        for n in ("net", "cpu")
    ]
    wanted = claim(
        exactly(1, deviceClassName="net", name="nic"),
        exactly(1, deviceClassName="cpu", name="cpu", capacity={"requests": {"cpu": "10"}}),
        constraints=[{"requests": ["nic", "cpu"], "distinctAttribute": numa}],
    )
    assert devices_of(answer(world(slices, wanted, classes=classes))) == ["nic0", "cpu1"]
    # Where the API server dropped the field, the constraint is empty: never to be ignored.
    wanted["spec"]["devices"]["constraints"] = [{"requests": ["nic", "cpu"]}]
    assert "empty constraint" in answer(world(slices, wanted, classes=classes))["error"]


def test_c11_counters_of_a_rejected_candidate_are_given_back() -> None:
    big = {"cs": {"mem": 4}}
    half = [device(n, uses={"cs": {"mem": 2}}, attributes={"z": 1}) for n in ("h1", "h2")]
    counters = resource_slice("c", count=2, counters={"cs": {"mem": 4}})
    tainted = resource_slice("s", [device("big", uses=big, taints=[TAINT]), *half], count=2)
    assert devices_of(answer(world([counters, tainted], claim(exactly(2))))) == ["h1", "h2"]
    unlike = resource_slice("s", [device("big", uses=big, attributes={"z": 2}), *half], count=2)
    matching = claim(exactly(2), constraints=[{"matchAttribute": f"{DRIVER}/z"}])
    assert devices_of(answer(world([counters, unlike], matching))) == ["h1", "h2"]
    several = device("big", {"c": 1}, uses=big, allowMultipleAllocations=True)
    shares = resource_slice("s", [several, *half], count=2)
    assert devices_of(answer(world([counters, shares], claim(exactly(2))))) == ["h1", "h2"]


def test_c12_two_drivers_may_use_one_pool_name() -> None:
    slices = []
    for driver, name in (("a.example", "a1"), ("b.example", "b1")):
        slices.append(resource_slice(f"{name}-c", driver=driver, count=2, counters={"cs": {"x": 1}}))
        slices.append(resource_slice(name, [device(name, uses={"cs": {"x": 1}})], driver=driver, count=2))
    selector = [{"cel": {"expression": 'device.driver == "b.example"'}}]
    scenario = world(slices, claim(exactly(1)), classes=[{"metadata": {"name": "c"}, "spec": {"selectors": selector}}])
    scenario["allocated"] = [taken("other", "a1", driver="a.example")]
    assert devices_of(answer(scenario)) == ["b1"]
    scenario["allocated"].append(taken("another", "b1", driver="b.example"))
    assert devices_of(answer(scenario)) is None


def partition_pool() -> list[Tree]:
    part_a = device("part-a", {"c": 4}, uses={"cs": {"mutex": 1}}, allowMultipleAllocations=True)
    return [
        resource_slice("c", count=2, counters={"cs": {"mutex": 1}}),
        resource_slice("s", [part_a, device("part-b", uses={"cs": {"mutex": 1}})], count=2),
    ]


def test_c13_committed_shares_consume_counters() -> None:
    scenario = world(partition_pool(), claim(exactly(1, "!device.allowMultipleAllocations")))
    assert devices_of(answer(scenario)) == ["part-b"]
    scenario["allocated"] = [taken("other", ("part-a", "s1", {"c": "1"}))]
    assert devices_of(answer(scenario)) is None


def test_c14_a_further_share_pays_no_counters() -> None:
    scenario = world(partition_pool(), claim(exactly(1, capacity={"requests": {"c": "1"}})))
    scenario["allocated"] = [taken("other", ("part-a", "s1", None))]
    assert devices_of(answer(scenario)) == ["part-a"]


def test_c16_a_full_shared_device_does_not_end_the_search() -> None:
    scenario = world(
        [resource_slice("s", [shared("d1", 2), shared("d2", 2)])], claim(exactly(1, capacity={"requests": {"c": "2"}}))
    )
    scenario["allocated"] = [taken("other", ("d1", "s1", {"c": "2"}))]
    assert devices_of(answer(scenario)) == ["d2"]


def test_c18_negative_amounts_make_no_room() -> None:
    scenario = world([resource_slice("s", [shared("d1", 2)])], claim(exactly(1, capacity={"requests": {"c": "-1"}})))
    assert devices_of(answer(scenario)) is None
    scenario = world([resource_slice("s", [shared("d1", 2)])], claim(exactly(1, capacity={"requests": {"c": "2"}})))
    scenario["allocated"] = [taken("a", ("d1", "s1", {"c": "-2"})), taken("b", ("d1", "s2", {"c": "1"}))]
    assert devices_of(answer(scenario)) is None


def test_c19_request_policies_round_and_default() -> None:
    limits = {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi", "max": "8Gi"}}
    values = {"default": "1Gi", "validValues": ["1Gi", "4Gi"]}

    def consumed(policy: Tree | None, request: str | None, key: str = "mem") -> str | None:
        amount = {"value": "16Gi", **({"requestPolicy": policy} if policy else {})}
        wanted = {"capacity": {"requests": {key: request}}} if request else {}
        slices = [resource_slice("s", [device("d", {"mem": amount}, allowMultipleAllocations=True)])]
        result = answer(world(slices, claim(exactly(1, **wanted))))
        if devices_of(result) is None:
            return None
        (one,) = result["allocations"][0]["devices"]["results"]
        return str(one["consumedCapacity"]["mem"])

    ranges = [consumed(limits, request) for request in (None, "1Gi", "3Gi", "8Gi", "9Gi")]
    assert ranges == ["2Gi", "2Gi", "4Gi", "8Gi", None]
    assert [consumed(values, request) for request in ("2Gi", "5Gi")] == ["4Gi", None]
    assert consumed(None, None) == "16Gi"
    assert consumed(None, "1", key="unknown") is None


def test_c21_the_first_pod_takes_the_whole_and_the_second_waits() -> None:
    slices = [
        resource_slice("c", count=2, counters={"cs": {"x": 2}}),
        resource_slice(
            "s",
            [
                device("whole", uses={"cs": {"x": 2}}, attributes={"t": "whole"}),
                *(device(f"half{i}", uses={"cs": {"x": 1}}, attributes={"t": "half"}) for i in range(2)),
            ],
            count=2,
        ),
    ]
    wanted = claim(first_available(*(exactly(1, f'{ATTRIBUTES}.t == "{t}"') for t in ("whole", "half"))))
    scenario = world(slices, wanted)
    assert devices_of(answer(scenario)) == ["whole"]
    scenario["allocated"] = [taken("first", "whole")]
    assert devices_of(answer(scenario)) is None
    assert "counters" in sentence(scenario)


def test_c23_order_is_pools_slices_devices() -> None:
    slices = [resource_slice("b", [device("x")], count=2), resource_slice("a", [device("y")], count=2)]
    assert devices_of(answer(world(slices, claim(exactly(1))))) == ["y"]
    late = device("z", bindingConditions=["ready"], bindingFailureConditions=["broken"])
    slices = [resource_slice("a", [late], pool="a"), resource_slice("b", [device("x")], pool="b")]
    assert devices_of(answer(world(slices, claim(exactly(1))))) == ["x"]


def test_c24_the_first_that_fits_is_taken_however_big() -> None:
    devices = [device("big", {"memory": "80Gi"}), device("small", {"memory": "4Gi"})]
    selector = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("4Gi")) >= 0'
    assert devices_of(answer(world([resource_slice("s", devices)], claim(exactly(1, selector))))) == ["big"]


def test_c25_each_node_gets_its_first_alternative() -> None:
    slices = [
        resource_slice("s1", [device("small", attributes={"t": "small"})]),
        resource_slice("s2", [device("big", attributes={"t": "big"})], pool="n2", where={"nodeName": "n2"}),
    ]
    wanted = claim(first_available(*(exactly(1, f'{ATTRIBUTES}.t == "{t}"') for t in ("big", "small"))))
    results = answers(world(slices, wanted, nodes=["n1", "n2"]))
    chosen = [r["allocations"][0]["devices"]["results"][0]["request"] for r in results]
    assert chosen == ["r0/s1", "r0/s0"]


def opaque(**parameters: object) -> Tree:
    return {"opaque": {"driver": DRIVER, "parameters": parameters}}


def test_c26_configuration_of_alternatives_stays_with_them() -> None:
    wanted = claim(
        first_available(exactly(1), exactly(1)),
        exactly(1),
        config=[{"requests": ["r0/s0", "r0/s1"], **opaque(mode="a")}],
    )
    result = answer(world([resource_slice("s", [device("a"), device("b")])], wanted))
    assert result["allocations"][0]["devices"]["config"] == [
        {"source": "FromClaim", "requests": ["r0/s0", "r0/s1"], **opaque(mode="a")}
    ]


def test_c28_configuration_of_a_request_goes_with_its_alternative() -> None:
    request = first_available(exactly(1, "false"), exactly(1), name="gpu")
    wanted = claim(request, exactly(1), config=[{"requests": ["gpu"], **opaque(mode="a")}])
    devices = answer(world([resource_slice("s", [device("a"), device("b")])], wanted))["allocations"][0]["devices"]
    assert [r["request"] for r in devices["results"]] == ["gpu/s1", "r1"]
    assert devices["config"] == [{"source": "FromClaim", "requests": ["gpu"], **opaque(mode="a")}]


def test_c29_one_claim_gets_devices_of_two_drivers() -> None:
    slices = [resource_slice(n, [device(n)], driver=f"{n}.example") for n in ("gpu", "nic")]
    classes = [
        {"metadata": {"name": n}, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{n}.example"'}}]}}
        for n in ("gpu", "nic")
    ]
    wanted = claim(exactly(1, deviceClassName="gpu"), exactly(1, deviceClassName="nic"))
    result = answer(world(slices, wanted, classes=classes))
    drivers = [r["driver"] for r in result["allocations"][0]["devices"]["results"]]
    assert drivers == ["gpu.example", "nic.example"]


# -- B. CEL -----------------------------------------------------------------------------------------------------------


def healthy_world() -> Tree:
    slices = [
        resource_slice(
            f"s{i}",
            [device("d", attributes={"healthy": True} if i != 2 else {})],
            pool=f"n{i}",
            where={"nodeName": f"n{i}"},
        )
        for i in (1, 2, 3)
    ]
    return world(slices, claim(exactly(1, f"{ATTRIBUTES}.healthy")), nodes=["n1", "n2", "n3"])


def test_c30_a_selector_that_fails_names_device_selector_and_key() -> None:
    results = answers(healthy_world())
    error = results[1]["error"]
    assert "errorOnNode" not in results[1]
    assert f"selector #0 on device {DRIVER}/n2/d" in error
    assert "no such key: healthy" in error
    assert "orValue()" in error
    features = Features()
    inventory, ledger = load(healthy_world(), features, cel_engine(features))
    finding = Finder(Allocator(inventory, ledger)).find(claims_of(healthy_world()), ["n2", "n3"])
    assert isinstance(finding, Aborted)
    assert finding.node == "n2"


def test_c32_a_misspelt_attribute_is_blamed_on_its_selector() -> None:
    selector = f'has({ATTRIBUTES}.modle) && {ATTRIBUTES}.modle == "A"'
    scenario = world([resource_slice("s", [device("a", attributes={"model": "A"})])], claim(exactly(1, selector)))
    assert devices_of(answer(scenario)) is None
    assert f"0 of 1 devices match {selector}, 1 requested" in sentence(scenario)


def test_c33_mixed_up_attributes_and_capacities_are_errors_or_never_match() -> None:
    slices = [resource_slice("s", [device("a", {"memory": "16Gi"}, attributes={"model": "H100"})])]
    rejected = claim(exactly(1, 'device.attributes["memory"].quantity().value() >= 24000000000'))
    assert "CEL compile error" in answer(world(slices, rejected))["error"]
    unknown = claim(exactly(1, 'device.attributes["model"].string == "H100"'))
    assert "no such key: string" in answer(world(slices, unknown))["error"]
    attribute = claim(exactly(1, f'{ATTRIBUTES}.memory >= "16Gi"'))
    assert "no such key: memory" in answer(world(slices, attribute))["error"]
    assert devices_of(answer(world(slices, claim(exactly(1, 'device.driver == "nvidia.com/gpu"'))))) is None


def test_c34_a_domain_that_can_not_exist_is_an_empty_one() -> None:
    wanted = claim(exactly(1, 'has(device.attributes["foo_bar"].x)'))
    assert devices_of(answer(world([resource_slice("s", [device("a")])], wanted))) is None


def test_c35_a_version_with_a_leading_zero_is_an_error_that_says_so() -> None:
    version = {"name": "a", "attributes": {"driverVersion": {"version": "550.127.8"}}}
    wanted = claim(exactly(1, f'{ATTRIBUTES}.driverVersion.compareTo(semver("550.127.08")) >= 0'))
    assert "leading zero" in answer(world([resource_slice("s", [version])], wanted))["error"]


def test_c37_too_few_matches_reads_otherwise_than_too_few_free() -> None:
    devices = [
        device("a", attributes={"m": "x"}),
        device("b", attributes={"m": "y"}),
        device("c", attributes={"m": "y"}),
    ]
    one = world([resource_slice("s", devices)], claim(exactly(2, f'{ATTRIBUTES}.m == "x"')))
    assert f'1 of 3 devices match {ATTRIBUTES}.m == "x", 2 requested' in sentence(one)
    free = world([resource_slice("s", devices)], claim(exactly(2, f'{ATTRIBUTES}.m == "y"')))
    free["allocated"] = [taken("other", "b")]
    assert "2 devices match, 1 of them is free, 2 requested (held by uid-other)" in sentence(free).replace(
        "allocated-0", "uid-other"
    )


# -- C. pools and slices ----------------------------------------------------------------------------------------------


def updating_pool() -> list[Tree]:
    return [resource_slice("s1", [device("a")]), resource_slice("s2", [device("b")], generation=2, count=2)]


def test_c38_an_old_generation_does_not_count_beside_half_of_the_new_one() -> None:
    assert devices_of(answer(world(updating_pool(), claim(exactly(2))))) is None
    assert "currently being updated" in answer(world(updating_pool(), claim(exactly(None))))["error"]
    complete = [*updating_pool(), resource_slice("s3", [device("c")], generation=2, count=2)]
    assert devices_of(answer(world(complete, claim(exactly(2))))) == ["b", "c"]


def test_c39_an_incomplete_pool_gives_nothing_and_the_reason_says_so() -> None:
    scenario = world(updating_pool(), claim(exactly(1)))
    assert devices_of(answer(scenario)) is None
    assert "pool n1 incomplete (1/2 slices, generation 2)" in sentence(scenario)


def test_c41_a_pool_with_one_name_twice_is_invalid_others_are_not() -> None:
    twice = [resource_slice(n, [device("gpu-0")], count=2) for n in ("s1", "s2")]
    result = answer(world(twice, claim(exactly(1))))
    assert result["errorOnNode"]
    assert result["error"] == "invalid resource pools were encountered"
    other = resource_slice("s3", [device("x")], pool="other")
    assert devices_of(answer(world([*twice, other], claim(exactly(1))))) == ["x"]
    assert "currently invalid" in answer(world([*twice, other], claim(exactly(None))))["error"]


def test_c43_a_malformed_version_fails_every_selector_on_its_device() -> None:
    bad = {"name": "gpu0", "attributes": {"driverVersion": {"version": "6.19.14.31400000"}}}
    error = answer(world([resource_slice("s", [bad])], claim(exactly(1, "true"))))["error"]
    assert f"on device {DRIVER}/n1/gpu0: CEL runtime error: attribute driverVersion: parse semantic version" in error


def test_c45_a_device_of_a_pool_name_used_by_two_nodes_is_not_offered_twice() -> None:
    slices = [resource_slice(f"s{n}", [device("0")], pool="tpu", where={"nodeName": n}) for n in ("n1", "n2")]
    scenario = world(slices, claim(exactly(1)), nodes=["n1", "n2"])
    assert [devices_of(r) for r in answers(scenario)] == [["0"], ["0"]]
    scenario["allocated"] = [taken("other", "0", pool="tpu")]
    assert [devices_of(r) for r in answers(scenario)] == [None, None]


def test_c48_a_slice_for_no_node_that_we_know_is_skipped() -> None:
    odd = resource_slice("odd", [device("a")], pool="odd", where={})
    assert devices_of(answer(world([odd, resource_slice("s", [device("b")])], claim(exactly(1))))) == ["b"]


# -- D. taints --------------------------------------------------------------------------------------------------------


def test_c49_tolerations_reach_the_allocation() -> None:
    taint = {"key": "k", "effect": "NoExecute"}
    tolerations = [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}]
    slices = [resource_slice("s", [device("a", taints=[taint])])]
    assert devices_of(answer(world(slices, claim(exactly(1))))) is None
    result = answer(world(slices, claim(exactly(1, tolerations=tolerations))))
    assert result["allocations"][0]["devices"]["results"][0]["tolerations"] == tolerations


def test_c50_an_empty_selector_taints_everything_and_none_taints_nothing() -> None:
    def fits(spec: Tree) -> bool:
        rule = {"metadata": {"name": "r"}, "spec": {"taint": {"key": "k", "effect": "NoExecute"}, **spec}}
        scenario = world([resource_slice("s", [device("a")])], claim(exactly(1)), taintRules=[rule])
        return devices_of(answer(scenario)) is not None

    assert not fits({"deviceSelector": {}})
    assert fits({})
    assert fits({"deviceSelector": {"device": "b"}})
    assert not fits({"deviceSelector": {"pool": "n1"}})


def test_c52_all_fails_on_a_tainted_device_for_admins_too() -> None:
    slices = [resource_slice("s", [device("a"), device("b", taints=[TAINT])])]
    assert devices_of(answer(world(slices, claim(exactly(None))))) is None
    tolerant = claim(exactly(None, tolerations=[{"operator": "Exists"}]))
    assert devices_of(answer(world(slices, tolerant))) == ["a", "b"]
    tainted = [resource_slice("s", [device("b", taints=[TAINT])])]
    assert devices_of(answer(world(tainted, claim(exactly(1, adminAccess=True))))) is None


def test_ledger_ignores_share_ids_when_nothing_can_be_shared() -> None:
    scenario = world([resource_slice("s", [shared("d1", 2)])], claim(exactly(1)))
    scenario["allocated"] = [taken("other", ("d1", "s1", {"c": "1"}))]
    scenario["features"] = {"DRAConsumableCapacity": False}
    assert devices_of(answer(scenario)) is None
    assert isinstance(Ledger(False).claims(), tuple)


def test_c46_a_constraint_on_a_name_with_two_slashes_is_met_by_nobody() -> None:
    slices = [resource_slice("s", [device("a", attributes={"a/b/c": 1})])]
    assert devices_of(answer(world(slices, claim(exactly(1), constraints=[{"matchAttribute": "x/b/c"}])))) is None
    assert devices_of(answer(world(slices, claim(exactly(1), constraints=[{"matchAttribute": "a/b/c"}])))) == ["a"]
