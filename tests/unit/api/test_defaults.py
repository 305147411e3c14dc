"""Defaults: what an object means where its author said nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubedra.api.defaults import apply_defaults
from kubedra.api.defaults.pods import pull_policy

NOW = "2026-01-02T03:04:05Z"
GROUP = "resource.k8s.io"


def filled(group: str, version: str, kind: str, tree: dict[str, Any]) -> dict[str, Any]:
    once = apply_defaults(group, version, kind, tree, now=NOW)
    assert apply_defaults(group, version, kind, copy.deepcopy(once), now="2030-01-01T00:00:00Z") == once
    return once


def request(tree: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    claim = filled(GROUP, version, "ResourceClaim", {"spec": {"devices": {"requests": [tree]}}})
    result: dict[str, Any] = claim["spec"]["devices"]["requests"][0]
    return result


@pytest.mark.parametrize(
    ("given", "result"),
    [
        ({}, {"allocationMode": "ExactCount", "count": 1}),
        ({"count": 0}, {"allocationMode": "ExactCount", "count": 1}),
        ({"count": 3}, {"allocationMode": "ExactCount", "count": 3}),
        ({"allocationMode": "All"}, {"allocationMode": "All"}),
        ({"allocationMode": "X", "count": -1}, {"allocationMode": "X", "count": -1}),
        (
            {"tolerations": [{}]},
            {"tolerations": [{"operator": "Equal"}], "allocationMode": "ExactCount", "count": 1},
        ),
    ],
)
def test_requests(given: dict[str, Any], result: dict[str, Any]) -> None:
    assert request({"exactly": copy.deepcopy(given)}) == {"exactly": result}
    assert request({"firstAvailable": [copy.deepcopy(given)]}) == {"firstAvailable": [result]}


def test_flattened_request_without_class_counts_as_prioritized() -> None:
    assert request({"count": 3}, "v1beta1") == {"count": 3}
    assert request({"deviceClassName": "c"}, "v1beta1") == {
        "deviceClassName": "c",
        "allocationMode": "ExactCount",
        "count": 1,
    }


def test_taints_count_as_added_now() -> None:
    devices = [{"taints": [{"key": "a"}, {"key": "b", "timeAdded": "2020-01-01T00:00:00Z"}]}]
    tree = filled(GROUP, "v1", "ResourceSlice", {"spec": {"devices": devices}})
    times = [taint["timeAdded"] for taint in tree["spec"]["devices"][0]["taints"]]
    assert times == [NOW, "2020-01-01T00:00:00Z"]
    rule = filled(GROUP, "v1", "DeviceTaintRule", {"spec": {}})
    assert rule == {"spec": {"taint": {"timeAdded": NOW}}}


def test_pool_status_limit() -> None:
    assert filled(GROUP, "v1alpha3", "ResourcePoolStatusRequest", {"spec": {}}) == {"spec": {"limit": 100}}


def test_pod_defaults() -> None:
    pod = filled("", "v1", "Pod", {"spec": {"containers": [{"name": "c", "image": "i"}]}})
    assert pod["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }


def test_requests_follow_limits_in_pods_only() -> None:
    container = {"resources": {"limits": {"cpu": "1", "a/b": "2"}, "requests": {"cpu": "500m"}}}
    pod = filled("", "v1", "Pod", {"spec": {"containers": [copy.deepcopy(container)]}})
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "a/b": "2"}
    workload = filled(
        "apps", "v1", "Deployment", {"spec": {"template": {"spec": {"containers": [copy.deepcopy(container)]}}}}
    )
    assert workload["spec"]["template"]["spec"]["containers"][0]["resources"] == container["resources"]


def test_pod_level_requests_come_from_containers_then_limits() -> None:
    spec = {
        "resources": {"limits": {"cpu": "4", "memory": "8Gi"}},
        "containers": [{"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "500m"}}}],
        "initContainers": [{"resources": {"requests": {"cpu": "2"}}}],
    }
    pod = filled("", "v1", "Pod", {"spec": spec})
    assert pod["spec"]["resources"]["requests"] == {"cpu": "2", "memory": "8Gi"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("host:5000/busybox", "Always"),
        ("host:5000/busybox:1", "IfNotPresent"),
        ("busybox@sha256:abc", "IfNotPresent"),
    ],
)
def test_pull_policy(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_volumes_without_source_are_empty_directories() -> None:
    volumes = [{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}]
    pod = filled("", "v1", "Pod", {"spec": {"containers": [], "volumes": volumes}})
    assert pod["spec"]["volumes"] == [
        {"name": "v", "emptyDir": {}},
        {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}},
    ]


def test_deployment_defaults() -> None:
    spec = filled("apps", "v1", "Deployment", {"spec": {}})["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)


def test_job_defaults() -> None:
    spec = filled("batch", "v1", "Job", {"spec": {"parallelism": 3}})["spec"]
    assert "completions" not in spec
    assert (spec["parallelism"], spec["backoffLimit"], spec["completionMode"]) == (3, 6, "NonIndexed")


def test_role_binding_subjects() -> None:
    tree = {"roleRef": {"kind": "Role"}, "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount"}]}
    binding = filled("rbac.authorization.k8s.io", "v1", "RoleBinding", tree)
    assert binding["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert [subject.get("apiGroup") for subject in binding["subjects"]] == ["rbac.authorization.k8s.io", None]


def test_namespace_carries_its_name() -> None:
    tree = filled("", "v1", "Namespace", {"metadata": {"name": "n", "labels": {"a": "b"}}})
    assert tree["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": "n"}


def test_unknown_kinds_are_left_alone() -> None:
    assert filled("example.com", "v1", "Thing", {"spec": {}}) == {"spec": {}}
