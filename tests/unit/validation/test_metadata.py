"""Metadata: rules that hold for every kind."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra.api import kinds
from tests.unit.validation.cases import create, named, update


def with_metadata(**members: Any) -> dict[str, Any]:
    tree = named("ConfigMap")
    tree["metadata"] = {**tree["metadata"], **members}
    return tree


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


@pytest.mark.parametrize(
    ("members", "faults"),
    [
        ({}, set()),
        ({"name": ""}, {"Required metadata.name"}),
        ({"name": "A"}, {"Invalid metadata.name"}),
        ({"generateName": "a-"}, set()),
        ({"generateName": "A"}, {"Invalid metadata.generateName"}),
        ({"namespace": "a.b"}, {"Invalid metadata.namespace"}),
        ({"labels": {"a b": "c"}}, {"Invalid metadata.labels"}),
        ({"labels": {"a": "!"}}, {"Invalid metadata.labels"}),
        ({"annotations": {"UP/x": "any thing!"}}, set()),
        ({"annotations": {"a": "x" * 262144}}, {"TooLong metadata.annotations"}),
        ({"finalizers": ["orphan", "example.com/x"]}, set()),
        ({"finalizers": ["x"]}, {"Invalid metadata.finalizers[0]"}),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, {"Invalid metadata.finalizers"}),
        ({"ownerReferences": [OWNER]}, set()),
        ({"ownerReferences": [{**OWNER, "uid": ""}]}, {"Invalid metadata.ownerReferences[0].uid"}),
        ({"ownerReferences": [{**OWNER, "kind": "Event"}]}, {"Invalid metadata.ownerReferences[0]"}),
        ({"ownerReferences": [{**OWNER, "controller": True}] * 2}, {"Invalid metadata.ownerReferences"}),
    ],
)
def test_new_objects(members: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.CONFIG_MAP, with_metadata(**members)) == faults


@pytest.mark.parametrize(
    ("members", "faults"),
    [
        ({"labels": {"a": "b"}}, set()),
        ({"uid": "other"}, {"Invalid metadata.uid"}),
        ({"deletionTimestamp": "2020-01-01T00:00:00Z"}, {"Invalid metadata.deletionTimestamp"}),
        ({"generation": -1}, {"Invalid metadata.generation"}),
    ],
)
def test_updates(members: dict[str, Any], faults: set[str]) -> None:
    assert update(kinds.CONFIG_MAP, with_metadata(**members), with_metadata()) == faults


def test_deleted_objects_get_no_new_finalizers() -> None:
    gone = {"deletionTimestamp": "2020-01-01T00:00:00Z"}
    old = with_metadata(**gone, finalizers=["a/b"])
    assert update(kinds.CONFIG_MAP, with_metadata(**gone, finalizers=["a/b", "c/d"]), old) == {
        "Forbidden metadata.finalizers"
    }
    assert update(kinds.CONFIG_MAP, with_metadata(**gone), old) == set()


def test_cluster_kinds_have_no_namespace() -> None:
    tree = named("DeviceClass")
    tree["metadata"]["namespace"] = "default"
    assert create(kinds.DEVICE_CLASS, tree) == {"Forbidden metadata.namespace"}


def test_role_names_may_hold_colons() -> None:
    tree = named("ClusterRole")
    tree["metadata"]["name"] = "system:Node"
    assert create(kinds.CLUSTER_ROLE, tree) == set()
    tree["metadata"]["name"] = "a/b"
    assert create(kinds.CLUSTER_ROLE, tree) == {"Invalid metadata.name"}
