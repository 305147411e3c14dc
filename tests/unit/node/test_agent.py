"""The agent as a whole: pods come up, restart, end, are found again, and use devices."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.cdi.folder import SpecFolder
from kubedra.cdi.spec import ContainerEdits, Device, Spec
from kubedra.node.agent import Agent
from kubedra.node.settings import AgentSettings
from kubedra.wire.health import DeviceHealth
from kubedra.wire.paths import SocketPathTooLong
from tests.unit.node.agents import Node
from tests.unit.node.fake_api import FakeApi
from tests.unit.node.scripted_driver import ScriptedDriver, until


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.close()


def claim_for(node: Node, name: str, pod: dict[str, Any], **status: Any) -> dict[str, Any]:
    results = [{"request": "gpu", "driver": "gpu.example.com", "pool": "pool", "device": f"dev-{name}"}]
    return node.api.put(
        kinds.RESOURCE_CLAIM,
        {
            "metadata": {"name": name},
            "status": {
                "reservedFor": [{"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}],
                "allocation": {"devices": {"results": results}},
                **status,
            },
        },
        "default",
    )


def logs(node: Node, name: str) -> list[str]:
    files = sorted((node.paths.log_dir / "pods").glob(f"default_{name}_*/*/*.log"))
    return [line.split(" ", 3)[3] for file in files for line in file.read_text().splitlines()]


async def test_the_node_and_its_lease_are_registered_after_the_slices_were_wiped(node: Node) -> None:
    async with node.agent() as agent:
        await until(lambda: ("leases", "kube-node-lease", "n1") in node.api.objects)
        tree = node.api.tree(kinds.NODE, "n1")
        assert tree["status"]["capacity"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}
        assert tree["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": agent.port}}
        assert tree["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
        ready = next(c for c in tree["status"]["conditions"] if c["type"] == "Ready")
        assert ready["status"] == "True"
        assert node.api.calls[0] == ("delete_collection", "resourceslices", "spec.nodeName=n1")


async def test_a_pod_runs_to_its_end(node: Node) -> None:
    async with node.agent():
        node.pod("p", "echo hello; exit 0", restartPolicy="Never", container={"image": "busybox"})
        await until(lambda: node.phase("p") == "Succeeded")
        terminated = node.state("p")["terminated"]
        assert (terminated["exitCode"], terminated["reason"]) == (0, "Completed")
        assert logs(node, "p") == ["hello"]
        await until(lambda: "ImageIgnored" in dict(node.api.events()))
        await node.delete("p")
        await node.until_gone("p")


async def test_a_running_pod_is_stopped_on_deletion(node: Node) -> None:
    async with node.agent():
        node.pod("p")
        await until(lambda: node.phase("p") == "Running")
        status = node.status("p")
        assert {c["type"]: c["status"] for c in status["conditions"]} == dict.fromkeys(
            ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"), "True"
        )
        assert status["podIP"] == "127.0.0.1"
        await node.delete("p")
        await node.until_gone("p")
        last = [patch["status"] for name, patch in node.api.patches if name == "p"][-1]
        assert last["phase"] == "Failed"
        assert last["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


async def test_a_crashing_container_is_restarted_with_growing_waits(node: Node) -> None:
    async with node.agent():
        node.pod("p", "exit 4")
        await until(lambda: "CrashLoopBackOff" in str(node.state("p")))
        container = node.status("p")["containerStatuses"][0]
        assert container["lastState"]["terminated"]["exitCode"] == 4
        assert node.phase("p") == "Running"
        await until(lambda: node.status("p")["containerStatuses"][0]["restartCount"] >= 3)
        assert "BackOff" in dict(node.api.events())


async def test_init_containers_come_first_and_sidecars_stay(node: Node) -> None:
    init = [
        {"name": "one", "command": ["/bin/sh", "-c", "echo one"]},
        {"name": "side", "restartPolicy": "Always", "command": ["/bin/sh", "-c", "echo side; sleep 60"]},
        {"name": "two", "command": ["/bin/sh", "-c", "echo two"]},
    ]
    async with node.agent():
        node.pod("p", "echo main", restartPolicy="Never", initContainers=init)
        await until(lambda: node.phase("p") == "Succeeded")
        inits = {s["name"]: s["state"]["terminated"] for s in node.status("p")["initContainerStatuses"]}
        assert inits["one"]["finishedAt"] <= inits["two"]["startedAt"]
        assert inits["side"]["exitCode"] == 143
        assert sorted(logs(node, "p")) == ["main", "one", "side", "two"]


async def test_a_failing_init_container_fails_the_pod_that_must_not_restart(node: Node) -> None:
    async with node.agent():
        init = [{"name": "one", "command": ["/bin/sh", "-c", "exit 1"]}]
        node.pod("p", restartPolicy="Never", initContainers=init)
        await until(lambda: node.phase("p") == "Failed")
        assert node.state("p") == {"waiting": {"reason": "PodInitializing"}}


async def test_environment_and_volumes_come_from_the_api(node: Node) -> None:
    node.api.put(kinds.CONFIG_MAP, {"metadata": {"name": "cm"}, "data": {"key": "value", "file": "text"}}, "default")
    secret = {"metadata": {"name": "s"}, "data": {"password": base64.b64encode(b"secret").decode()}}
    node.api.put(kinds.SECRET, secret, "default")
    container = {
        "env": [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "key"}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
            {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "D", "value": "$(A)-$(B)-$(NONE)"},
        ],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "token", "mountPath": "/token"}],
    }
    volumes = [
        {"name": "data", "configMap": {"name": "cm", "items": [{"key": "file", "path": "sub/file"}]}},
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
    ]
    script = 'echo "$A $B $C $D"; cat $KUBEDRA_VOLUME_DATA/sub/file; echo; cat $KUBEDRA_VOLUME_TOKEN/token'
    async with node.agent():
        node.pod("p", script, restartPolicy="Never", container=container, volumes=volumes)
        await until(lambda: node.phase("p") == "Succeeded")
        assert logs(node, "p") == ["value secret p value-secret-$(NONE)", "text", "a-token"]


async def test_a_missing_reference_is_said_and_tried_again(node: Node) -> None:
    async with node.agent():
        container = {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "key"}}}]}
        node.pod("p", "echo $A", restartPolicy="Never", container=container)
        await until(lambda: "waiting" in node.state("p"))
        waiting = {"reason": "CreateContainerConfigError", "message": 'configmap "cm" not found'}
        await until(lambda: node.state("p") == {"waiting": waiting})
        node.api.put(kinds.CONFIG_MAP, {"metadata": {"name": "cm"}, "data": {"key": "late"}}, "default")
        await until(lambda: node.phase("p") == "Succeeded")
        assert logs(node, "p") == ["late"]


async def test_a_container_without_a_command_says_why_it_waits(node: Node) -> None:
    async with node.agent():
        node.pod("p", container={"command": [], "image": "nginx"})
        await until(lambda: node.state("p").get("waiting", {}).get("reason") == "CreateContainerConfigError")
        assert "the process runtime does not run images (nginx)" in node.state("p")["waiting"]["message"]


async def test_a_pod_gets_its_devices_and_gives_them_back_before_it_is_over(node: Node) -> None:
    driver = ScriptedDriver(node.paths)
    async with node.agent() as agent:
        await driver.start()
        SpecFolder(node.paths.cdi_dir).write(
            "gpu", Spec("example.com/gpu", devices=(Device("d0", ContainerEdits(env=("GPU=d0",))),))
        )
        driver.cdi_ids["c"] = ("example.com/gpu=d0",)
        container = {"resources": {"claims": [{"name": "gpu"}]}}
        claims = [{"name": "gpu", "resourceClaimName": "c"}]
        pod = node.pod("p", "echo $GPU; exit 3", restartPolicy="Never", container=container, resourceClaims=claims)
        await until(lambda: "FailedPrepareDynamicResources" in dict(node.api.events()))
        note = dict(node.api.events())["FailedPrepareDynamicResources"]
        assert note.startswith("Failed to prepare dynamic resources: prepare dynamic resources: ")
        claim_for(node, "c", pod)
        driver.unprepare_error = "still in use"
        await until(lambda: ("unprepare", "c") in driver.calls)
        assert logs(node, "p") == ["d0"]
        assert node.phase("p") == "Running"
        assert "terminated" in node.state("p")
        resources = [{"resourceID": "example.com/gpu=d0", "health": "Unknown"}]
        status = node.status("p")["containerStatuses"][0]
        assert status["allocatedResourcesStatus"] == [{"name": "claim:gpu", "resources": resources}]
        driver.unprepare_error = ""
        await until(lambda: node.phase("p") == "Failed")
        assert "allocatedResourcesStatus" not in node.status("p")["containerStatuses"][0]
        assert agent.claims.states == ()
        assert b"dra_operations_duration_seconds_count" in agent._metrics_text()
    await driver.stop()


async def test_a_pod_that_is_not_reserved_starts_soon_after_it_is(node: Node) -> None:
    driver = ScriptedDriver(node.paths)
    await driver.start()
    async with node.agent():
        claims = [{"name": "gpu", "resourceClaimName": "c"}]
        pod = node.pod("p", resourceClaims=claims)
        claim = claim_for(node, "c", pod, reservedFor=[])
        text = f"pod p ({pod['metadata']['uid']}) is not allowed to use ResourceClaim c ({claim['metadata']['uid']})"
        await until(lambda: any(text in note for _, note in node.api.events()))
        claim_for(node, "c", pod)
        await until(lambda: node.phase("p") == "Running")
    await driver.stop()


async def test_containers_are_adopted_by_the_next_agent(node: Node) -> None:
    driver = ScriptedDriver(node.paths)
    await driver.start()
    claims = [{"name": "gpu", "resourceClaimName": "c"}]
    async with node.agent():
        pod = node.pod("p", resourceClaims=claims)
        claim_for(node, "c", pod)
        await until(lambda: node.phase("p") == "Running")
        before = node.status("p")["containerStatuses"][0]
        asked = driver.calls.count(("prepare", "c"))
    async with node.agent() as agent:
        await until(lambda: len(agent._workers) == 1)
        (worker,) = agent._workers.values()
        await until(lambda: worker.books["main"].running)
        after = node.status("p")["containerStatuses"][0]
        assert (after["containerID"], after["restartCount"]) == (before["containerID"], before["restartCount"])
        assert driver.calls.count(("prepare", "c")) == asked
        await node.delete("p")
        await node.until_gone("p")
        assert ("unprepare", "c") in driver.calls
    await driver.stop()


async def test_a_container_that_ended_while_no_agent_was_there_is_known_by_its_exit_code(node: Node) -> None:
    async with node.agent():
        node.pod("p", "while [ ! -e go ]; do sleep 0.02; done; exit 5", restartPolicy="Never")
        await until(lambda: node.phase("p") == "Running")
    (work,) = node.paths.pods_dir.glob("*/containers/main/0/work")
    (work / "go").write_text("")
    await until(lambda: (work.parent / "exit").exists())
    async with node.agent():
        await until(lambda: node.phase("p") == "Failed")
        assert node.state("p")["terminated"]["exitCode"] == 5


async def test_a_pod_that_was_removed_while_no_agent_was_there_is_cleaned_up(node: Node) -> None:
    driver = ScriptedDriver(node.paths)
    await driver.start()
    async with node.agent():
        pod = node.pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
        claim_for(node, "c", pod)
        await until(lambda: node.phase("p") == "Running")
    del node.api.objects[("pods", "default", "p")]
    async with node.agent() as agent:
        await node.until_gone("p")
        assert ("unprepare", "c") in driver.calls
        assert agent.claims.states == ()
    await driver.stop()


async def test_a_forced_deletion_still_stops_and_unprepares(node: Node) -> None:
    driver = ScriptedDriver(node.paths)
    await driver.start()
    async with node.agent():
        pod = node.pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
        claim_for(node, "c", pod)
        await until(lambda: node.phase("p") == "Running")
        await node.api.delete(kinds.POD, "p", "default")
        await node.until_gone("p")
        assert ("unprepare", "c") in driver.calls
    await driver.stop()


async def test_a_pod_that_does_not_fit_is_rejected(node: Node) -> None:
    async with node.agent():
        node.pod("big", container={"resources": {"requests": {"cpu": "8"}}})
        await until(lambda: node.phase("big") == "Failed")
        status = node.status("big")
        assert status["reason"] == "OutOfcpu"
        text = "Node didn't have enough resource: cpu, requested: 8000, used: 0, capacity: 4000"
        assert status["message"] == f"Pod was rejected: {text}"
        await node.delete("big")
        await until(lambda: ("pods", "default", "big") not in node.api.objects)


async def test_an_active_deadline_ends_a_pod(node: Node) -> None:
    async with node.agent():
        node.pod("p", activeDeadlineSeconds=1)
        await until(lambda: node.phase("p") == "Failed")
        assert node.status("p")["reason"] == "DeadlineExceeded"


async def test_too_long_a_socket_path_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(SocketPathTooLong, match="bytes long and the kernel allows 107"):
        Agent(FakeApi(), AgentSettings("n1", tmp_path, tmp_path / ("x" * 100)))
    assert not list(tmp_path.iterdir())


async def test_only_the_last_two_runs_of_a_container_leave_traces(node: Node) -> None:
    async with node.agent():
        node.pod("p", "exit 1")
        await until(lambda: node.state("p") and node.status("p")["containerStatuses"][0]["restartCount"] >= 4)
        runs = list(node.paths.pods_dir.glob("*/containers/main/*"))
        files = list(node.paths.log_dir.rglob("*.log"))
        assert len(runs) <= 2
        assert len(files) <= 2


async def test_root_is_refused_where_it_is_not_wanted(node: Node) -> None:
    async with node.agent():
        context = {"runAsNonRoot": True, "runAsUser": 0}
        node.pod("p", container={"securityContext": context})
        await until(lambda: "waiting" in node.state("p") and "message" in node.state("p")["waiting"])
        assert node.state("p")["waiting"] == {
            "reason": "CreateContainerConfigError",
            "message": "container's runAsUser breaks non-root policy",
        }


async def test_the_health_of_devices_is_told_at_once(node: Node) -> None:
    driver = ScriptedDriver(node.paths, health=True)
    await driver.start()
    async with node.agent():
        container = {"resources": {"claims": [{"name": "gpu"}]}}
        pod = node.pod("p", container=container, resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
        claim_for(node, "c", pod)

        def told() -> list[dict[str, Any]]:
            statuses = node.status("p").get("containerStatuses") or [{}]
            entries = statuses[0].get("allocatedResourcesStatus") or [{"resources": []}]
            return list(entries[0]["resources"])

        name = "gpu.example.com/pool/dev-c"
        await until(lambda: told() == [{"resourceID": name, "health": "Unknown"}])
        driver.report(DeviceHealth("pool", "dev-c", "Unhealthy", message="too hot"))
        await until(lambda: told() == [{"resourceID": name, "health": "Unhealthy", "message": "too hot"}])
        driver.report(DeviceHealth("pool", "dev-c", "Healthy"))
        await until(lambda: told() == [{"resourceID": name, "health": "Healthy"}])
        await driver.stop()
        await until(lambda: told() == [{"resourceID": name, "health": "Unknown"}])


async def test_a_driver_that_comes_back_prepares_at_once(node: Node) -> None:
    async with node.agent():
        pod = node.pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
        claim_for(node, "c", pod)
        text = "DRA driver gpu.example.com is not registered"
        await until(lambda: any(text in note for _, note in node.api.events()))
        driver = ScriptedDriver(node.paths)
        await driver.start()
        await until(lambda: node.phase("p") == "Running")
        await driver.stop()
