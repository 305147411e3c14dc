"""Hollow nodes: Node objects whose pods "run" without processes, thousands of them in one process.

For trying out fleets: everything but the node itself is real. All hollow nodes share one watch of pods; a pod gets one
patch when it starts and one when it ends. Its claims are checked as a real node checks them and then count as prepared,
unless the caller passes functions that prepare them. Leases are long and renewed in one batch, so that an idle fleet
costs almost nothing. Upstream counterpart: kubemark's hollow-node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubedra.api import kinds
from kubedra.api.core_v1 import Node, Pod
from kubedra.api.errors import ApiError
from kubedra.api.resource_v1 import ResourceClaim
from kubedra.base.clock import Clock, format_time
from kubedra.client.clock import RealClock
from kubedra.client.events import EventRecorder
from kubedra.client.protocol import Client
from kubedra.client.watch_cache import WatchCache
from kubedra.node.claims.resolving import PrepareError, claim_names, wanted_claims
from kubedra.node.node_status import architecture, conditions, node_info
from kubedra.node.pods.status import ContainerRecord, PodFacts, Run, pod_status
from kubedra.node.registration import renew_lease
from kubedra.node.runtime.contract import ContainerExit

log = logging.getLogger(__name__)

Tree = dict[str, Any]
TERMINAL = ("Succeeded", "Failed")
# A pod with this annotation ends by itself after so many seconds, with the exit code in the other one.
RUN_SECONDS = "kubedra.dev/hollow-run-seconds"
EXIT_CODE = "kubedra.dev/hollow-exit-code"


@dataclass(frozen=True)
class HollowNode:
    """One node of the fleet."""

    name: str
    cpu: str = "64"
    memory: str = "512Gi"
    pods: int = 110
    labels: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class HollowSettings:
    """All hollow nodes of one process."""

    nodes: tuple[HollowNode, ...]
    address: str = "127.0.0.1"
    version: str = "1.37"
    lease_duration: float = 3600.0
    lease_renew: float = 1200.0
    # How many requests are under way at a time.
    parallel: int = 64


Prepare = Callable[[Pod], Awaitable[None]]


class ClaimsInMemory:
    """The default way to prepare: the checks of a real node, and no driver."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def prepare(self, pod: Pod) -> None:
        """Refuses a pod that may not use its claims; raises PrepareError."""
        if not pod.spec.resource_claims and pod.status.extended_resource_claim_status is None:
            return
        claims: dict[str, ResourceClaim | None] = {}
        for name in claim_names(pod).values():
            try:
                claim = await self._client.get(kinds.RESOURCE_CLAIM, name, pod.metadata.namespace)
                claims[name] = claim
            except ApiError as error:
                if error.code != 404:
                    raise
                claims[name] = None
        wanted_claims(pod, claims, lambda driver: True)


async def nothing_to_unprepare(pod: Pod) -> None:
    """What was prepared in memory needs no undoing."""


