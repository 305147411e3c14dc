"""``kubedra why`` against a cluster that runs: what a person would type, and what comes out."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubedra.cluster.state import Running
from tests.interop.embedded import DEMO_FLEET, embedded_cluster, kubedra, kubedra_result

pytestmark = pytest.mark.system
GPU = "gpu.example.com"
Tree = dict[str, Any]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with (
        tempfile.TemporaryDirectory(prefix="kubedra-why-") as folder,
        embedded_cluster(Path(folder), "--fleet", str(DEMO_FLEET)) as state,
    ):
        selector = {"cel": {"expression": f'device.driver == "{GPU}"'}}
        apply(state, _object("DeviceClass", GPU, {"selectors": [selector]}, "resource.k8s.io/v1"))
        yield state


def _object(kind: str, name: str, spec: Tree, version: str = "v1") -> Tree:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def claim(name: str, *, parameters: Tree | None = None, count: int = 1) -> Tree:
    request = {"name": "gpu", "exactly": {"deviceClassName": GPU, "count": count}}
    devices: Tree = {"requests": [request]}
    if parameters is not None:
        devices["config"] = [{"opaque": {"driver": GPU, "parameters": parameters}}]
    return _object("ResourceClaim", name, {"devices": devices}, "resource.k8s.io/v1")


def pod(name: str, **spec: Any) -> Tree:
    container = {"name": "main", "image": "x", "command": ["sleep", "60"], "resources": {"claims": [{"name": "gpu"}]}}
    return _object(
        "Pod",
        name,
        {
            "terminationGracePeriodSeconds": 0,
            "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            "containers": [container],
            **spec,
        },
    )


def apply(state: Running, *trees: Tree) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as handle:
        json.dump({"apiVersion": "v1", "kind": "List", "items": list(trees)}, handle)
        handle.flush()
        kubedra("apply", "-f", handle.name, "--kubeconfig", state.kubeconfig)


def why(state: Running, what: str, until: Callable[[Tree], bool]) -> Tree:
    """The answer, asked again until it says what is awaited (the cluster needs its moments)."""
    end = time.monotonic() + 30
    while True:
        done = kubedra_result("why", what, "-o", "json", "--kubeconfig", state.kubeconfig)
        answer: Tree = json.loads(done.stdout) if done.stdout.startswith("{") else {"reasons": [], "state": ""}
        if until(answer) or time.monotonic() > end:
            assert until(answer), done.stdout + done.stderr
            assert done.returncode == (0 if answer["fits"] else 3)
            return answer
        time.sleep(0.3)


def codes(answer: Tree) -> list[str]:
    return [reason["code"] for reason in answer["reasons"]]


def test_a_pod_that_gets_its_device_runs(cluster: Running) -> None:
    apply(cluster, claim("good"), pod("good"))
    answer = why(cluster, "pod/good", lambda a: a["state"] == "runs")
    assert answer["fits"]


def test_what_does_not_fit_is_explained_with_remedies(cluster: Running) -> None:
    apply(cluster, claim("many", count=9), pod("many"))
    answer = why(cluster, "pod/many", lambda a: bool(codes(a)) and a["state"] == "waits")
    assert codes(answer) == ["too-few-on-one-node"]
    remedy = answer["remedies"][0]
    assert remedy["code"] == "lower-count"
    assert "Ask for 8 instead of 9" in remedy["text"]


def test_the_words_of_a_driver_that_can_not_prepare_are_repeated(cluster: Running) -> None:
    apply(cluster, claim("bad", parameters={"prepareError": "GPU has fallen off the bus"}), pod("bad"))
    answer = why(cluster, "claim/bad", lambda a: "prepare-failed" in codes(a))
    assert "GPU has fallen off the bus" in answer["reasons"][0]["detail"]
    assert GPU in answer["reasons"][0]["subject"]


def test_a_pod_that_bypassed_the_scheduler_is_told_so(cluster: Running) -> None:
    # C76
    apply(cluster, claim("direct"), pod("direct", nodeName="h100-0"))
    answer = why(cluster, "pod/direct", lambda a: bool(codes(a)))
    assert codes(answer)[0] == "scheduler-bypassed"


def test_a_dump_made_from_the_cluster_gives_the_same_answer(cluster: Running, tmp_path: Path) -> None:
    apply(cluster, claim("twin", count=9), pod("twin"))
    live = why(cluster, "pod/twin", lambda a: bool(codes(a)) and a["state"] == "waits")
    items: list[Tree] = []
    for kind in ("nodes", "pods", "resourceslices", "deviceclasses", "resourceclaims"):
        found = json.loads(kubedra("get", kind, "-A", "-o", "json", "--kubeconfig", cluster.kubeconfig))
        items += found["items"]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    dumped = json.loads(kubedra_result("why", "pod/twin", "--dump", str(path), "-o", "json").stdout)
    # Ages differ, everything else does not.
    assert codes(dumped) == codes(live)
    assert [request["steps"] for request in dumped["requests"]] == [request["steps"] for request in live["requests"]]
    assert dumped["nodes"] == live["nodes"]
    assert [remedy["code"] for remedy in dumped["remedies"]] == [remedy["code"] for remedy in live["remedies"]]
