"""Every file in examples/ is applied to an embedded cluster by hand, as a reader would, and its pods run.

The files of examples/driver belong to test_example_driver.py. A file that is new in examples/ is run without a word
here; one whose pods are meant to wait is named in WAITING with the words that the scheduler has for it.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubedra.base.yaml import load_all
from kubedra.cluster.state import Running
from tests.interop.embedded import DEMO_FLEET, ROOT, embedded_cluster, kubedra, kubedra_result

pytestmark = pytest.mark.system

EXAMPLES = ROOT / "examples"
OF_OTHERS = EXAMPLES / "driver"
CLASS = EXAMPLES / "demo" / "02-big-gpu.yaml"
# What an example builds on, besides the class of devices that all of them ask for.
NEEDS = {"demo/03-pair-split.yaml": "demo/03-holder.yaml"}
# pod -> what its PodScheduled condition says
WAITING = {"too-big": "cannot allocate all claims", "pair-split": "cannot allocate all claims"}

Tree = dict[str, Any]


def documents(path: Path) -> list[Tree]:
    return [document.value for document in load_all(path.read_text(encoding="utf-8"), str(path)) if document.value]


FLEETS = sorted(path for path in EXAMPLES.rglob("*.yaml") if documents(path)[0].get("kind") == "Fleet")
FILES = sorted(path for path in EXAMPLES.rglob("*.yaml") if path not in FLEETS and OF_OTHERS not in path.parents)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with (
        tempfile.TemporaryDirectory(prefix="kubedra-examples-") as folder,
        embedded_cluster(Path(folder), "--fleet", str(DEMO_FLEET)) as state,
    ):
        yield state


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_its_pods_run_or_wait_for_the_reason_that_it_shows(cluster: Running, path: Path) -> None:
    place = ("--kubeconfig", cluster.kubeconfig)
    needed = NEEDS.get(str(path.relative_to(EXAMPLES)))
    files = [*([EXAMPLES / needed] if needed else []), path]
    # Only the class: other objects of that file would take devices.
    device_class = next(tree for tree in documents(CLASS) if tree["kind"] == "DeviceClass")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as handle:
        json.dump(device_class, handle)
        handle.flush()
        kubedra("apply", "-f", handle.name, *place)
    try:
        for file in files:
            kubedra("apply", "-f", str(file), *place)
        wanted = sum(pods_of(tree) for file in files for tree in documents(file))
        assert wanted, f"{path} has no pods: how would anybody see that it works?"
        pods = settled(cluster, wanted)
        for pod in pods:
            name, status = pod["metadata"]["name"], pod["status"]
            if name in WAITING:
                said = [c.get("message", "") for c in status["conditions"] if c["type"] == "PodScheduled"]
                assert said and WAITING[name] in said[0]
            else:
                assert status["phase"] == "Running", f"{name}: {status}"
    finally:
        for file in reversed(files):
            kubedra("delete", "-f", str(file), *place)
        assert not settled(cluster, 0)


def test_the_log_of_a_nodes_driver_tells_what_it_did(cluster: Running) -> None:
    data = str(Path(cluster.kubeconfig).parent)
    place = ("--kubeconfig", cluster.kubeconfig)
    first = str(EXAMPLES / "first" / "claim.yaml")
    kubedra("apply", "-f", first, *place)
    (pod,) = settled(cluster, 1)
    node = pod["spec"]["nodeName"]
    kubedra("delete", "-f", first, *place)
    assert not settled(cluster, 0)
    log = kubedra("logs", f"driver/{node}", "--data", data)
    for said in ("driver gpu.example.com is registered", "prepared claim default/my-card: ", "unprepared claim"):
        assert f"node {node}: {said}" in log
    refused = kubedra_result("logs", "driver/h10-0", "--data", data)
    assert refused.returncode == 1 and "did you mean 'h100-0'?" in refused.stderr


def test_no_example_is_left_out() -> None:
    known = {*FLEETS, *FILES, *OF_OTHERS.rglob("*.yaml")}
    assert known == {*EXAMPLES.rglob("*.yaml")}
    assert {str(path.relative_to(EXAMPLES)) for path in FILES} >= {*NEEDS, *NEEDS.values()}


def pods_of(tree: Tree) -> int:
    if tree["kind"] == "Pod":
        return 1
    return int(tree["spec"].get("replicas", 1)) if tree["kind"] in ("Deployment", "StatefulSet", "ReplicaSet") else 0


def settled(cluster: Running, wanted: int) -> list[Tree]:
    """All pods, once there are so many and each of them runs or waits with a reason."""
    deadline = time.monotonic() + 60
    while True:
        pods: list[Tree] = json.loads(kubedra("get", "pods", "-o", "json", "--kubeconfig", cluster.kubeconfig))["items"]
        if len(pods) == wanted and all(_settled(pod) for pod in pods):
            return pods
        shown = {pod["metadata"]["name"]: pod["status"] for pod in pods}
        assert time.monotonic() < deadline, f"{wanted} pods were to settle: {shown}"
        time.sleep(0.2)


def _settled(pod: Tree) -> bool:
    if pod["metadata"]["name"] in WAITING:
        return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in pod["status"].get("conditions", ()))
    return str(pod["status"].get("phase")) != "Pending"
