from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubedra.api import codec, core_v1, resource_v1
from kubedra.base.clock import format_time
from kubedra.controllers import device_taints as d
from kubedra.controllers.actions import Patch

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TAINT = {"key": "bad", "value": "x", "effect": "NoExecute", "timeAdded": format_time(NOW)}


def slice_(name: str, generation: int, taints: list[dict[str, Any]]) -> resource_v1.ResourceSlice:
    spec = {
        "driver": "drv",
        "pool": {"name": "p", "generation": generation, "resourceSliceCount": 1},
        "devices": [{"name": "a", "taints": taints}, {"name": "b"}],
    }
    return codec.from_tree(resource_v1.ResourceSlice, {"metadata": {"name": name}, "spec": spec})


def claim(tolerations: list[dict[str, Any]] | None = None, device: str = "a") -> resource_v1.ResourceClaim:
    result = {"request": "r", "driver": "drv", "pool": "p", "device": device, "tolerations": tolerations or []}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "pod", "uid": "u"}],
    }
    return codec.from_tree(resource_v1.ResourceClaim, {"metadata": {"name": "c", "namespace": "n"}, "status": status})


def pod(**status: Any) -> core_v1.Pod:
    spec = {"nodeName": "n1", "containers": [], "resourceClaims": [{"name": "e", "resourceClaimName": "c"}]}
    tree = {"metadata": {"name": "pod", "namespace": "n", "uid": "u"}, "spec": spec, "status": status}
    return codec.from_tree(core_v1.Pod, tree)


def due(tolerations: list[dict[str, Any]], taints: list[dict[str, Any]] | None = None) -> float | None:
    active = d.slice_taints([slice_("s", 1, [TAINT] if taints is None else taints)])
    eviction = d.pod_eviction(pod(), [claim(tolerations)], active, NOW)
    return None if eviction is None else (eviction.due - NOW).total_seconds()


def test_only_the_newest_generation_taints() -> None:
    assert d.slice_taints([slice_("old", 1, [TAINT]), slice_("new", 2, [])]) == {}


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([{"key": "bad", "operator": "Exists", "effect": "NoExecute"}], None),
        ([{"key": "bad", "operator": "Equal", "value": "x", "effect": "NoExecute"}], None),
        ([{"key": "bad", "operator": "Equal", "value": "y", "effect": "NoExecute"}], 0),
        ([{"operator": "Exists"}], None),
        ([{"key": "bad", "operator": "Exists", "effect": "NoSchedule"}], 0),
        (
            [
                {"key": "bad", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10},
            ],
            10,
        ),
    ],
)
def test_tolerations_of_the_allocation_decide(tolerations: list[dict[str, Any]], seconds: float | None) -> None:
    assert due(tolerations) == seconds


def test_other_effects_and_other_devices_evict_nobody() -> None:
    assert due([], [TAINT | {"effect": "NoSchedule"}]) is None
    active = d.slice_taints([slice_("s", 1, [TAINT])])
    assert d.pod_eviction(pod(), [claim(device="b")], active, NOW) is None


def test_pods_that_ended_are_left_alone() -> None:
    active = d.slice_taints([slice_("s", 1, [TAINT])])
    assert d.pod_eviction(pod(phase="Succeeded"), [claim()], active, NOW) is None


def test_claims_of_the_bridge_count() -> None:
    bridged = pod(extendedResourceClaimStatus={"resourceClaimName": "ext"})
    assert d.claims_of(bridged) == ["c", "ext"]


def rule(
    effect: str = "NoExecute", selector: dict[str, str] | None = None, **status: Any
) -> resource_v1.DeviceTaintRule:
    spec: dict[str, Any] = {"taint": TAINT | {"effect": effect}}
    if selector is not None:
        spec["deviceSelector"] = selector
    tree = {"metadata": {"name": "r", "generation": 1}, "spec": spec, "status": status}
    return codec.from_tree(resource_v1.DeviceTaintRule, tree)


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    device = ("drv", "p", "a")
    assert not d.rule_selects(rule(), device)
    assert d.rule_selects(rule(selector={}), device)
    assert d.rule_selects(rule(selector={"driver": "drv", "device": "a"}), device)
    assert not d.rule_selects(rule(selector={"driver": "other"}), device)


@pytest.mark.parametrize(
    ("effect", "counts", "expected"),
    [
        ("NoExecute", d.RuleCounts(), ("False", "NotStarted", "")),
        (
            "NoExecute",
            d.RuleCounts(pending=["n"]),
            ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace."),
        ),
        (
            "NoExecute",
            d.RuleCounts(pending=["n", "m"], evicted=1),
            (
                "True",
                "PodsPendingEviction",
                "2 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller.",
            ),
        ),
        (
            "NoExecute",
            d.RuleCounts(evicted=3),
            ("False", "Completed", "3 pods evicted since starting the controller."),
        ),
        ("NoSchedule", d.RuleCounts(), ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.")),
    ],
)
def test_a_rule_says_what_it_does(effect: str, counts: d.RuleCounts, expected: tuple[str, str, str]) -> None:
    assert d.rule_condition(rule(effect), counts) == expected


def test_a_dry_run_is_written_once_per_generation() -> None:
    counts = d.RuleCounts(published=2, allocated=1, would_go=["n"])
    (patch,) = d.decide_rule_status(rule("None", {}), counts, format_time(NOW))
    assert isinstance(patch, Patch)
    (condition,) = patch.patch["status"]["conditions"]
    assert condition["message"].startswith("2 published device(s) selected. 1 allocated device(s) selected. 1 pod(s)")
    again = rule("None", {}, conditions=[condition])
    assert d.decide_rule_status(again, d.RuleCounts(published=5), format_time(NOW + timedelta(seconds=60))) == []
