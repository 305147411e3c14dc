"""The node agent: puts its parts together and runs them until it is cancelled.

Order at start: folders and sockets checked, checkpoints read (a damaged one stops everything), the kubelet API up,
slices wiped, node registered, plugins let in, then pods. At the end containers, claims and files stay exactly as
they are, as they do after SIGKILL; the next agent finds them. Upstream counterpart: pkg/kubelet/kubelet.go.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import ssl
from pathlib import Path

from kubedra.api import kinds
from kubedra.api.core_v1 import Node, Pod
from kubedra.base.clock import Clock
from kubedra.base.features import FeatureGates
from kubedra.cdi.folder import SpecFolder
from kubedra.client.clock import RealClock
from kubedra.client.events import EventRecorder
from kubedra.client.protocol import Client
from kubedra.client.watch_cache import WatchCache
from kubedra.node.claims.checkpoint import ClaimCheckpoint
from kubedra.node.claims.health import HealthReports
from kubedra.node.claims.preparing import ClaimPreparation
from kubedra.node.device_plugins.manager import DevicePluginManager
from kubedra.node.kubelet_api import KubeletApi, LogTarget, tls_context
from kubedra.node.metrics import NodeMetrics
from kubedra.node.node_lock import node_lock
from kubedra.node.plugins.drivers import ConnectedDrivers
from kubedra.node.plugins.watching import PluginHandler, PluginWatcher
from kubedra.node.pods.orphans import clean_up, orphans
from kubedra.node.pods.services import NodeServices
from kubedra.node.pods.worker import PodWorker
from kubedra.node.registration import NodeRegistration
from kubedra.node.runtime.bwrap import BwrapRuntime
from kubedra.node.runtime.contract import Runtime
from kubedra.node.runtime.process import ProcessRuntime
from kubedra.node.settings import AgentSettings
from kubedra.wire.durable import remove_leftovers
from kubedra.wire.health import DeviceHealth
from kubedra.wire.paths import NodePaths, check_socket_path
from kubedra.wire.registration import DRA_PLUGIN, PluginInfo

log = logging.getLogger(__name__)

OPTIONAL_OPERATIONS = "DRAOptionalNodeOperations"
COMPONENT = "kubelet"


def make_runtime(settings: AgentSettings, paths: NodePaths) -> Runtime:
    """The runtime that the settings name; raises ValueError or StartError with a sentence."""
    if settings.runtime == "process":
        return ProcessRuntime(paths.pods_dir, log_limit=settings.log_limit)
    if settings.runtime == "bwrap":
        hidden = (str(settings.data_dir), str(settings.run_dir), *settings.hidden)
        return BwrapRuntime(paths.pods_dir, hidden=hidden, log_limit=settings.log_limit)
    raise ValueError(f'there is no runtime "{settings.runtime}": choose process or bwrap')


class Agent:
    """One node."""

    def __init__(self, client: Client, settings: AgentSettings, clock: Clock | None = None) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock or RealClock()
        self.paths = NodePaths(settings.data_dir, settings.run_dir, settings.node)
        check_socket_path(self.paths.kubelet_socket)
        check_socket_path(self.paths.registration_socket("x" * 32))
        check_socket_path(self.paths.service_socket("x" * 32))
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._registration: NodeRegistration | None = None
        # Set once the node is registered and looks after pods.
        self.ready = asyncio.Event()
        self.port = 0

    async def run(self) -> None:
        """Runs until cancelled. Raises ``NodeTaken`` when the node's folder has an agent already."""
        self.paths.create()
        async with node_lock(self.paths.pods_dir.parent / "agent.lock", self._settings.node, self._clock):
            await self._run()

    async def _run(self) -> None:
        settings, waits, clock = self._settings, self._settings.waits, self._clock
        remove_leftovers(self.paths.checkpoint_dir, 0)
        remove_leftovers(self.paths.cdi_dir)
        gates = FeatureGates(settings.version, settings.feature_gates)
        optional = gates.enabled(OPTIONAL_OPERATIONS)
        self.metrics = NodeMetrics()
        self.drivers = ConnectedDrivers(self._client, settings.node, waits, clock)
        self.claims = ClaimPreparation(
            self._client,
            self.drivers,
            ClaimCheckpoint(self.paths.checkpoint_dir),
            prepare_timeout=waits.prepare,
            unprepare_timeout=waits.unprepare,
            optional_operations=optional,
            metrics=self.metrics,
        )
        self.devices = DevicePluginManager(self.paths, waits, clock)
        self.health = HealthReports(waits.health_default_timeout)
        self.runtime = make_runtime(settings, self.paths)
        self.events = EventRecorder(self._client, COMPONENT, settings.node, clock)
        self._services = NodeServices(
            client=self._client,
            settings=settings,
            paths=self.paths,
            clock=clock,
            runtime=self.runtime,
            claims=self.claims,
            health=self.health,
            devices=self.devices,
            cdi=SpecFolder(self.paths.cdi_dir),
            events=self.events,
            node=self._node,
            active_pods=self._active_pods,
        )
        allowed = (settings.allowed_clients, settings.allowed_groups)
        api = KubeletApi(self._find_log, self._metrics_text, *allowed, clock, waits.log_follow)
        self.port = await api.start(settings.host, settings.port, self._tls())
        self.events.start()
        declared = (OPTIONAL_OPERATIONS,) if optional else ()
        registration = NodeRegistration(
            self._client, settings, clock, self.runtime.version, self.port, declared, self._device_amounts
        )
        self._registration = registration
        self.devices.on_change = registration.changed
        self.drivers.on_available = self._driver_available
        self.drivers.on_health = self._health_reported
        pods = WatchCache(self._client, kinds.POD, field_selector=f"spec.nodeName={settings.node}", clock=clock)
        try:
            await self.drivers.wipe_at_start()
            await registration.register()
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self.devices.start()
                handler = PluginHandler(self._register_driver, self.drivers.deregister)
                watcher = PluginWatcher(self.paths.plugins_registry_dir, {DRA_PLUGIN: handler}, waits, clock)
                group.create_task(watcher.run(), name="plugin watcher")
                group.create_task(self.drivers.wipe_vanished(), name="slice wiper")
                group.create_task(registration.keep(), name="node status")
                group.create_task(registration.renew(), name="node lease")
                group.create_task(self._tick(), name="node tick")
                pods.add_handler(self._pod_changed)
                await pods.start()
                self._clean_orphans()
                log.info("node %s is ready on port %d", settings.node, self.port)
                self.ready.set()
                await asyncio.Event().wait()
        finally:
            self.ready.clear()
            await pods.stop()
            await api.stop()
            await self.devices.stop()
            await self.drivers.close()
            self.runtime.detach()
            await self.events.stop()

    # ---- pods ----

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            worker = self._workers.get(old.metadata.uid)
            if worker is not None:
                worker.update(old)
                worker.removed()
        if new is None:
            return
        worker = self._workers.get(new.metadata.uid)
        if worker is not None:
            worker.update(new)
            return
        worker = PodWorker(self._services, new)
        self._workers[worker.uid] = worker
        name = f"pod {new.metadata.namespace}/{new.metadata.name}"
        self._tasks[worker.uid] = self._group.create_task(self._work(worker), name=name)

    async def _work(self, worker: PodWorker) -> None:
        while True:
            try:
                await worker.run()
                break
            except (Exception, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
                    raise
                # One pod's trouble must not take the node down; what is on the node is found again.
                log.exception("the worker of pod %s failed; starting it again", worker.pod.metadata.name)
                await self._clock.sleep(1.0)
                fresh = PodWorker(self._services, worker.pod)
                fresh.gone = worker.gone
                worker = self._workers[worker.uid] = fresh
        self._workers.pop(worker.uid, None)
        self._tasks.pop(worker.uid, None)

    def _clean_orphans(self) -> None:
        for uid in orphans(self._services, self._workers.keys()):
            log.info("pod %s is gone from the API: cleaning up", uid)
            self._group.create_task(clean_up(self._services, uid), name=f"orphan {uid}")

    def _active_pods(self) -> tuple[Pod, ...]:
        return tuple(worker.pod for worker in self._workers.values() if worker.active)

    def _node(self) -> Node:
        assert self._registration is not None
        return self._registration.node

    # ---- plugins ----

    async def _register_driver(self, info: PluginInfo, socket: Path) -> str:
        return self.drivers.register(info, socket)

    def _driver_available(self, driver: str) -> None:
        for worker in self._workers.values():
            worker.kick()

    def _health_reported(self, driver: str, devices: tuple[DeviceHealth, ...] | None) -> None:
        if self.health.update(driver, devices, self._clock.monotonic()):
            self._refresh()

    def _refresh(self) -> None:
        for worker in self._workers.values():
            worker.refresh()

    def _device_amounts(self) -> tuple[dict[str, int], dict[str, int]]:
        return self.devices.pool.capacity(), self.devices.pool.allocatable()

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(1.0)
            self.devices.expire()
            if self.health.expire(self._clock.monotonic()):
                self._refresh()

    # ---- kubelet API ----

    def _tls(self) -> ssl.SSLContext:
        settings = self._settings
        cert, key = settings.tls_cert_file, settings.tls_key_file
        if cert is None or key is None:
            # Only then: the library that makes certificates takes long to load.
            self_signed = importlib.import_module("kubedra.node.certificates").self_signed
            folder = self.paths.node_dir / "pki"
            cert, key = self_signed(folder, settings.node, settings.address, self._clock.now())
        authority = settings.client_ca_file
        if authority is None:
            # Beside an embedded server the authority is where that server keeps it.
            beside = settings.data_dir / "pki" / "ca.crt"
            authority = beside if beside.exists() else None
        return tls_context(cert, key, authority)

    def _find_log(self, namespace: str, pod: str, container: str, previous: bool) -> LogTarget:
        wanted = (namespace, pod)
        found = (w for w in self._workers.values() if (w.pod.metadata.namespace, w.pod.metadata.name) == wanted)
        worker = next(found, None)
        if worker is None:
            raise LookupError(f'pod "{pod}" not found on node {self._settings.node}')
        book = worker.books.get(container)
        if book is None:
            raise LookupError(f'container "{container}" not found in pod "{pod}_{namespace}"')
        if previous and book.previous is None:
            raise ValueError(f'previous terminated container "{container}" in pod "{pod}" not found')
        attempt = book.attempt - (2 if previous else 1)
        if attempt < 0:
            first = "PodInitializing" if worker.pod.spec.init_containers else "ContainerCreating"
            why = book.waiting[0] or first
            raise ValueError(f'container "{container}" in pod "{pod}" is waiting to start: {why}')
        path = self._services.log_path(worker.pod, container, attempt)
        return LogTarget(path, lambda: not previous and book.running and book.attempt == attempt + 1)

    def _metrics_text(self) -> bytes:
        self.metrics.pods.set(sum(worker.active for worker in self._workers.values()))
        by_driver: dict[str, int] = {}
        for state in self.claims.states:
            for driver in state.drivers:
                by_driver[driver] = by_driver.get(driver, 0) + 1
        self.metrics.claims(by_driver, len(self.claims.states))
        return self.metrics.text()
