"""Public bug reports about the extended-resource bridge as tests, by their number in the collection (section E)."""

from __future__ import annotations

from kubedra.allocation.bridge import (
    ResourceNames,
    bridge_claim,
    bridged_resources,
    is_extended_name,
    placeholder_claim,
    provider,
)
from kubedra.api.codec import from_tree, to_tree
from kubedra.api.core_v1 import Pod
from kubedra.api.resource_v1 import DeviceClass
from tests.unit.allocation.scenarios import answer, device, devices_of, resource_slice, world


def gpu_class(name: str = "gpu", created: str = "2026-01-01T00:00:00Z") -> DeviceClass:
    metadata = {"name": name, "creationTimestamp": created}
    return from_tree(DeviceClass, {"metadata": metadata, "spec": {"extendedResourceName": "example.com/gpu"}})


def pod_of(resource: str) -> Pod:
    container = {"name": "c", "resources": {"limits": {resource: "1"}, "requests": {resource: "1"}}}
    return from_tree(Pod, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})


def test_c54_both_names_of_a_class_work() -> None:
    names = ResourceNames([gpu_class()])
    for resource in ("example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"):
        classes = bridged_resources(pod_of(resource), names)
        (request,) = bridge_claim(pod_of(resource), classes).requests
        assert request.exactly is not None
        assert (request.name, request.exactly.device_class_name) == ("container-0-request-0", "gpu")


def test_c56_a_class_that_comes_later_is_found() -> None:
    names = ResourceNames()
    assert bridged_resources(pod_of("example.com/gpu"), names) == {}
    names.update(gpu_class())
    assert list(bridged_resources(pod_of("example.com/gpu"), names)) == ["example.com/gpu"]
    names.update(gpu_class("newer", "2026-02-01T00:00:00Z"))
    assert names.class_for("example.com/gpu").metadata.name == "newer"  # type: ignore[union-attr]
    names.update(None, "newer")
    assert names.class_for("example.com/gpu").metadata.name == "gpu"  # type: ignore[union-attr]


def test_c57_zero_allocatable_means_the_device_plugin_is_gone() -> None:
    assert provider("example.com/gpu", True, {"example.com/gpu": "0"}) == "classes"
    assert provider("example.com/gpu", True, {}) == "classes"
    assert provider("example.com/gpu", True, {"example.com/gpu": "8"}) == "device-plugin"
    assert provider("example.com/gpu", False, {"example.com/gpu": "0"}) == "node"
    assert provider("example.com/gpu", False, {}) == "nobody"


def test_c58_a_node_with_both_uses_its_plugin_alone() -> None:
    assert provider("example.com/gpu", True, {"example.com/gpu": "8"}) == "device-plugin"


def test_c62_devices_that_stand_for_node_resources_can_be_bridged() -> None:
    pod = pod_of("deviceclass.resource.kubernetes.io/gpu")
    bridge = bridge_claim(pod, bridged_resources(pod, ResourceNames([gpu_class()])))
    tree = to_tree(placeholder_claim(pod, bridge, "uid"))
    mapped = device("a", {"cpu": 4}, nodeAllocatableResources={"cpu": {"mapping": {"capacityKey": "cpu"}}})
    classes = [{"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}]
    assert devices_of(answer(world([resource_slice("s", [mapped])], tree, classes=classes))) == ["a"]


def test_names_of_native_resources_are_never_bridged() -> None:
    for name in ("cpu", "kubernetes.io/x", "a.kubernetes.io/x", "notkubernetes.io/x", "requests.a.io/x", "plain"):
        assert not is_extended_name(name)
    assert provider("a.io/x", True, {"a.io/x": "no quantity"}) == "classes"


def test_c66_amounts_that_are_no_whole_numbers_ask_for_nothing() -> None:
    container = {"name": "c", "resources": {"requests": {"example.com/gpu": "500m"}}}
    pod = from_tree(Pod, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})
    assert bridged_resources(pod, ResourceNames([gpu_class()])) == {}


def test_short_lived_containers_use_what_later_ones_hold() -> None:
    def container(name: str, count: int, **more: str) -> dict[str, object]:
        return {"name": name, "resources": {"requests": {"example.com/gpu": str(count), "cpu": "1"}}, **more}

    spec = {
        "initContainers": [container("i0", 3), container("side", 1, restartPolicy="Always"), container("i2", 4)],
        "containers": [container("m", 2)],
    }
    pod = from_tree(Pod, {"metadata": {"name": "p"}, "spec": spec})
    made = bridge_claim(pod, bridged_resources(pod, ResourceNames([gpu_class()])))
    # i0 finds 1 + 2 later on; i2 finds only the 2 of m and lacks 2. cpu comes first among the sorted names.
    assert {r.name: r.exactly.count for r in made.requests if r.exactly is not None} == {
        "container-1-request-1": 1,
        "container-2-request-1": 2,
        "container-3-request-1": 2,
    }
    assert [(m.container_name, m.request_name) for m in made.mappings] == [
        ("side", "container-1-request-1"),
        ("m", "container-3-request-1"),
        ("i0", "container-1-request-1"),
        ("i0", "container-3-request-1"),
        ("i2", "container-3-request-1"),
        ("i2", "container-2-request-1"),
    ]
