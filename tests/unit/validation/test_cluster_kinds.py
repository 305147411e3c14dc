"""Nodes, namespaces, configuration, events, quotas, budgets, priorities, leases, roles."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from kubedra.api import kinds
from tests.unit.validation.cases import create, named, update


def members(kind: kinds.Kind[Any], **given: Any) -> tuple[kinds.Kind[Any], dict[str, Any]]:
    return kind, named(kind.kind, **given)


RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
ABOUT = {"kind": "Pod", "name": "p", "namespace": "default"}


@pytest.mark.parametrize(
    ("case", "faults"),
    [
        (members(kinds.NODE), set()),
        (members(kinds.NODE, spec={"taints": [{"key": "a"}]}), {"Required metadata.taints[0].effect"}),
        (members(kinds.NODE, spec={"podCIDR": "x"}), {"Invalid spec.podCIDRs[0]"}),
        (members(kinds.NODE, status={"capacity": {"a/b": "500m"}}), {"Invalid status.capacity.a/b"}),
        (members(kinds.NODE, status={"declaredFeatures": ["B", "A"]}), {"Invalid status.declaredFeatures[1]"}),
        (members(kinds.NAMESPACE, spec={"finalizers": ["x"]}), {"Invalid spec.finalizers[0]"}),
        (members(kinds.CONFIG_MAP, data={"a": "b"}, binaryData={"a": ""}), {"Invalid data[a]"}),
        (members(kinds.CONFIG_MAP, data={"a b": "c"}), {"Invalid data[a b]"}),
        (members(kinds.CONFIG_MAP, data={"a": "x" * 1048577}), {"TooLong "}),
        (members(kinds.SECRET, type="kubernetes.io/tls", data={}), {
            "Required data[tls.crt]",
            "Required data[tls.key]",
        }),
        (members(kinds.SECRET, type="Opaque", data={"a": b64encode(b"x" * 1048577).decode()}), {"TooLong data"}),
        (members(kinds.CORE_EVENT, involvedObject=ABOUT), set()),
        (members(kinds.CORE_EVENT, involvedObject={**ABOUT, "namespace": "other"}), {
            "Invalid involvedObject.namespace",
        }),
        (members(kinds.CORE_EVENT, involvedObject=ABOUT, eventTime="2020-01-01T00:00:00Z", type="X", action="a"), {
            "Required reportingController",
            "Required reportingInstance",
            "Required reason",
            "NotSupported type",
        }),
        (members(kinds.RESOURCE_QUOTA, spec={"hard": {"pods": "-1"}}), {"Invalid spec.hard[pods]"}),
        (members(kinds.POD_DISRUPTION_BUDGET, spec={"minAvailable": 1, "maxUnavailable": 1}), {"Invalid spec"}),
        (members(kinds.POD_DISRUPTION_BUDGET, spec={"minAvailable": "101%"}), {"Invalid spec.minAvailable"}),
        (members(kinds.PRIORITY_CLASS, value=2_000_000_000), {"Forbidden value"}),
        (members(kinds.LEASE, spec={"leaseDurationSeconds": 0}), {"Invalid spec.leaseDurationSeconds"}),
        (members(kinds.ROLE, rules=[RULE]), set()),
        (members(kinds.ROLE, rules=[{"verbs": []}]), {
            "Required rules[0].verbs",
            "Required rules[0].apiGroups",
            "Required rules[0].resources",
        }),
        (members(kinds.ROLE, rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}]), {
            "Invalid rules[0].nonResourceURLs",
        }),
        (members(kinds.CLUSTER_ROLE, rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}]), set()),
        (members(kinds.CLUSTER_ROLE_BINDING, roleRef=ROLE, subjects=[{"kind": "ServiceAccount", "name": "s"}]), {
            "Required subjects[0].namespace",
        }),
        (members(kinds.ROLE_BINDING, roleRef=ROLE, subjects=[{"kind": "User", "name": "u"}]), {
            "NotSupported subjects[0].apiGroup",
        }),
        (members(kinds.ROLE_BINDING, roleRef={**ROLE, "kind": "X", "name": ""}), {
            "NotSupported roleRef.kind",
            "Required roleRef.name",
        }),
    ],
)  # fmt: skip
def test_new_objects(case: tuple[kinds.Kind[Any], dict[str, Any]], faults: set[str]) -> None:
    assert create(*case) == faults


def test_system_priorities_are_reserved() -> None:
    tree = named("PriorityClass", value=5)
    tree["metadata"]["name"] = "system-mine"
    assert create(kinds.PRIORITY_CLASS, tree) == {"Forbidden metadata.name"}
    assert update(kinds.PRIORITY_CLASS, named("PriorityClass", value=6), named("PriorityClass", value=5)) == {
        "Forbidden value"
    }


@pytest.mark.parametrize(
    ("kind", "new", "old", "faults"),
    [
        (kinds.SECRET, {"type": "a"}, {"type": "b"}, {"Invalid type"}),
        (kinds.CONFIG_MAP, {"data": {"a": "c"}, "immutable": True}, {"data": {"a": "b"}, "immutable": True}, {
            "Forbidden data",
        }),
        (kinds.CONFIG_MAP, {"data": {"a": "b"}}, {"data": {"a": "b"}, "immutable": True}, {"Forbidden immutable"}),
        (kinds.ROLE_BINDING, {"roleRef": ROLE}, {"roleRef": {**ROLE, "name": "s"}}, {"Invalid roleRef"}),
        (kinds.NODE, {"spec": {"providerID": "b"}}, {"spec": {"providerID": "a"}}, {"Forbidden spec.providerID"}),
        (kinds.NODE, {"spec": {"providerID": "b"}}, {"spec": {}}, set()),
    ],
)  # fmt: skip
def test_what_is_fixed(kind: kinds.Kind[Any], new: dict[str, Any], old: dict[str, Any], faults: set[str]) -> None:
    assert update(kind, named(kind.kind, **new), named(kind.kind, **old)) == faults


def test_phase_of_a_namespace_follows_its_deletion() -> None:
    old = named("Namespace", status={"phase": "Active"})
    new = named("Namespace", status={"phase": "Terminating"})
    assert update(kinds.NAMESPACE, new, old, "status") == {"Invalid status.Phase"}
    for tree in (old, new):
        tree["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    assert update(kinds.NAMESPACE, new, old, "status") == set()


BASIC = {"schedulingPolicy": {"basic": {}}}
CLAIM = {"name": "a", "resourceClaimTemplateName": "t"}


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        (BASIC, set()),
        ({}, {"Invalid spec.schedulingPolicy"}),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, {"Invalid spec.schedulingPolicy.gang.minCount"}),
        ({**BASIC, "resourceClaims": [CLAIM, CLAIM]}, {"Duplicate spec.resourceClaims[1].name"}),
        ({**BASIC, "resourceClaims": [CLAIM] * 5}, {"TooMany spec.resourceClaims"}),
    ],
)
def test_pod_groups(spec: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.POD_GROUP, named("PodGroup", spec=spec)) == faults


def test_claims_of_a_group_are_fixed() -> None:
    old = named("PodGroup", spec={**BASIC, "resourceClaims": [CLAIM]})
    assert update(kinds.POD_GROUP, named("PodGroup", spec=BASIC), old) == {"Invalid spec.resourceClaims"}
    status = {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "x"}]}
    assert update(kinds.POD_GROUP, {**old, "status": status}, old, "status") == set()
    status = {"resourceClaimStatuses": [{"name": "z"}]}
    assert update(kinds.POD_GROUP, {**old, "status": status}, old, "status") == {
        "Invalid status.resourceClaimStatuses[0].name"
    }
