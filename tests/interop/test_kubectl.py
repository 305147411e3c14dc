"""kubectl as people use it, command by command, against an embedded cluster with nodes and cards."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import pytest

from tests.interop.embedded import DEMO_FLEET, ROOT, embedded_cluster
from tests.tools import require_tool

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

CLASS = "examples/demo/02-big-gpu.yaml"


class Kubectl:
    """Runs kubectl against one cluster and namespace."""

    def __init__(self, path: str, kubeconfig: str, cache: Path) -> None:
        self._path = path
        self._environment = os.environ | {"KUBECONFIG": kubeconfig, "HOME": str(cache), "KUBECACHEDIR": str(cache)}

    def result(
        self, *arguments: str, stdin: str | None = None, timeout: float = 40
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._path, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self._environment,
            cwd=ROOT,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = 40) -> str:
        done = self.result(*arguments, stdin=stdin, timeout=timeout)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def environment(self, **more: str) -> dict[str, str]:
        return self._environment | more

    @contextmanager
    def running(self, *arguments: str) -> Iterator[TextIO]:
        """What a command prints while it runs; it is ended with the block."""
        with subprocess.Popen(
            [self._path, *arguments], stdout=subprocess.PIPE, text=True, env=self._environment, cwd=ROOT
        ) as process:
            assert process.stdout is not None
            try:
                yield process.stdout
            finally:
                process.terminate()


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    path = require_tool("kubectl")
    folder = tmp_path_factory.mktemp("kubectl")
    with embedded_cluster(folder, "--fleet", str(DEMO_FLEET)) as state:
        run = Kubectl(path, state.kubeconfig, folder / "home")
        run("apply", "-f", CLASS)
        run("wait", "--for=condition=Ready", "pod/big", "--timeout=20s")
        yield run


def until(question: Callable[[], Any], seconds: float = 15) -> Any:
    end = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def pod(name: str, command: str, **spec: Any) -> str:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", command]}
    body = {"terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body})


def test_get_shows_tables_of_what_people_look_at(kubectl: Kubectl) -> None:
    assert kubectl("get", "pods").splitlines()[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert kubectl("get", "pod", "big").splitlines()[1].split()[:4] == ["big", "1/1", "Running", "0"]
    assert "NOMINATED NODE" in kubectl("get", "pods", "-o", "wide")
    assert kubectl("get", "resourceclaims").splitlines()[0].split() == ["NAME", "STATE", "AGE"]
    assert "allocated,reserved" in kubectl("get", "resourceclaims", "-A")
    heads = ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert kubectl("get", "resourceslices").splitlines()[0].split() == heads
    assert kubectl("get", "deviceclasses").splitlines()[0].split() == ["NAME", "AGE"]
    assert kubectl("get", "nodes").splitlines()[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]


def test_get_in_every_form_of_output(kubectl: Kubectl) -> None:
    assert kubectl("get", "pod", "big", "-o", "name").strip() == "pod/big"
    assert kubectl.json("get", "pod", "big")["metadata"]["name"] == "big"
    assert "kind: Pod" in kubectl("get", "pod", "big", "-o", "yaml")
    assert kubectl("get", "pod", "big", "-o", "jsonpath={.spec.nodeName}") == "a100-0"
    columns = kubectl("get", "pods", "-o", "custom-columns=N:.metadata.name,NODE:.spec.nodeName")
    assert columns.splitlines()[0].split() == ["N", "NODE"]
    assert "LABELS" in kubectl("get", "nodes", "--show-labels").splitlines()[0]
    assert "a100-0" in kubectl("get", "nodes", "-l", "pool=dra")
    assert "old-24-0" not in kubectl("get", "nodes", "-l", "pool=dra")
    assert "big" in kubectl("get", "pods", "--field-selector", "status.phase=Running")


def test_get_watch_shows_changes(kubectl: Kubectl) -> None:
    with kubectl.running("get", "configmap", "-w", "-o", "name") as lines:
        time.sleep(0.5)
        kubectl("create", "configmap", "watched", "--from-literal=a=b")
        assert any("watched" in line for line in lines)
    kubectl("delete", "configmap", "watched")


def test_describe_tells_the_whole_story(kubectl: Kubectl) -> None:
    text = kubectl("describe", "pod", "big")
    assert "Successfully assigned default/big to a100-0" in text
    assert "a100-0/127.0.0.1" in text
    assert "Allocation" in kubectl("describe", "resourceclaim")
    for what in ("node/a100-0", "deviceclass/gpu.example.com", "resourceslice"):
        assert kubectl("describe", *what.split()).strip()


def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1", "b": "1"}}
    assert "created" in kubectl("apply", "-f", "-", stdin=json.dumps(body))
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=json.dumps(body))
    body["data"] = {"a": "2"}
    assert "configured" in kubectl("apply", "-f", "-", stdin=json.dumps(body))
    assert kubectl.json("get", "configmap", "applied")["data"] == {"a": "2"}
    different = kubectl.result("diff", "-f", "-", stdin=json.dumps(body | {"data": {"a": "3"}}))
    assert different.returncode == 1 and '+  a: "3"' in different.stdout
    assert kubectl.result("diff", "-f", "-", stdin=json.dumps(body)).returncode == 0


def test_apply_on_the_server_tells_conflicts(kubectl: Kubectl) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared-fields"}, "data": {"a": "1"}}
    kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=json.dumps(body))
    body["data"] = {"a": "2"}
    refused = kubectl.result("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=json.dumps(body))
    assert refused.returncode == 1 and 'conflict with "one"' in refused.stderr
    kubectl("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", stdin=json.dumps(body))
    assert kubectl.json("get", "configmap", "shared-fields")["data"] == {"a": "2"}


def test_create_patch_label_annotate_and_delete(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "small", "--from-literal=a=b")
    kubectl("label", "configmap", "small", "colour=red")
    kubectl("annotate", "configmap", "small", "note=x")
    kubectl("patch", "configmap", "small", "--type=merge", "-p", '{"data":{"c":"d"}}')
    kubectl("patch", "configmap", "small", "--type=json", "-p", '[{"op":"remove","path":"/data/a"}]')
    kubectl("patch", "configmap", "small", "-p", '{"data":{"e":"f"}}')
    found = kubectl.json("get", "configmap", "small")
    assert found["data"] == {"c": "d", "e": "f"}
    assert found["metadata"]["labels"] == {"colour": "red"}
    kubectl("label", "configmap", "small", "colour-")
    assert "labels" not in kubectl.json("get", "configmap", "small")["metadata"]
    assert "deleted" in kubectl("delete", "configmap", "small")
    assert kubectl.result("get", "configmap", "small").returncode == 1
    assert "not found" in kubectl.result("get", "configmap", "small").stderr


def test_edit_goes_through_an_editor(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "configmap", "edited", "--from-literal=a=before")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/before/after/" "$1"\n')
    editor.chmod(0o755)
    done = subprocess.run(
        ["kubectl", "edit", "configmap", "edited"],
        env=kubectl.environment(EDITOR=str(editor)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert kubectl.json("get", "configmap", "edited")["data"] == {"a": "after"}


def test_a_deployment_is_created_scaled_rolled_out_and_undone(kubectl: Kubectl) -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "one", "command": ["sleep", "3600"]}],
        },
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(body))
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    kubectl("scale", "deployment", "web", "--replicas=3")
    until(lambda: kubectl.json("get", "deployment", "web")["status"].get("readyReplicas") == 3)
    kubectl("set", "image", "deployment/web", "c=two")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    images = {p["spec"]["containers"][0]["image"] for p in kubectl.json("get", "pods", "-l", "app=web")["items"]}
    until(lambda: len(kubectl.json("get", "pods", "-l", "app=web")["items"]) == 3)
    assert "two" in images
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    assert kubectl.json("get", "deployment", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == "one"
    everything = kubectl("get", "all")
    assert "deployment.apps/web" in everything and "replicaset.apps/web" in everything
    kubectl("delete", "deployment", "web")
    until(lambda: not kubectl.json("get", "pods", "-l", "app=web")["items"])


def test_run_wait_and_logs(kubectl: Kubectl) -> None:
    kubectl("run", "runner", "--image=busybox", "--restart=Never", "--command", "--", "sh", "-c", "echo hello; exit 0")
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/runner", "--timeout=20s")
    assert kubectl("logs", "runner") == "hello\n"
    kubectl("delete", "pod", "runner")


def test_logs_follow_tail_since_timestamps_and_previous(kubectl: Kubectl) -> None:
    script = (
        'for i in 1 2 3; do echo line $i; sleep 0.2; done; if [ -e "$KUBEDRA_VOLUME_MARK/x" ]; then sleep 3600; fi; '
    )
    script += 'touch "$KUBEDRA_VOLUME_MARK/x"; exit 3'
    spec = {
        "restartPolicy": "Always",
        "volumes": [{"name": "mark", "emptyDir": {}}],
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "command": ["sh", "-c", script],
                "volumeMounts": [{"name": "mark", "mountPath": "/mark"}],
            }
        ],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "talker"}, "spec": spec}
    kubectl("create", "-f", "-", stdin=json.dumps(body))

    def restarted() -> bool:
        statuses = kubectl.json("get", "pod", "talker")["status"].get("containerStatuses", [])
        return bool(statuses) and statuses[0]["restartCount"] == 1 and "running" in statuses[0]["state"]

    until(restarted, 30)
    until(lambda: "line 3" in kubectl("logs", "talker"))
    assert kubectl("logs", "talker", "--previous").splitlines() == ["line 1", "line 2", "line 3"]
    assert kubectl("logs", "talker", "--tail=1") == "line 3\n"
    assert len(kubectl("logs", "talker", "--since=1h").splitlines()) == 3
    stamped = kubectl("logs", "talker", "--timestamps", "--tail=1").split()
    assert stamped[0].startswith("20") and stamped[0].endswith("Z") and stamped[1:] == ["line", "3"]
    with kubectl.running("logs", "-f", "talker") as lines:
        assert [lines.readline() for _ in range(3)] == ["line 1\n", "line 2\n", "line 3\n"]
        kubectl("delete", "pod", "talker", "--grace-period=0", "--force")
        assert lines.read() == ""


def test_events_tell_what_happened(kubectl: Kubectl) -> None:
    assert "Scheduled" in kubectl("events", "--for", "pod/big")
    assert "Scheduled" in kubectl("get", "events")


def test_explain_and_api_resources(kubectl: Kubectl) -> None:
    assert "exactly" in kubectl("explain", "resourceclaim.spec.devices.requests")
    listed = kubectl("api-resources", "--api-group=resource.k8s.io")
    for plural in ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"):
        assert plural in listed
    assert "resource.k8s.io/v1" in kubectl("api-versions")


def test_can_i_answers_from_the_same_code_that_decides(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    refused = kubectl.result("auth", "can-i", "delete", "nodes", "--as=nobody")
    assert refused.stdout.strip() == "no"
    denied = kubectl.result("get", "pods", "--as=nobody")
    assert denied.returncode == 1 and "forbidden" in denied.stderr


def test_cordon_and_uncordon(kubectl: Kubectl) -> None:
    kubectl("cordon", "old-80-0")
    assert "SchedulingDisabled" in kubectl("get", "node", "old-80-0")
    kubectl("uncordon", "old-80-0")
    assert "SchedulingDisabled" not in kubectl("get", "node", "old-80-0")


def test_drain_respects_disruption_budgets(kubectl: Kubectl) -> None:
    labels = {"app": "kept"}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"kubernetes.io/hostname": "old-80-0"},
            "containers": [{"name": "c", "image": "i", "command": ["sleep", "3600"]}],
        },
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kept"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(body))
    kubectl("create", "-f", "-", stdin=json.dumps(budget))
    kubectl("rollout", "status", "deployment/kept", "--timeout=30s")
    until(lambda: kubectl.json("get", "pdb", "kept").get("status", {}).get("currentHealthy") == 1)
    refused = kubectl.result("drain", "old-80-0", "--ignore-daemonsets", "--force", "--timeout=3s")
    assert refused.returncode == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget" in refused.stderr
    kubectl("delete", "pdb", "kept")
    assert "drained" in kubectl("drain", "old-80-0", "--ignore-daemonsets", "--force", "--timeout=20s")
    kubectl("uncordon", "old-80-0")
    kubectl("delete", "deployment", "kept")


@pytest.mark.parametrize("command", [["exec", "big", "--", "true"], ["attach", "big"], ["port-forward", "big", "0:80"]])
def test_what_is_not_there_yet_says_so(kubectl: Kubectl, command: list[str]) -> None:
    done = kubectl.result(*command, timeout=20)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_an_invalid_object_gets_every_error_at_once(kubectl: Kubectl) -> None:
    body = json.loads(pod("Bad_Name", "true"))
    body["spec"]["containers"][0]["name"] = "UPPER"
    body["spec"]["restartPolicy"] = "Sometimes"
    refused = kubectl.result("create", "-f", "-", stdin=json.dumps(body))
    assert refused.returncode == 1
    for part in ("metadata.name", "spec.containers[0].name", "spec.restartPolicy"):
        assert part in refused.stderr
    unknown = json.loads(pod("unknown", "true"))
    unknown["spec"]["containerz"] = []
    refused = kubectl.result("create", "-f", "-", stdin=json.dumps(unknown))
    assert 'unknown field "spec.containerz"' in refused.stderr
