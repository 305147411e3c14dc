"""``kubedra allocate`` and ``kubedra check allocations`` as people and scripts call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubedra.allocation.finder import Aborted
from kubedra.allocation.outcomes import AllocationError
from kubedra.cli.allocate import allocate
from kubedra.cli.check import check
from kubedra.cli.output import explain_failure
from tests.unit.allocation.scenarios import claim, device, exactly, resource_slice, world

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: c}
spec: {extendedResourceName: example.com/gpu}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: d.example
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: a, basic: {attributes: {kind: {string: gpu}}}}
  - {name: b, basic: {}}
"""

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: NAME}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c, count: COUNT}}]}}
---
"""

POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: m, resources: {claims: [{name: g}], limits: {example.com/gpu: 1}}}]
  resourceClaims: [{name: g, resourceClaimTemplateName: t}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}}
"""


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.yaml"
    path.write_text(CLUSTER)
    return str(path)


def call(*arguments: str, text: str | bytes = "") -> Result:
    return CliRunner().invoke(allocate, arguments, input=text, standalone_mode=False)


def test_scenarios_are_answered_line_by_line_in_order() -> None:
    good = world([resource_slice("s", [device("a")])], claim(exactly(1)))
    lines = [json.dumps({**good, "name": "one"}), "not json", json.dumps({**good, "name": "two", "nodes": None})]
    answers = [json.loads(line) for line in call("--jsonl", text="\n".join(lines)).output.splitlines()]
    assert [a["name"] for a in answers] == ["one", "", "two"]
    (result,) = answers[0]["results"]
    assert result["allocations"][0]["devices"]["results"][0]["device"] == "a"
    assert answers[1]["error"].startswith("line 2: ")
    assert answers[2]["results"] == []


def test_hostile_scenarios_get_an_error_each() -> None:
    hostile: list[Any] = [
        {"allocatedState": {"devices": [5]}},
        {"allocatedState": {"capacity": {"a/b/c": {"x": "?"}}}},
        {"nodes": [5]},
        {"slices": [{"spec": {"devices": 7}}]},
        [],
        7,
    ]
    answers = [
        json.loads(line) for line in call("--jsonl", text="\n".join(map(json.dumps, hostile))).output.splitlines()
    ]
    assert len(answers) == len(hostile)
    assert all(a["error"] for a in answers)


