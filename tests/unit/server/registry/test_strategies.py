"""Strategies: what the server drops, keeps, writes itself and asks permission for."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.base.features import FeatureGates
from kubedra.server.access.users import Attributes, Decision, User
from kubedra.server.registry.pods import quality_of_service
from kubedra.server.registry.strategies import strategy_for
from kubedra.server.registry.strategy import StrategyContext

Tree = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
ADMIN = {"resource.kubernetes.io/admin-access": "true"}


def context(
    kind: kinds.Kind[Any],
    operation: str = "create",
    subresource: str = "",
    *,
    gates: Mapping[str, bool] | None = None,
    labels: Mapping[str, str] | None = None,
    allowed: Any = True,
    user: User | None = None,
) -> StrategyContext:
    def authorize(asked: Attributes) -> Decision:
        return Decision(allowed(asked) if callable(allowed) else allowed)

    return StrategyContext(
        kind=kind,
        operation=operation,
        namespace="default",
        name="x",
        subresource=subresource,
        user=user or User("someone"),
        features=FeatureGates("1.36", dict(gates or {})),
        now=NOW,
        namespace_labels=lambda _name: labels if labels is not None else {},
        authorize=authorize,
    )


def claim(status: Tree | None = None, **exactly: Any) -> Tree:
    request = {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1, **exactly}}
    tree: Tree = {
        "metadata": {"name": "x", "namespace": "default", "uid": "u"},
        "spec": {"devices": {"requests": [request]}},
    }
    if status is not None:
        tree["status"] = status
    return tree


def fields_of(errors: Any) -> list[str]:
    return [error.field for error in errors]


RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "d0"}
ON_NODE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}
HELD = {"allocation": {"devices": {"results": [RESULT]}, "nodeSelector": ON_NODE}}
REPORTED = {**HELD, "devices": [{"driver": "d", "pool": "p", "device": "d0", "data": {"a": 1}}]}


def test_fields_of_disabled_features_are_dropped() -> None:
    tree = claim(tolerations=[{"operator": "Exists"}], capacity={"requests": {"m": "1"}})
    strategy = strategy_for(kinds.RESOURCE_CLAIM)
    off = {"DRADeviceTaints": False, "DRAConsumableCapacity": False}
    strategy.prepare_for_create(tree, context(kinds.RESOURCE_CLAIM, gates=off))
    assert tree == claim()


def test_a_feature_in_use_stays_in_use() -> None:
    strategy = strategy_for(kinds.RESOURCE_SLICE)
    spec = {"devices": [{"name": "d", "taints": [{"key": "k", "effect": "None"}], "bindsToNode": True}]}
    old: Tree = {"metadata": {}, "spec": spec}
    new = copy.deepcopy(old)
    off = {"DRADeviceTaints": False, "DRADeviceBindingConditions": True}
    strategy.prepare_for_update(new, old, context(kinds.RESOURCE_SLICE, "update", gates=off))
    assert new == old
    strategy.prepare_for_update(new, {"metadata": {}, "spec": {}}, context(kinds.RESOURCE_SLICE, "update", gates=off))
    assert new["spec"] == {"devices": [{"name": "d", "bindsToNode": True}]}


@pytest.mark.parametrize(
    ("gate", "device", "kept"),
    [
        ("DRAPartitionableDevices", {"consumesCounters": [{}], "nodeName": "n"}, {}),
        ("DRAListTypeAttributes", {"attributes": {"a": {"ints": [1]}}}, {"attributes": {"a": {}}}),
        (
            "DRAConsumableCapacity",
            {"allowMultipleAllocations": True, "capacity": {"m": {"value": "1", "requestPolicy": {}}}},
            {"capacity": {"m": {"value": "1"}}},
        ),
        ("DRANodeAllocatableResources", {"nodeAllocatableResources": {"cpu": {}}}, {}),
    ],
)
def test_devices_lose_what_is_disabled(gate: str, device: Tree, kept: Tree) -> None:
    tree: Tree = {"metadata": {}, "spec": {"devices": [{"name": "d", **device}]}}
    strategy = strategy_for(kinds.RESOURCE_SLICE)
    strategy.prepare_for_create(tree, context(kinds.RESOURCE_SLICE, gates={gate: False}))
    assert tree["spec"]["devices"] == [{"name": "d", **kept}]


@pytest.mark.parametrize(("labels", "faults"), [({}, ["spec.devices.requests[0].adminAccess"]), (ADMIN, [])])
def test_admin_access_needs_a_marked_namespace(labels: Mapping[str, str], faults: list[str]) -> None:
    strategy = strategy_for(kinds.RESOURCE_CLAIM)
    where = context(kinds.RESOURCE_CLAIM, labels=labels)
    assert fields_of(strategy.validate_create(claim(adminAccess=True), where)) == faults
    template = {"metadata": {"name": "x", "namespace": "default"}, "spec": {"spec": claim(adminAccess=True)["spec"]}}
    templates = strategy_for(kinds.RESOURCE_CLAIM_TEMPLATE)
    assert fields_of(templates.validate_create(template, context(kinds.RESOURCE_CLAIM_TEMPLATE, labels=labels))) == (
        faults
    )


def test_admin_access_in_new_results_needs_it_too() -> None:
    strategy = strategy_for(kinds.RESOURCE_CLAIM)
    granted = {"allocation": {"devices": {"results": [{**RESULT, "adminAccess": True}]}}}
    where = context(kinds.RESOURCE_CLAIM, "update", "status")
    faults = strategy.validate_update(claim(granted), claim(), where)
    assert fields_of(faults) == ["status.allocation.devices.results[0].adminAccess"]
    assert fields_of(strategy.validate_update(claim(granted), claim(granted), where)) == []


def test_reports_about_released_devices_are_forgotten() -> None:
    strategy = strategy_for(kinds.RESOURCE_CLAIM)
    new = claim({"devices": copy.deepcopy(REPORTED["devices"])})
    strategy.prepare_for_update(new, claim(REPORTED), context(kinds.RESOURCE_CLAIM, "update", "status"))
    assert new["status"] == {}


def test_status_writers_need_their_own_permissions() -> None:
    strategy = strategy_for(kinds.RESOURCE_CLAIM)
    asked: list[tuple[str, str, str]] = []

    def refuse(attributes: Attributes) -> bool:
        asked.append((attributes.verb, attributes.subresource, attributes.name))
        return False

    where = context(kinds.RESOURCE_CLAIM, "patch", "status", allowed=refuse)
    faults = strategy.validate_update(claim(HELD), claim(), where)
    assert fields_of(faults) == ["status.allocation"]
    assert 'verb="patch" permission: resourceclaims.resource.k8s.io is forbidden' in faults[0].detail
    faults = strategy.validate_update(claim(REPORTED), claim(HELD), where)
    assert fields_of(faults) == ["status.devices"]
    assert asked == [("patch", "binding", ""), ("arbitrary-node:patch", "driver", "d")]
    off = context(
        kinds.RESOURCE_CLAIM,
        "update",
        "status",
        allowed=False,
        gates={"DRAResourceClaimGranularStatusAuthorization": False},
    )
    assert strategy.validate_update(claim(HELD), claim(), off) == []


@pytest.mark.parametrize(("node", "faults"), [("n", []), ("other", ["status.devices"])])
def test_drivers_report_on_the_node_they_run_on(node: str, faults: list[str]) -> None:
    strategy = strategy_for(kinds.RESOURCE_CLAIM)
    user = User("system:serviceaccount:default:s", extra={"authentication.kubernetes.io/node-name": (node,)})
    where = context(
        kinds.RESOURCE_CLAIM,
        "update",
        "status",
        user=user,
        allowed=lambda asked: asked.verb.startswith("associated-node:"),
    )
    assert fields_of(strategy.validate_update(claim(REPORTED), claim(HELD), where)) == faults


def test_changed_effect_of_a_rule_counts_from_now() -> None:
    strategy = strategy_for(kinds.DEVICE_TAINT_RULE)
    old: Tree = {"metadata": {}, "spec": {"taint": {"key": "k", "effect": "None", "timeAdded": "2020-01-01T00:00:00Z"}}}
    where = context(kinds.DEVICE_TAINT_RULE, "update")
    new = copy.deepcopy(old)
    new["spec"]["taint"]["effect"] = "NoExecute"
    strategy.prepare_for_update(new, old, where)
    assert new["spec"]["taint"]["timeAdded"] == NOW
    new = copy.deepcopy(old)
    new["spec"]["taint"]["value"] = "v"
    strategy.prepare_for_update(new, old, where)
    assert new["spec"]["taint"]["timeAdded"] == "2020-01-01T00:00:00Z"


def test_answers_to_pool_requests_are_never_overwritten_unseen() -> None:
    assert not strategy_for(kinds.RESOURCE_POOL_STATUS_REQUEST).allow_unconditional_update
    assert strategy_for(kinds.RESOURCE_CLAIM).allow_unconditional_update


def test_which_kinds_count_generations() -> None:
    counted = {kind.kind for kind in kinds.ALL if strategy_for(kind).has_generation}
    assert {"Pod", "Deployment", "ResourceSlice", "DeviceClass", "DeviceTaintRule"} <= counted
    assert not {"ResourceClaim", "ResourceClaimTemplate", "Node", "ConfigMap"} & counted


def test_new_pods_are_pending() -> None:
    tree: Tree = {"metadata": {}, "spec": {"schedulingGates": [{"name": "g"}]}, "status": {"phase": "Running"}}
    strategy_for(kinds.POD).prepare_for_create(tree, context(kinds.POD))
    assert tree["status"]["phase"] == "Pending"
    assert tree["status"]["conditions"][0]["reason"] == "SchedulingGated"


ONE = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "name"),
    [
        ({}, "BestEffort"),
        ({"claims": [{"name": "a"}]}, "BestEffort"),
        ({"requests": {"example.com/gpu": "1"}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"requests": ONE, "limits": ONE}, "Guaranteed"),
        ({"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": ONE}, "Burstable"),
    ],
)
def test_quality_of_service(resources: Tree, name: str) -> None:
    assert quality_of_service({"containers": [{"resources": resources}]}) == name
    assert quality_of_service({"containers": [{}], "resources": resources}) == name


def test_resizing_takes_resources_only() -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    old: Tree = {"metadata": {"name": "x"}, "spec": {"containers": [container]}, "status": {"phase": "Running"}}
    wanted = {"name": "c", "image": "other", "resources": {"requests": {"cpu": "2"}}}
    new: Tree = {"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {"containers": [wanted], "nodeName": "n"}}
    strategy_for(kinds.POD).prepare_for_update(new, old, context(kinds.POD, "update", "resize"))
    assert new["spec"] == {"containers": [{**container, "resources": {"requests": {"cpu": "2"}}}]}
    assert new["metadata"] == {"name": "x"}
    assert new["status"] == {"phase": "Running"}


def test_jobs_get_a_selector_of_their_own() -> None:
    tree: Tree = {"metadata": {"name": "j", "uid": "u"}, "spec": {}}
    strategy_for(kinds.JOB).prepare_for_create(tree, context(kinds.JOB))
    assert tree["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert tree["spec"]["template"]["metadata"]["labels"]["job-name"] == "j"


def test_secrets_store_text_encoded() -> None:
    tree: Tree = {"metadata": {}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}
    strategy_for(kinds.SECRET).prepare_for_create(tree, context(kinds.SECRET))
    assert tree == {"metadata": {}, "data": {"a": "Yg==", "c": "ZA=="}}


def test_namespaces_begin_active() -> None:
    tree: Tree = {"metadata": {"name": "n"}}
    strategy_for(kinds.NAMESPACE).prepare_for_create(tree, context(kinds.NAMESPACE))
    assert tree["spec"] == {"finalizers": ["kubernetes"]}
    assert tree["status"] == {"phase": "Active"}
    new: Tree = {"metadata": {"name": "n"}, "spec": {"finalizers": ["a/b"]}}
    strategy_for(kinds.NAMESPACE).prepare_for_update(new, tree, context(kinds.NAMESPACE, "update"))
    assert new["spec"] == {"finalizers": ["kubernetes"]}


def test_group_claims_need_their_gate() -> None:
    claims = {"resourceClaims": [{"name": "a", "resourceClaimName": "x"}]}
    tree: Tree = {"metadata": {}, "spec": copy.deepcopy(claims)}
    strategy = strategy_for(kinds.POD_GROUP)
    strategy.prepare_for_create(tree, context(kinds.POD_GROUP, gates={"DRAWorkloadResourceClaims": True}))
    assert tree["spec"] == claims
    strategy.prepare_for_create(tree, context(kinds.POD_GROUP))
    assert tree["spec"] == {}
