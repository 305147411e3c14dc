"""Probes and hooks, counted and carried out."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubedra.api.core_v1 import Container, ContainerPort, HTTPGetAction, HTTPHeader, Probe
from kubedra.node.pods.handlers import ActionFailed, Actions
from kubedra.node.pods.probing import Counter
from tests.tools import require_tool
from tests.unit.node.agents import Node
from tests.unit.node.scripted_driver import until
from tests.unit.node.test_agent import logs


@pytest.fixture(params=["process", "bwrap"])
def node(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Node]:
    if request.param == "bwrap":
        require_tool("bwrap")
    made = Node(tmp_path, runtime=request.param)
    yield made
    made.close()


def test_a_verdict_needs_as_many_equal_results_as_the_thresholds_say() -> None:
    counter = Counter(Probe(success_threshold=2, failure_threshold=3), False)
    assert [counter.add(result) for result in (True, False, True, True)] == [False, False, False, True]
    assert counter.verdict
    assert [counter.add(result) for result in (False, False, True, False, False, False)] == [False] * 5 + [True]
    assert not counter.verdict


async def test_a_container_is_ready_when_its_probe_says_so(node: Node, tmp_path: Path) -> None:
    async with node.agent():
        probe = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1}
        script = "sleep 0.3; touch /tmp/ready; sleep 60"
        if node.settings.runtime == "process":
            probe = {"exec": {"command": ["test", "-e", "ready"]}, "periodSeconds": 1}
            script = "sleep 0.3; touch ready; sleep 60"
        node.pod("p", script, container={"readinessProbe": probe})
        await until(lambda: node.phase("p") == "Running")
        assert node.status("p")["containerStatuses"][0]["ready"] is False
        await until(lambda: node.status("p")["containerStatuses"][0]["ready"])
        assert "Unhealthy" in dict(node.api.events())


async def test_a_container_that_fails_its_liveness_probe_is_restarted(node: Node) -> None:
    async with node.agent():
        probe = {"exec": {"command": ["/bin/sh", "-c", "echo sick; exit 1"]}, "periodSeconds": 1, "failureThreshold": 1}
        node.pod("p", container={"livenessProbe": probe})
        await until(lambda: node.status("p").get("containerStatuses", [{}])[0].get("restartCount", 0) >= 1)
        notes = [note for reason, note in node.api.events() if reason in ("Unhealthy", "Killing")]
        assert "Liveness probe failed: sick" in notes
        assert "Container main failed liveness probe, will be restarted" in notes


async def test_other_probes_wait_for_the_startup_probe(node: Node) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        async with node.agent():
            startup = {"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": 30}
            node.pod("p", container={"startupProbe": startup})
            await until(lambda: node.phase("p") == "Running")
            status = node.status("p")["containerStatuses"][0]
            assert (status["started"], status["ready"]) == (False, False)
            await until(lambda: "Unhealthy" in dict(node.api.events()))
            listener.listen()
            await until(lambda: node.status("p")["containerStatuses"][0]["ready"])
            assert node.status("p")["containerStatuses"][0]["started"]


async def test_hooks_run_after_the_start_and_before_the_stop(node: Node) -> None:
    script = "trap 'echo stopped; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    lifecycle = {
        "postStart": {"exec": {"command": ["/bin/sh", "-c", "echo post > /proc/$PPID/fd/1 2>/dev/null; exit 0"]}},
        "preStop": {"exec": {"command": ["/bin/sh", "-c", "exit 3"]}},
    }
    async with node.agent():
        node.pod("p", script, container={"lifecycle": lifecycle})
        await until(lambda: node.phase("p") == "Running" and logs(node, "p"))
        await node.delete("p")
        await node.until_gone("p")
        events = node.api.events()
        assert ("FailedPreStopHook", "PreStopHook failed: exit code 3") in events
        last = [patch["status"] for name, patch in node.api.patches if name == "p"][-1]
        assert last["phase"] == "Succeeded"


async def test_a_failing_post_start_hook_ends_the_container(node: Node) -> None:
    async with node.agent():
        lifecycle = {"postStart": {"exec": {"command": ["/bin/sh", "-c", "echo no; exit 1"]}}}
        node.pod("p", restartPolicy="Never", container={"lifecycle": lifecycle})
        await until(lambda: node.phase("p") == "Failed")
        assert ("FailedPostStartHook", "PostStartHook failed: no") in node.api.events()


async def test_http_probes_take_success_and_redirection_for_an_answer() -> None:
    statuses = iter((200, 302, 404))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"GET /health?x=1 HTTP/1.1\r\n")
        assert b"X-Own: 1\r\n" in head
        writer.write(f"HTTP/1.1 {next(statuses)} Said\r\n\r\n".encode())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    spec = Container(name="c", ports=(ContainerPort(name="web", container_port=port),))
    actions = Actions(None, spec, None, "127.0.0.1")  # type: ignore[arg-type]
    action = HTTPGetAction(path="health?x=1", port="web", http_headers=(HTTPHeader(name="X-Own", value="1"),))
    await actions.http(action, 5)
    await actions.http(action, 5)
    with pytest.raises(ActionFailed, match="HTTP probe failed with statuscode: 404"):
        await actions.http(action, 5)
    server.close()
    await server.wait_closed()
    with pytest.raises(ActionFailed, match=f'Get "http://127.0.0.1:{port}/health.x=1": '):
        await actions.http(action, 5)
    with pytest.raises(ActionFailed, match="couldn't find port: other in container c"):
        await actions.http(HTTPGetAction(port="other"), 5)
