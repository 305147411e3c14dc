"""The requests that stand for extended resources, compared with what a real scheduler made of the same pods."""

from __future__ import annotations

from typing import Any

from kubedra.allocation.bridge import ResourceNames, bridge_claim, bridged_resources, provider
from kubedra.api.codec import from_tree, to_tree
from kubedra.api.core_v1 import Pod
from kubedra.api.resource_v1 import DeviceClass
from tests.shared_cases import read_cases


def shapes() -> list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], list[dict[str, Any]]]]:
    """(id, pod, its recorded status, its recorded claim, classes) of every pod with an extended-resource claim."""
    found = []
    for case in read_cases("cluster-observed.jsonl.gz"):
        classes = [o for o in case["objects"] if o["kind"] == "DeviceClass"]
        pods = {o["metadata"]["name"]: o for o in case["objects"] if o["kind"] == "Pod"}
        # Scenarios that change classes or nodes on the way say nothing about one state.
        if any(step["op"] in ("apply", "patch", "status", "delete") for step in case["steps"]):
            continue
        last = case["snapshots"][-1]
        claims = {c["metadata"]["name"]: c for c in last.get("claims", [])}
        for pod in last.get("pods", []):
            status = pod.get("status", {}).get("extendedResourceClaimStatus")
            name = pod["metadata"]["name"]
            if status and name in pods and status["resourceClaimName"] in claims:
                found.append((case["id"], pods[name], status, claims[status["resourceClaimName"]], classes))
    return found


def test_requests_and_mappings_are_those_of_a_real_scheduler() -> None:
    seen = 0
    for case, pod_tree, status, claim, class_trees in shapes():
        pod = from_tree(Pod, pod_tree)
        names = ResourceNames(from_tree(DeviceClass, tree) for tree in class_trees)
        allocatable: dict[str, str] = {}
        classes = {
            resource: device_class
            for resource, device_class in bridged_resources(pod, names).items()
            if provider(resource, True, allocatable) == "classes"
        }
        recorded = {m["resourceName"] for m in status["requestMappings"]}
        bridge = bridge_claim(pod, {name: classes[name] for name in classes if name in recorded})
        assert [to_tree(m) for m in bridge.mappings] == status["requestMappings"], case
        assert [to_tree(r) for r in bridge.requests] == claim["spec"]["devices"]["requests"], case
        seen += 1
    assert seen >= 30