class HollowNodes:
    """Keeps the nodes registered and their pods running."""

    def __init__(
        self,
        client: Client,
        settings: HollowSettings,
        clock: Clock | None = None,
        *,
        prepare: Prepare | None = None,
        unprepare: Prepare = nothing_to_unprepare,
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock or RealClock()
        self._prepare = prepare or ClaimsInMemory(client).prepare
        self._events = EventRecorder(client, "kubelet", "hollow", self._clock)
        self._unprepare = unprepare
        self._names = {node.name: node for node in settings.nodes}
        self._info = node_info("hollow://1", settings.version)
        self._limit = asyncio.Semaphore(settings.parallel)
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._latest: dict[str, Pod] = {}
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Runs until cancelled."""
        pods = WatchCache(self._client, kinds.POD, field_selector="spec.nodeName!=", clock=self._clock)
        self._events.start()
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self._each(self._register)
                await self._renew_all()
                pods.add_handler(self._pod_changed)
                await pods.start()
                self.ready.set()
                while True:
                    await self._clock.sleep(self._settings.lease_renew)
                    await self._renew_all()
        finally:
            self.ready.clear()
            await pods.stop()
            await self._events.stop()

    async def _each(self, work: Callable[[HollowNode], Awaitable[None]]) -> None:
        """Does something for every node, a few at a time."""
        pending = iter(self._settings.nodes)

        async def worker() -> None:
            for node in pending:
                await self._persistently(work, node)

        await asyncio.gather(*(worker() for _ in range(self._settings.parallel)))

    async def _persistently(self, work: Callable[[HollowNode], Awaitable[None]], node: HollowNode) -> None:
        delay = 0.1
        while True:
            try:
                await work(node)
                return
            except (ApiError, ConnectionError) as error:
                log.warning("hollow node %s: %s", node.name, error)
            await self._clock.sleep(delay)
            delay = min(delay * 2, 10.0)

    # ---- nodes ----

    def _status(self, node: HollowNode, before: Node | None) -> Tree:
        amounts: Tree = {"cpu": node.cpu, "memory": node.memory, "pods": str(node.pods)}
        amounts |= {name: str(count) for name, count in node.devices.items()}
        now = format_time(self._clock.now())
        return {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": conditions(now, before),
            "addresses": [
                {"type": "InternalIP", "address": self._settings.address},
                {"type": "Hostname", "address": node.name},
            ],
            "nodeInfo": self._info,
        }

    async def _register(self, node: HollowNode) -> None:
        arch = architecture()
        labels = {
            "kubernetes.io/hostname": node.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": arch,
            **node.labels,
        }
        tree = {"metadata": {"name": node.name, "labels": labels}, "spec": {}, "status": self._status(node, None)}
        try:
            await self._client.create(kinds.NODE, tree)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            found = await self._client.get(kinds.NODE, node.name)
            status = self._status(node, found)
            patch = {"metadata": {"uid": found.metadata.uid}, "status": status}
            await self._client.patch(kinds.NODE, node.name, patch, patch_type="strategic", subresource="status")

    async def _renew_all(self) -> None:
        await self._each(self._renew)

    async def _renew(self, node: HollowNode) -> None:
        await renew_lease(self._client, node.name, self._settings.lease_duration, self._clock, Node())

    # ---- pods ----

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or pod.spec.node_name not in self._names:
            return
        uid = pod.metadata.uid
        if new is None:
            self._latest.pop(uid, None)
            return
        self._latest[uid] = new
        if uid in self._busy:
            self._again.add(uid)
        elif _to_do(new):
            self._busy[uid] = self._group.create_task(self._work(uid), name=f"hollow pod {new.metadata.name}")

    async def _work(self, uid: str) -> None:
        delay = 0.1
        while uid in self._latest and _to_do(self._latest[uid]):
            self._again.discard(uid)
            pod = self._latest[uid]
            try:
                async with self._limit:
                    await self._advance(pod)
                delay = 0.1
                if uid not in self._again:
                    break
            except Exception as error:
                if isinstance(error, PrepareError):
                    text = f"Failed to prepare dynamic resources: prepare dynamic resources: {error}"
                    self._events.event(pod, kinds.POD, "Warning", "FailedPrepareDynamicResources", text)
                if isinstance(error, ApiError) and error.code in (404, 409):
                    break  # gone, or another pod of that name
                log.warning("hollow pod %s/%s: %s", pod.metadata.namespace, pod.metadata.name, error)
                await self._clock.sleep(delay)
                delay = min(delay * 2, 10.0)
        self._busy.pop(uid, None)

    async def _advance(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp:
            await self._end(pod, 0)
            meta = pod.metadata
            await self._client.delete(kinds.POD, meta.name, meta.namespace, uid=meta.uid, grace_period_seconds=0)
            return
        await self._prepare(pod)
        await self._write(pod, _records(pod, format_time(self._clock.now()), None), "")
        seconds = pod.metadata.annotations.get(RUN_SECONDS)
        if seconds is not None:
            self._group.create_task(self._end_later(pod, float(seconds)))

    async def _end_later(self, pod: Pod, seconds: float) -> None:
        await self._clock.sleep(seconds)
        current = self._latest.get(pod.metadata.uid)
        if current is not None and not current.metadata.deletion_timestamp:
            try:
                await self._end(current, int(pod.metadata.annotations.get(EXIT_CODE, "0")))
            except (ApiError, ConnectionError) as error:
                log.warning("hollow pod %s/%s: %s", pod.metadata.namespace, pod.metadata.name, error)

    async def _end(self, pod: Pod, code: int) -> None:
        """Gives the devices back, then says that the pod is over."""
        await self._unprepare(pod)
        if pod.status.phase not in TERMINAL:
            await self._write(
                pod, _records(pod, format_time(self._clock.now()), code), "Failed" if code else "Succeeded"
            )

    async def _write(self, pod: Pod, records: dict[str, ContainerRecord], ended: Any) -> None:
        now = format_time(self._clock.now())
        facts = PodFacts(now, self._settings.address, "hollow", pod.status.start_time or now, True, True, ended)
        status = pod_status(pod, records, facts)
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        meta = pod.metadata
        await self._client.patch(
            kinds.POD, meta.name, patch, meta.namespace, patch_type="strategic", subresource="status"
        )


def _to_do(pod: Pod) -> bool:
    if pod.metadata.deletion_timestamp:
        return True
    return pod.status.phase not in TERMINAL and pod.status.phase != "Running"


def _records(pod: Pod, now: str, code: int | None) -> dict[str, ContainerRecord]:
    """Init containers have ended well; the others run, or have ended with a code."""
    uid = pod.metadata.uid
    records = {}
    for container in pod.spec.init_containers:
        always = container.restart_policy == "Always"
        end = ContainerExit(0, finished=now) if code is not None or not always else None
        records[container.name] = ContainerRecord(Run(f"{uid}-{container.name}", now, end), restarts=0)
    for container in pod.spec.containers:
        end = ContainerExit(code, finished=now) if code is not None else None
        records[container.name] = ContainerRecord(Run(f"{uid}-{container.name}", now, end), restarts=0)
    return records