def test_what_one_claim_gets_is_taken_for_the_next(dump: str, tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(
        CLAIM.replace("NAME", "one").replace("COUNT", "1") + CLAIM.replace("NAME", "two").replace("COUNT", "2")
    )
    result = call("-f", str(path), "--dump", dump)
    assert result.return_value == 3
    assert "claim default/one: n1" in result.output
    assert "claim default/two: does not fit" in result.output
    assert "held by default/one" in result.output


def test_a_pod_gets_its_template_claim_and_its_extended_resources(dump: str, tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(POD)
    result = call("-f", str(path), "--dump", dump, "-o", "json")
    assert result.return_value == 0
    (answer,) = json.loads(result.output)["answers"]
    devices = [r["device"] for c in answer["claims"] for r in c["allocation"]["devices"]["results"]]
    assert (answer["subject"], answer["node"], devices) == ("pod default/p", "n1", ["a", "b"])


def test_an_older_version_says_what_an_upgrade_would_change(dump: str, tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(
        POD.split("---")[0]
        .replace("claims: [{name: g}], ", "")
        .replace("resourceClaims: [{name: g, resourceClaimTemplateName: t}]", "")
    )
    result = call("-f", str(path), "--dump", dump, "--kubernetes-version", "1.34", "-o", "json")
    tree = json.loads(result.output)
    assert tree["kubernetesVersion"] == "1.34"
    assert tree["upgradeWouldChange"] == ["with Kubernetes 1.37 pod default/p would get another allocation"]


def test_check_allocations_finds_what_is_handed_out_twice(dump: str, tmp_path: Path) -> None:
    results = {"results": [{"request": "r", "driver": "d.example", "pool": "n1", "device": "a"}]}
    claims = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
            "status": {"allocation": {"devices": results}},
        }
        for name in ("x", "y")
    ]
    for count, code in ((1, 0), (2, 3)):
        path = tmp_path / f"{count}.yaml"
        path.write_text(CLUSTER + "---\n" + "\n---\n".join(json.dumps(c) for c in claims[:count]))
        arguments = ["allocations", "--dump", str(path), "-o", "json"]
        result = CliRunner().invoke(check, arguments, standalone_mode=False)
        assert result.return_value == code
        codes = [v["code"] for v in json.loads(result.output)["violations"]]
        assert codes == (["device-held-twice"] if count == 2 else ["node-selector-too-wide"][:0])


NODES = """
apiVersion: v1
kind: Node
metadata: {name: small}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: tainted}
spec: {taints: [{key: k, effect: NoSchedule}]}
status: {allocatable: {cpu: "8", memory: 4Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: runs, namespace: default}
spec: {nodeName: small, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
"""

PLAIN = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {containers: [{name: c, resources: {requests: {cpu: "CPU"}}}]}
---
"""


def test_a_pod_gets_no_node_that_can_not_take_it(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(NODES)
    pods = "".join(PLAIN.replace("NAME", f"p{i}").replace("CPU", cpu) for i, cpu in enumerate(("500m", "1", "400m")))
    (tmp_path / "pods.yaml").write_text(pods)
    result = call("-f", str(tmp_path / "pods.yaml"), "--dump", str(tmp_path / "dump.yaml"), "-o", "json")
    answers = json.loads(result.output)["answers"]
    # The second pod would fit beside the one that runs, but not beside the first as well.
    assert [a["node"] for a in answers] == ["small", "", "small"]
    assert "1 × Insufficient cpu" in answers[1]["problem"]
    assert "1 × node(s) had untolerated taint" in answers[1]["problem"]
    assert result.return_value == 3


def test_a_claim_that_no_server_would_take_does_not_fit(tmp_path: Path, dump: str) -> None:
    path = tmp_path / "claim.yaml"
    path.write_text(
        "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: x}, "
        "spec: {devices: {requests: [{name: r, deviceClassName: c, count: 2}]}}}"
    )
    result = call("-f", str(path), "--dump", dump)
    assert result.return_value == 3
    assert 'the API server would refuse ResourceClaim x: unknown field "spec.devices.requests[0].deviceClassName"' in (
        result.output
    )
    path.write_text(CLAIM.replace("NAME", "x").replace("COUNT", "-1"))
    assert "spec.devices.requests[0].exactly.count: Invalid value: -1" in call("-f", str(path), "--dump", dump).output


def test_a_workload_is_answered_for_pod_by_pod(tmp_path: Path, dump: str) -> None:
    path = tmp_path / "deployment.yaml"
    spec = "{containers: [{name: m}], resourceClaims: [{name: g, resourceClaimTemplateName: t}]}"
    head = "apiVersion: apps/v1, kind: Deployment, metadata: {name: w}"
    path.write_text(f"{{{head}, spec: {{replicas: 2, template: {{spec: {spec}}}}}}}\n---{POD.partition('---')[2]}")
    result = call("-f", str(path), "--dump", dump, "-o", "json")
    assert [(a["subject"], a["fits"]) for a in json.loads(result.output)["answers"]] == [
        ("pod default/w-0", True),
        ("pod default/w-1", True),
    ]
    path.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
    assert "there is no Pod, ResourceClaim" in str(call("-f", str(path), "--dump", dump).exception)


def test_a_search_that_is_cut_off_is_not_reported_as_impossible(
    tmp_path: Path, dump: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = AllocationError("timed out trying to allocate devices", timed_out=True)
    monkeypatch.setattr("kubedra.allocation.finder.Finder.find", lambda *_: Aborted("n1", cut))
    path = tmp_path / "claim.yaml"
    path.write_text(CLAIM.replace("NAME", "x").replace("COUNT", "1"))
    result = call("-f", str(path), "--dump", dump)
    assert result.output == "claim default/x: not known whether it fits: timed out trying to allocate devices\n"
    assert result.return_value == 1
    assert json.loads(call("-f", str(path), "--dump", dump, "-o", "json").output)["answers"][0]["fits"] is None


def test_holders_and_extended_resources_are_called_by_their_names(tmp_path: Path, dump: str) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(CLAIM.replace("NAME", "first").replace("COUNT", "2") + CLAIM.replace("NAME", "second"))
    text = path.read_text().replace("COUNT", "1")
    path.write_text(text)
    assert "held by default/first" in call("-f", str(path), "--dump", dump).output
    path.write_text(PLAIN.replace("NAME", "many").replace('cpu: "CPU"', "example.com/gpu: 3"))
    output = call("-f", str(path), "--dump", dump).output
    assert "container-0-request-0: 2 devices match" in output
    assert "3 requested" in output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"kind": "List", "items": 1}', "items: a list is expected here"),
        ('{"kind": "List", "items": [1]}', "item 0: an object is expected here"),
        ('{"kind": "List", "items": [{"kind": []}]}', "no Pod"),
        ('{"kind": "Pod", "apiVersion": 1, "metadata": {"name": "p"}, "spec": {}}', ""),
        ('{"kind": "Pod", "apiVersion": "v1", "metadata": 3}', "can't be read"),
    ],
)
def test_files_that_are_none_are_refused_in_a_sentence(tmp_path: Path, dump: str, text: str, says: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    result = call("-f", str(path), "--dump", dump)
    assert result.exception is None or explain_failure(result.exception)
    assert says in f"{result.exception}{result.output}"
