"""Whether a pod may run on the node it was bound to."""

from __future__ import annotations

from typing import Any

from kubedra.api import codec
from kubedra.api.core_v1 import Node, Pod
from kubedra.node.pods.admission import pod_requests, refusal

NODE = codec.from_tree(Node, {"metadata": {"name": "n1", "labels": {"zone": "a"}}})
ALLOCATABLE = {"cpu": "2", "memory": "1Gi", "pods": "3", "example.com/gpu": "1"}


def build(requests: dict[str, str] | None = None, init: tuple[dict[str, Any], ...] = (), **spec: Any) -> Pod:
    container = {"name": "c", "resources": {"requests": requests or {}}, **spec.pop("container", {})}
    return codec.from_tree(Pod, {"spec": {"containers": [container], "initContainers": list(init), **spec}})


def test_what_fits_is_not_refused() -> None:
    pod = build({"cpu": "1", "memory": "1Gi", "example.com/gpu": "9", "served.by/dra": "1"})
    assert refusal(pod, NODE, [build({"cpu": "1"})], ALLOCATABLE) is None


def test_refusals_have_upstreams_sentences() -> None:
    assert refusal(build({"cpu": "1500m"}), NODE, [build({"cpu": "1"})], ALLOCATABLE) == (
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000",
    )
    assert refusal(build(), NODE, [build()] * 3, ALLOCATABLE) == (
        "OutOfpods",
        "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
    )
    port = {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}
    refused = refusal(build(**port), NODE, [build(**port)], ALLOCATABLE)
    assert refused is not None
    assert refused[0] == "NodePorts"
    refused = refusal(build(nodeSelector={"zone": "b"}), NODE, [], ALLOCATABLE)
    assert refused is not None
    assert refused[0] == "NodeAffinity"


def test_init_containers_count_by_the_largest_and_sidecars_stay() -> None:
    def init(name: str, cpu: str, **more: str) -> dict[str, Any]:
        return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}

    pod = build({"cpu": "1"}, (init("side", "1", restartPolicy="Always"), init("big", "3")))
    assert str(pod_requests(pod)["cpu"]) == "4"
    pod = build({"cpu": "1"}, (init("big", "3"), init("side", "1", restartPolicy="Always")))
    assert str(pod_requests(pod)["cpu"]) == "3"
