"""One task per pod: brings it up, keeps it as its spec says, takes it down, and tells the API.

The order is the kubelet's: admission, claims prepared and volumes set up, containers started; at the end containers
stopped, status with their ends, claims unprepared, and only then the terminal phase and the removal from the API.
What to do next is decided by pods/lifecycle.py. When the agent ends, workers just stop: containers run on and are
found again by the next agent. Upstream counterpart: pkg/kubelet/pod_workers.go, SyncPod of pkg/kubelet/kuberuntime.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from datetime import datetime, timedelta
from pathlib import Path

from kubedra.api import kinds
from kubedra.api.core_v1 import Pod
from kubedra.api.errors import ApiError
from kubedra.base.clock import format_time, parse_time
from kubedra.node.claims.health import resources_status
from kubedra.node.claims.resolving import PrepareError
from kubedra.node.device_plugins.pool import AllocationRefused
from kubedra.node.device_plugins.pool import resources_status as plugin_resources_status
from kubedra.node.pods.admission import refusal
from kubedra.node.pods.attending import Attendant
from kubedra.node.pods.books import ContainerBook, go_duration
from kubedra.node.pods.environment import ConfigError
from kubedra.node.pods.lifecycle import Backoff, Ended, decide
from kubedra.node.pods.services import NodeServices
from kubedra.node.pods.sources import fetch_sources, fetch_tokens
from kubedra.node.pods.starting import container_config
from kubedra.node.pods.status import PodFacts, pod_status, rejected_status
from kubedra.node.pods.status_writing import StatusWriter
from kubedra.node.pods.stopping import grace_seconds
from kubedra.node.pods.volumes import VolumeError, set_up, volume_files
from kubedra.node.runtime.contract import StartError
from kubedra.wire.transport import CallError

log = logging.getLogger(__name__)

TERMINAL = ("Succeeded", "Failed")


class PodWorker:
    """Runs one pod (one uid) on this node."""

    def __init__(self, services: NodeServices, pod: Pod) -> None:
        self._services = services
        self.pod = pod
        self.uid = pod.metadata.uid
        self.gone = False
        # Whether the pod holds room on the node: from its admission until nothing of it is left.
        self.active = False
        waits = services.settings.waits
        self._backoff = Backoff(waits.restart_first, waits.restart_last, waits.restart_forgotten)
        self.books = {
            container.name: ContainerBook(container, self._backoff)
            for container in (*pod.spec.init_containers, *pod.spec.containers)
        }
        self._changed = asyncio.Event()
        self._kicked = asyncio.Event()
        self._attendant = Attendant(services, lambda: self.pod, self._event, self._changed.set)
        self._writer = StatusWriter(services.client, services.clock, pod)
        self._writer.on_written = self._written
        self._volumes: dict[str, str] | None = None
        self._prepared = False
        self._initialized = False
        self._released = False
        self._ended: Ended = ""
        self._reason = self._message = ""
        self._start_time = pod.status.start_time or format_time(services.clock.now())
        self._remarked: set[str] = set()

    # ---- what others tell ----

    def update(self, pod: Pod) -> None:
        """The pod changed in the API, or was read there."""
        # Watch and answers to writes overtake each other: nothing that is known may be unlearned.
        if _revision(pod) < _revision(self.pod):
            return
        meta, before = pod.metadata, self.pod.metadata
        # Our own status writes come back too; they change nothing that matters here.
        matters = (
            meta.generation != before.generation
            or meta.deletion_timestamp != before.deletion_timestamp
            or meta.annotations != before.annotations
            or meta.labels != before.labels
            or pod.status.resource_claim_statuses != self.pod.status.resource_claim_statuses
            or pod.status.extended_resource_claim_status != self.pod.status.extended_resource_claim_status
            or pod.status.phase in TERMINAL
        )
        self.pod = pod
        if matters:
            self.kick()

    def removed(self) -> None:
        """The pod is gone from the API, perhaps by force."""
        self.gone = True
        self.kick()

    def kick(self) -> None:
        """Something that may help happened: try again now."""
        self._kicked.set()
        self._changed.set()

    def refresh(self) -> None:
        """The health of devices changed: tell it."""
        if self._prepared and not self._released:
            self._tell(urgent=True)

    @property
    def deleting(self) -> bool:
        """Whether the pod is to go."""
        return self.gone or bool(self.pod.metadata.deletion_timestamp)

    def _written(self, pod: Pod) -> None:
        # The answer to our own write may be the first to tell of a deletion.
        if pod.metadata.uid == self.uid and not self.gone:
            self.update(pod)

    # ---- the life of the pod ----

    async def run(self) -> None:
        """From first sight to last trace; cancel it to leave everything as it is."""
        try:
            self._adopt()
            if self.pod.status.phase in TERMINAL and not self._running():
                self._ended = "Succeeded" if self.pod.status.phase == "Succeeded" else "Failed"
                await self._release()
            elif await self._admitted():
                await self._live()
                await self._stop_and_release()
            await self._bury()
        finally:
            self._attendant.leave(self.books.values())
            await self._writer.stop()

    def _adopt(self) -> None:
        for container in self._services.runtime.find(self.uid):
            book = self.books.get(container.config.name)
            if book is not None:
                book.adopt(container)
                self._attendant.watch(book, container)
        for status in (*self.pod.status.init_container_statuses, *self.pod.status.container_statuses):
            book = self.books.get(status.name)
            if book is not None and not book.handles and status.container_id:
                # Its trace is lost but the API remembers: go on counting.
                book.attempt = max(book.attempt, status.restart_count + 1)
        if self._running():
            self._services.claims.adopt(self.uid)
            self._prepared = True
        if any(book.handles for book in self.books.values()):
            self.active = True

    def _running(self) -> bool:
        return any(book.running for book in self.books.values())

    async def _admitted(self) -> bool:
        if self.active or self.deleting or self._services.claims.holds(self.uid):
            self.active = True
            return True
        node = self._services.node()
        others = [pod for pod in self._services.active_pods() if pod.metadata.uid != self.uid]
        refused = refusal(self.pod, node, others, node.status.allocatable)
        if refused is None:
            self.active = True
            try:
                await self._services.devices.allocate(self.pod)
                return True
            except AllocationRefused as error:
                refused = "UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected"
        self.active = False
        reason, message = refused
        self._event("Warning", reason, message)
        now = format_time(self._services.clock.now())
        self._writer.set(rejected_status(self.pod, reason, message, now), urgent=True)
        await self._writer.flush()
        self._released = True
        return False

    async def _live(self) -> None:
        if not self._prepared:
            await self._set_up()
        while not self.deleting:
            now = self._services.clock.now()
            deadline = self._deadline()
            if deadline is not None and deadline <= now:
                self._ended, self._reason = "Failed", "DeadlineExceeded"
                self._message = "Pod was active on the node longer than the specified deadline"
                self._event("Normal", "DeadlineExceeded", self._message)
                return
            if self.pod.status.phase in TERMINAL:
                # Somebody else declared it ended: a controller that evicts, for one.
                self._ended = "Succeeded" if self.pod.status.phase == "Succeeded" else "Failed"
                self._reason, self._message = self.pod.status.reason, self.pod.status.message
                return
            for book in self.books.values():
                delay = book.schedule_restart(self.pod, now)
                if delay:
                    meta = self.pod.metadata
                    text = f"Back-off restarting failed container {book.spec.name} in pod "
                    self._event("Warning", "BackOff", f"{text}{meta.name}_{meta.namespace}({meta.uid})")
                    log.info("%s/%s: back-off %s", meta.namespace, meta.name, go_duration(delay))
            decision = decide(self.pod, {name: book.view for name, book in self.books.items()}, now)
            self._initialized = decision.initialized
            if decision.ended:
                self._ended = decision.ended
                self._tell(urgent=True)
                return
            self._changed.clear()
            if decision.stop:
                await self._stop(decision.stop)
                continue
            for name in decision.start:
                await self._start(self.books[name])
            if decision.start:
                continue
            self._tell(urgent=True)
            wakes = [moment for moment in (decision.wake_at, deadline) if moment is not None]
            await self._wait(min(wakes, default=None))

    def _deadline(self) -> datetime | None:
        seconds = self.pod.spec.active_deadline_seconds
        return None if seconds is None else parse_time(self._start_time) + timedelta(seconds=seconds)

    async def _wait(self, until: datetime | None) -> None:
        """Waits for news, or for a moment."""
        if self._changed.is_set():
            return
        waiter = asyncio.ensure_future(self._changed.wait())
        futures: list[asyncio.Future[object]] = [waiter]  # type: ignore[list-item]
        if until is not None:
            seconds = max((until - self._services.clock.now()).total_seconds(), 0.001)
            futures.append(asyncio.ensure_future(self._services.clock.sleep(seconds)))
        try:
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for future in futures:
                future.cancel()

    # ---- bringing up ----

    async def _set_up(self) -> None:
        """Prepares claims and volumes; tries again until it works or the pod is to go."""
        waits = self._services.settings.waits
        delay = waits.prepare_retry_first
        self._tell(urgent=False)
        while not self.deleting and self.pod.status.phase not in TERMINAL:
            self._kicked.clear()
            try:
                await self._services.claims.prepare(self.pod)
                await self._set_up_volumes()
                self._prepared = True
                return
            except PrepareError as error:
                text = f"Failed to prepare dynamic resources: prepare dynamic resources: {error}"
                self._event("Warning", "FailedPrepareDynamicResources", text)
            except VolumeError as error:
                self._event("Warning", "FailedMount", str(error))
            except (ApiError, ConnectionError) as error:
                self._event("Warning", "FailedMount", f"unable to read what the volumes refer to: {error}")
            self._tell(urgent=True)
            await self._pause(delay)
            delay = min(delay * 2, waits.prepare_retry_last)

    async def _pause(self, seconds: float) -> None:
        """Waits, but no longer than until something happens that may help."""
        waiter = asyncio.ensure_future(self._kicked.wait())
        sleeper = asyncio.ensure_future(self._services.clock.sleep(seconds))
        try:
            await asyncio.wait((waiter, sleeper), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
            sleeper.cancel()

    async def _set_up_volumes(self) -> None:
        services = self._services
        sources = await fetch_sources(services.client, self.pod)
        tokens = await fetch_tokens(services.client, self.pod)
        files = volume_files(self.pod, sources, services.facts(), tokens)
        folder = services.paths.pods_dir / self.uid / "volumes"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._volumes = set_up(self.pod, folder, files)

    async def _start(self, book: ContainerBook) -> None:
        services, name = self._services, book.spec.name
        now = services.clock.now()
        try:
            if self._volumes is None:
                await self._set_up_volumes()
            assert self._volumes is not None
            sources = await fetch_sources(services.client, self.pod)
            await services.devices.pre_start(self.uid, name)
            config = container_config(services, self.pod, book.spec, book.attempt, sources, self._volumes)
            self._remark(services.runtime.remarks(config))
            handle = await services.runtime.start(config)
        except StartError as error:
            self._event("Warning", "Failed", f"Error: {error}")
            if error.reason == "RunContainerError":
                book.could_not_run(f"{self.uid}-{name}-{book.attempt}", str(error), format_time(now))
            else:
                book.could_not_start(error.reason, str(error), now)
        except ConfigError as error:
            self._event("Warning", "Failed", f"Error: {error}")
            book.could_not_start(error.reason, str(error), now)
        except CallError as error:
            text = f"device plugin PreStartContainer rpc failed with err: {error}"
            self._event("Warning", "Failed", f"Error: {text}")
            book.could_not_start("PreStartContainerError", text, now)
        except (VolumeError, ApiError, ConnectionError, OSError) as error:
            self._event("Warning", "Failed", f"Error: {error}")
            book.could_not_start("CreateContainerConfigError", str(error), now)
        else:
            book.started(handle)
            for old in book.outlived():
                services.runtime.forget(old)
                Path(old.config.log_path).unlink(missing_ok=True)
            self._event("Normal", "Started", f"Started container {name}")
            await self._attendant.post_start(book, handle)
            self._attendant.watch(book, handle)

    def _remark(self, remarks: tuple[tuple[str, str], ...]) -> None:
        for reason, text in remarks:
            if text not in self._remarked:
                self._remarked.add(text)
                self._event("Normal", reason, text)

    # ---- taking down ----

    async def _stop(self, names: tuple[str, ...]) -> None:
        books = [self.books[name] for name in names if self.books[name].running]
        for book in books:
            self._event("Normal", "Killing", f"Stopping container {book.spec.name}")
        await asyncio.gather(*(self._attendant.stop(book, grace_seconds(self.pod)) for book in books))
        # The watches have to see the ends before anything is decided.
        while any(self.books[name].running for name in names):
            await asyncio.sleep(0)

    async def _stop_and_release(self) -> None:
        mains = tuple(container.name for container in self.pod.spec.containers)
        await self._stop(mains)
        for container in reversed(self.pod.spec.init_containers):
            await self._stop((container.name,))
        if self.deleting:
            for book in self.books.values():
                book.never_ran()
        if not self._ended:
            codes = [self.books[name].view.exit_code for name in mains]
            self._ended = "Succeeded" if all(code == 0 for code in codes) else "Failed"
        self._tell(urgent=True)
        await self._release()
        self.active = False
        self._tell(urgent=True)

    async def _release(self) -> None:
        """Unprepares, however long it takes: before that the devices are not free and the pod is not over."""
        delay = self._services.settings.waits.prepare_retry_first
        while True:
            self._kicked.clear()
            try:
                await self._services.claims.unprepare(self.uid)
                break
            except PrepareError as error:
                # The kubelet keeps this to its log; a pod that does not go away should say why.
                text = f"Failed to unprepare dynamic resources: unprepare dynamic resources: {error}"
                self._event("Warning", "FailedUnprepareDynamicResources", text)
            await self._pause(delay)
            delay = min(delay * 2, self._services.settings.waits.prepare_retry_last)
        await self._services.devices.release(self.uid)
        self._released = True

    async def _bury(self) -> None:
        """Waits for the pod's deletion, removes it from the API, then its files."""
        while not self.deleting:
            self._changed.clear()
            await self._wait(None)
        if not self.gone:
            await self._writer.flush()
            await self._delete()
        while not self.gone:
            self._changed.clear()
            await self._wait(None)
        await self._writer.stop()
        for book in self.books.values():
            for handle in book.handles:
                self._services.runtime.forget(handle)
        for folder in (self._services.paths.pods_dir / self.uid, self._services.log_folder(self.pod)):
            shutil.rmtree(folder, ignore_errors=True)

    async def _delete(self) -> None:
        delay = 0.1
        meta = self.pod.metadata
        while not self.gone:
            try:
                await self._services.client.delete(
                    kinds.POD, meta.name, meta.namespace, uid=self.uid, grace_period_seconds=0
                )
                return
            except ApiError as error:
                if error.code in (404, 409):
                    return
                log.warning("deleting pod %s/%s: %s", meta.namespace, meta.name, error)
            except ConnectionError as error:
                log.info("deleting pod %s/%s: %s", meta.namespace, meta.name, error)
            await self._services.clock.sleep(delay)
            delay = min(delay * 2, 5.0)

    # ---- telling ----

    def _tell(self, *, urgent: bool) -> None:
        if self.gone:
            return
        facts = PodFacts(
            now=format_time(self._services.clock.now()),
            host_ip=self._services.settings.address,
            runtime=self._services.runtime.name,
            start_time=self._start_time,
            initialized=self._initialized,
            prepared=self._prepared,
            ended=self._ended if self._released else "",
            reason=self._reason if self._released else "",
            message=self._message if self._released else "",
        )
        records = {name: book.record(self._resources(book)) for name, book in self.books.items()}
        self._writer.set(pod_status(self.pod, records, facts), urgent=urgent)

    def _resources(self, book: ContainerBook) -> tuple[dict[str, object], ...]:
        if not self._prepared or self._released:
            return ()
        services = self._services
        dra = resources_status(
            self.pod, book.spec, lambda container: services.claims.devices(self.pod, container), services.health
        )
        pool = services.devices.pool
        plugins = plugin_resources_status(pool, pool.held(self.uid, book.spec.name))
        return (*dra, *(dict(entry) for entry in plugins))

    def _event(self, type_: str, reason: str, note: str) -> None:
        with contextlib.suppress(Exception):
            self._services.events.event(self.pod, kinds.POD, type_, reason, note)


def _revision(pod: Pod) -> int:
    version = pod.metadata.resource_version
    return int(version) if version.isdigit() else 0
