"""Replays what was done around a real kubelet to our pod workers, and notes what they do.

The recorded actions of everybody but the kubelet (objects written, drivers started and stopped, their answers,
containers that exit) are done again in their order; each waits until ours has done as much as the kubelet had by
then. Only order and content are compared, never times: ours is meant to be quicker.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kubedra.api import kinds
from kubedra.api.core_v1 import Node, Pod
from kubedra.cdi.spec import ContainerEdits
from kubedra.client.clock import RealClock
from kubedra.client.watch_cache import WatchCache
from kubedra.node.claims.cache import ClaimState
from kubedra.node.claims.checkpoint import ClaimCheckpoint, encode
from kubedra.node.claims.health import HealthReports
from kubedra.node.claims.preparing import ClaimPreparation
from kubedra.node.device_plugins.manager import DevicePluginManager
from kubedra.node.pods.orphans import clean_up, orphans
from kubedra.node.pods.services import NodeServices
from kubedra.node.pods.status_writing import SETTLE_SECONDS
from kubedra.node.pods.worker import PodWorker
from kubedra.node.runtime.contract import Container, ContainerConfig, ContainerExit
from kubedra.node.settings import AgentSettings, Waits
from kubedra.wire.dra import Claim, Device, PrepareResult
from kubedra.wire.paths import NodePaths
from kubedra.wire.transport import CallError
from tests.unit.node.fake_api import FakeApi

Tree = dict[str, Any]
NODE = "node-1"
WAITS = Waits(prepare_retry_first=0.02, prepare_retry_last=0.05, restart_first=0.02, restart_last=0.05)
PATIENCE = 1.0


class FakeContainer:
    """A container in memory."""

    def __init__(self, config: ContainerConfig) -> None:
        self.config = config
        self.started = "2026-01-01T00:00:00.5Z"
        self.exit: ContainerExit | None = None
        self._ended = asyncio.Event()

    def end(self, code: int) -> None:
        if self.exit is None:
            self.exit = ContainerExit(code, finished="2026-01-01T00:00:01.5Z")
            self._ended.set()

    async def wait(self) -> ContainerExit:
        await self._ended.wait()
        assert self.exit is not None
        return self.exit

    def terminate(self) -> bool:
        self.end(143)
        return True

    def kill(self) -> bool:
        self.end(137)
        return True


class FakeRuntime:
    """Containers in memory; remembers which CDI ids each one was started with."""

    name = "fake"
    version = "fake://1"

    def __init__(self) -> None:
        self.containers: list[FakeContainer] = []
        self.starts = 0
        self.cdi_ids: dict[tuple[str, str], set[str]] = {}

    def remarks(self, config: ContainerConfig) -> tuple[tuple[str, str], ...]:
        return ()

    async def start(self, config: ContainerConfig) -> Container:
        ids = {value for name, value in config.env if name.startswith("CDI_")}
        self.cdi_ids.setdefault((config.pod_name, config.name), set()).update(ids)
        container = FakeContainer(config)
        self.containers.append(container)
        self.starts += 1
        return container

    async def execute(self, container: Container, command: tuple[str, ...], timeout: float) -> tuple[int, str]:
        raise NotImplementedError

    def find(self, pod_uid: str) -> tuple[Container, ...]:
        return tuple(container for container in self.containers if container.config.pod_uid == pod_uid)

    def forget(self, container: Container) -> None:
        self.containers = [other for other in self.containers if other is not container]

    def detach(self) -> None:
        return None


class FakeCdi:
    """Every id is known and shows in the environment."""

    def resolve(self, ids: Iterable[str]) -> ContainerEdits:
        return ContainerEdits(env=tuple(f"CDI_{number}={name}" for number, name in enumerate(ids)))


class RecordedDriver:
    """Answers as the recorded driver did, in its order; after the last answer everything succeeds."""

    version = "v1"

    def __init__(self, name: str, calls: list[tuple[str, str, tuple[str, ...]]], answers: dict[str, list[Tree | None]]):
        self.name = name
        self._calls = calls
        self._answers = answers
        self._devices: dict[str, tuple[Device, ...]] = {}
        # A driver that failed to the end goes on failing: ours asks more often than the kubelet did.
        self._last: dict[str, Tree | None] = {}

    async def _next(self, method: str, claims: Sequence[Claim]) -> tuple[bool, Tree]:
        self._calls.append((method, self.name, tuple(sorted(claim.name for claim in claims))))
        answers = self._answers[method]
        if answers:
            self._last[method] = answers.pop(0)
        elif not _bad(self._last.get(method, {})):
            return False, {}
        answer = self._last[method]
        if answer is not None and not answer.get("client_active", True):
            await asyncio.Event().wait()  # nobody was there any more to hear it
        if answer is None:
            raise CallError("DeadlineExceeded", "context deadline exceeded")
        if "grpc_error" in answer:
            if answer["grpc_error"] == "gave up":
                raise CallError("DeadlineExceeded", "context deadline exceeded")
            raise CallError("Internal", answer["grpc_error"])
        return True, answer["response"].get("claims") or {}

    def _uid(self, key: str, claims: Sequence[Claim]) -> str:
        name = key.removeprefix("<uid:claim/").removesuffix(">")
        return next((claim.uid for claim in claims if claim.name == name), key)

    async def prepare(self, claims: Sequence[Claim], *, timeout: float) -> Mapping[str, PrepareResult]:
        known, answer = await self._next("prepare", claims)
        if not known:
            return {claim.uid: PrepareResult(self._devices.get(claim.name, ())) for claim in claims}
        results = {}
        for key, entry in answer.items():
            devices = tuple(
                Device(
                    tuple(device.get("request_names", ())),
                    device.get("pool_name", ""),
                    device.get("device_name", ""),
                    tuple(device.get("cdi_device_ids", ())),
                    device.get("share_id"),
                )
                for device in entry.get("devices", ())
            )
            if devices:
                self._devices[key.removeprefix("<uid:claim/").removesuffix(">")] = devices
            results[self._uid(key, claims)] = PrepareResult(devices, entry.get("error", ""))
        return results

    async def unprepare(self, claims: Sequence[Claim], *, timeout: float) -> Mapping[str, str]:
        known, answer = await self._next("unprepare", claims)
        if not known:
            return {claim.uid: "" for claim in claims}
        return {self._uid(key, claims): entry.get("error", "") for key, entry in answer.items()}


class QuickCheckpoint(ClaimCheckpoint):
    """Not durable: a disk that is busy with other things must not decide who is first."""

    def save(self, states: tuple[ClaimState, ...]) -> None:
        self._path.write_bytes(encode(states))


class Replay:
    """One scenario."""

    def __init__(self, case: Tree, folder: Path) -> None:
        self.case = case
        self.timeline: list[Tree] = [
            {"data": {}, **event} for event in case["timeline"] if isinstance(event.get("data", {}), dict)
        ]
        self.api = FakeApi()
        self.runtime = FakeRuntime()
        self.calls: list[tuple[str, str, tuple[str, ...]]] = []
        self.notes: set[str] = set()
        self._drivers = self._recorded_drivers()
        said = " ".join(self._recorded_notes())
        self._absent = {
            name
            for name in self._drivers
            if self._first(name) == "driver start" or f"DRA driver {name} is not registered" in said
        }
        self._paths = NodePaths(folder / "data", folder / "run", NODE)
        for made in (self._paths.checkpoint_dir, self._paths.pods_dir, self._paths.device_plugins_dir):
            made.mkdir(parents=True, exist_ok=True)
        self._generation: dict[tuple[str, str], int] = {}
        self._pods: WatchCache[Pod] | None = None

    def _node_services(self) -> NodeServices:
        """As a new agent has them: what it knows of claims comes from the checkpoint."""
        paths, clock, node = self._paths, RealClock(), Node()
        claims = ClaimPreparation(self.api, self, QuickCheckpoint(paths.checkpoint_dir))
        return NodeServices(
            client=self.api,
            settings=AgentSettings(NODE, paths.data_dir, paths.run_dir, waits=WAITS),
            paths=paths,
            clock=clock,
            runtime=self.runtime,
            claims=claims,
            health=HealthReports(30),
            devices=DevicePluginManager(paths, WAITS, clock),
            cdi=FakeCdi(),  # type: ignore[arg-type]
            events=SimpleNamespace(event=self._event),  # type: ignore[arg-type]
            node=lambda: node,
            active_pods=lambda: (),
        )

    async def _start(self) -> None:
        self._services = self._node_services()
        self._workers: dict[str, PodWorker] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._pods = WatchCache(self.api, kinds.POD, field_selector=f"spec.nodeName={NODE}")
        self._pods.add_handler(self._pod_changed)
        await self._pods.start()
        for uid in orphans(self._services, self._workers.keys()):
            self._tasks.append(asyncio.create_task(clean_up(self._services, uid)))
        await asyncio.sleep(0.01)

    async def _kill(self) -> None:
        """As SIGKILL: everything on the node stays as it is."""
        if self._pods is None:
            return
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._pods.stop()
        self._pods = None

    def find(self, name: str) -> RecordedDriver | None:
        """The driver, while it is there."""
        return self._drivers.get(name) if name not in self._absent else None

    def _first(self, name: str) -> str:
        events = (e["what"] for e in self.timeline if e["actor"] == "driver" and e["data"].get("driver") == name)
        return next(events, "")

    def _recorded_drivers(self) -> dict[str, RecordedDriver]:
        answers: dict[str, dict[str, list[Tree | None]]] = {}
        for event in self.timeline:
            if event["actor"] != "driver" or not event["what"].startswith("Node"):
                continue
            method = "prepare" if event["what"].startswith("NodePrepare") else "unprepare"
            queues = answers.setdefault(event["data"]["driver"], {"prepare": [], "unprepare": []})
            if event["what"].endswith("request"):
                queues[method].append(None)
            elif event["what"].endswith("answer"):
                queues[method][queues[method].index(None)] = event["data"]
        # A driver that is named by an allocation and never called is there as well.
        for event in self.timeline:
            for name in _allocated(event["data"].get("body")):
                answers.setdefault(name, {"prepare": [], "unprepare": []})
        return {name: RecordedDriver(name, self.calls, queues) for name, queues in answers.items()}

    def _event(self, obj: Any, kind: Any, type_: str, reason: str, note: str) -> None:
        if reason == "FailedPrepareDynamicResources":
            self.notes.add(note)

    # ---- doing it again ----

    async def run(self) -> None:
        """Does everything once more."""
        await self._start()
        try:
            done = 0
            for event in self.timeline:
                if event["actor"] == "kubelet" and event["what"].startswith("process"):
                    await self._until(done)
                    await asyncio.sleep(2 * SETTLE_SECONDS)
                    await (self._kill() if event["what"] == "process killed" else self._start())
                    continue
                action = self._action(event)
                if action is None:
                    done += _progress(event)
                    continue
                await self._until(done)
                if event["what"].startswith("delete pods"):
                    await asyncio.sleep(2 * SETTLE_SECONDS)  # what is to be told of it so far
                action()
                await asyncio.sleep(0.005)
            await self._until(done)
            await asyncio.sleep(0.1)
        finally:
            await self._kill()

    async def _until(self, done: int) -> None:
        """Waits, but not for ever: ours may differ, which is what is to be found out."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while self._done() < done and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.002)

    def _done(self) -> int:
        deleted = sum(call[0] == "delete" and call[1] == "pods" for call in self.api.calls)
        return len(self.calls) + self.runtime.starts + deleted

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            if old is not None and (worker := self._workers.get(old.metadata.uid)):
                worker.removed()
            return
        worker = self._workers.get(new.metadata.uid)
        if worker is not None:
            worker.update(new)
            return
        worker = self._workers[new.metadata.uid] = PodWorker(self._services, new)
        self._tasks.append(asyncio.create_task(worker.run()))

    def _action(self, event: Tree) -> Any:
        actor, what, data = event["actor"], event["what"], event["data"]
        if actor == "driver" and what in ("driver start", "driver stop"):
            return lambda: self._driver(data["driver"], what == "driver start")
        if actor == "cri" and what == "container process exits":
            return lambda: self._exit(data)
        if actor != "api" or data.get("code", 500) >= 300 or "uri" not in data:
            return None
        verb, _, rest = what.partition(" ")
        resource, _, name = rest.partition(" ")
        if resource.split("/")[0] not in ("pods", "resourceclaims"):
            return None
        return lambda: self._write(verb, resource, name, copy.deepcopy(data.get("body") or {}))

    def _driver(self, name: str, there: bool) -> None:
        if there:
            self._absent.discard(name)
            for worker in self._workers.values():
                worker.kick()
        else:
            self._absent.add(name)

    def _exit(self, data: Tree) -> None:
        for container in self.runtime.containers:
            if (container.config.pod_name, container.config.name) == (data["pod"], data["container"]):
                container.end(int(data["code"]))

    def _write(self, verb: str, resource: str, name: str, body: Tree) -> None:
        kind = kinds.POD if resource.startswith("pods") else kinds.RESOURCE_CLAIM
        key = (kind.plural, "default", name)
        old = self.api.objects.get(key)
        if verb == "create" and resource in ("pods", "resourceclaims"):
            number = self._generation[key[::2]] = self._generation.get(key[::2], 0) + 1
            word = "pod" if kind is kinds.POD else "claim"
            body["metadata"]["uid"] = f"<uid:{word}/{name}>" + ("" if number == 1 else f"~{number}")
            body["metadata"]["generation"] = 1
            for owner in body["metadata"].get("ownerReferences", ()):
                owner.setdefault("controller", True)
            self.api.put(kind, body, "default")
            return
        if old is None:
            return
        tree = copy.deepcopy(old)
        if resource == "pods/binding":
            tree["spec"]["nodeName"] = NODE
        elif verb == "update" and resource.endswith("/status"):
            tree["status"] = body.get("status", {})
            if kind is kinds.POD:
                tree["status"] = {**old.get("status", {}), **body.get("status", {})}
        elif verb == "patch":
            tree["metadata"].update({k: v for k, v in body.get("metadata", {}).items() if k != "uid"})
            tree.setdefault("status", {}).update(body.get("status", {}))
        elif verb == "delete":
            grace = body.get("gracePeriodSeconds", tree["spec"].get("terminationGracePeriodSeconds", 30))
            ended = tree.get("status", {}).get("phase") in ("Succeeded", "Failed")
            if kind is not kinds.POD or grace == 0 or ended or not tree["spec"].get("nodeName"):
                self.api._store(kind, key, tree, "DELETED")
                return
            tree["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}
        self.api.put(kind, tree, "default")

    # ---- comparing ----

    def differences(self) -> dict[str, tuple[object, object]]:
        """What differs: theirs and ours, by subject."""
        pairs = {
            "calls": (_calls(_recorded_calls(self.timeline)), _calls(self.calls)),
            "events": (self._recorded_notes(), self.notes),
            "devices": (self._recorded_devices(), {key: ids for key, ids in self.runtime.cdi_ids.items() if ids}),
            "phases": (self._recorded_phases(), self._phases()),
            "deleted": (self._recorded_deletions(), self._deletions()),
        }
        return {subject: pair for subject, pair in pairs.items() if pair[0] != pair[1]}

    def _recorded_notes(self) -> set[str]:
        return {
            event["data"]["message"]
            for event in self.timeline
            if event["actor"] == "kubelet" and event["what"].endswith("FailedPrepareDynamicResources")
        }

    def _recorded_devices(self) -> dict[tuple[str, str], set[str]]:
        pods = {}
        found: dict[tuple[str, str], set[str]] = {}
        for event in self.timeline:
            if event["what"] == "RunPodSandbox" and event["data"].get("response"):
                pods[event["data"]["response"]["pod_sandbox_id"]] = event["data"]["request"]["pod"]
            if event["what"] == "CreateContainer":
                request = event["data"]["request"]
                ids = {entry["name"] for entry in request.get("CDI_devices", ())}
                if ids:
                    found.setdefault((pods[request["sandbox"]], request["name"]), set()).update(ids)
        return found

    def _recorded_phases(self) -> dict[str, str]:
        phases = {}
        for event in self.timeline:
            if event["actor"] == "kubelet" and event["what"].startswith("patch pods/status"):
                phase = (event["data"].get("body") or {}).get("status", {}).get("phase")
                if phase:
                    phases[event["what"].split()[-1]] = phase
        return phases

    def _phases(self) -> dict[str, str]:
        phases = {name: patch["status"]["phase"] for name, patch in self.api.patches if "status" in patch}
        return {name: phase for name, phase in phases.items() if phase != "Pending"}

    def _recorded_deletions(self) -> set[str]:
        return {
            event["what"].split()[-1]
            for event in self.timeline
            if event["actor"] == "kubelet" and event["what"].startswith("delete pods") and event["data"]["code"] == 200
        }

    def _deletions(self) -> set[str]:
        return {call[3] for call in self.api.calls if call[:2] == ("delete", "pods")}


def _bad(answer: Tree | None) -> bool:
    if answer is None or "grpc_error" in answer:
        return True
    return any(entry.get("error") for entry in (answer.get("response") or {}).get("claims", {}).values())


def _progress(event: Tree) -> int:
    """How much a recorded event of the kubelet counts as progress."""
    what = event["what"]
    if event["actor"] == "driver":
        return int(what.endswith("request") and what.startswith("Node"))
    if event["actor"] == "cri":
        return int(what == "StartContainer")
    if event["actor"] == "kubelet":
        return int(what.startswith("delete pods"))
    return 0


def _recorded_calls(timeline: Sequence[Tree]) -> list[tuple[str, str, tuple[str, ...]]]:
    calls = []
    for event in timeline:
        if event["actor"] == "driver" and event["what"].endswith("request") and event["what"].startswith("Node"):
            method = "prepare" if event["what"].startswith("NodePrepare") else "unprepare"
            claims = (event["data"]["request"] or {}).get("claims", ())
            calls.append((method, event["data"]["driver"], tuple(sorted(claim["name"] for claim in claims))))
    return calls


def _calls(calls: Iterable[tuple[str, str, tuple[str, ...]]]) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """By driver, repeats folded: the order of drivers is random with the kubelet, and ours tries again sooner."""
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for method, driver, claims in calls:
        entries = found.setdefault(driver, [])
        if not entries or entries[-1] != (method, claims):
            entries.append((method, claims))
    return found


def _allocated(body: Tree | None) -> list[str]:
    status = (body or {}).get("status") or {}
    allocation = status.get("allocation") if isinstance(status, dict) else None
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    return [result["driver"] for result in results]
