"""A driver at work on one node: its two sockets, its checkpoint, its slices, its health stream.

``NodePlugin`` joins an author's driver to an agent (ours or a kubelet) and to the API. Its sockets come back when
somebody removes them; an agent that was restarted finds them by itself, and its notice that the plugin is registered
makes the slices compared again, because an agent wipes its node's slices when it starts. Upstream counterpart:
kubeletplugin.Start and the registrar of k8s.io/dynamic-resource-allocation.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from kubedra.api import resource_v1
from kubedra.base.clock import Clock
from kubedra.cdi.folder import SpecFolder
from kubedra.client.clock import RealClock
from kubedra.client.protocol import Client
from kubedra.sdk.checkpoint import Checkpoint
from kubedra.sdk.conditions import ReadyConditions
from kubedra.sdk.driver import Driver, HealthSource, call
from kubedra.sdk.metadata import MetadataFiles
from kubedra.sdk.nodes import NodeOwners
from kubedra.sdk.preparing import ClaimPreparer
from kubedra.sdk.publishing import PublisherSettings, SlicePublisher
from kubedra.sdk.resources import Pool
from kubedra.wire import dra, health, registration
from kubedra.wire.durable import remove_leftovers
from kubedra.wire.paths import NodePaths, SocketPathTooLong, check_socket_path, default_run_dir
from kubedra.wire.transport import SocketServer

__all__ = ["NodePaths", "NodePlugin", "PluginPaths", "PluginSettings", "SocketPathTooLong", "default_run_dir"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PluginPaths:
    """Where one driver's sockets and files lie on one node."""

    registration_socket: Path
    service_socket: Path
    data_dir: Path
    cdi_dir: Path

    @staticmethod
    def of_node(paths: NodePaths, driver: str) -> PluginPaths:
        """Return the layout that our agent uses; raises ``SocketPathTooLong``."""
        return PluginPaths(
            paths.registration_socket(driver),
            paths.service_socket(driver),
            paths.driver_data_dir / driver,
            paths.cdi_dir,
        )

    @staticmethod
    def of_kubelet(
        driver: str, root: Path = Path("/var/lib/kubelet"), cdi_dir: Path = Path("/var/run/cdi")
    ) -> PluginPaths:
        """Return the layout that a kubelet uses; raises ``SocketPathTooLong``."""
        folder = root / "plugins" / driver
        return PluginPaths(
            check_socket_path(root / "plugins_registry" / f"{driver}-reg.sock"),
            check_socket_path(folder / "dra.sock"),
            folder,
            cdi_dir,
        )


@dataclass(frozen=True, kw_only=True)
class PluginSettings:
    """How a driver runs on one node.

    ``serialize``: the author's prepare and unprepare run one at a time. ``device_metadata``: metadata files are
    written. ``ready_condition``: claim.status.devices is written. ``rediscover_seconds``: how often ``discover`` is
    asked again (0: only at the start and on ``rediscover()``). ``check_sockets_seconds``: how often lost sockets are
    looked for.
    """

    node: str
    paths: PluginPaths
    versions: tuple[dra.Version, ...] = dra.VERSIONS
    serialize: bool = True
    device_metadata: bool = True
    ready_condition: bool = True
    rediscover_seconds: float = 0.0
    check_sockets_seconds: float = 2.0


class NodePlugin:
    """One driver on one node. ``publisher`` may be shared by the plugins of a fleet; without one it has its own."""

    def __init__(
        self,
        driver: Driver,
        client: Client,
        settings: PluginSettings,
        clock: Clock | None = None,
        *,
        publisher: SlicePublisher | None = None,
    ) -> None:
        self._driver = driver
        self._settings = settings
        self._clock: Clock = clock or RealClock()
        self._own_publisher = publisher is None
        self._owners = NodeOwners(client, node=settings.node, clock=self._clock)
        self._publisher = publisher or SlicePublisher(
            client,
            PublisherSettings(driver=driver.name, node=settings.node, parallel=2),
            self._owners,
            self._clock,
        )
        paths = settings.paths
        self._checkpoint = Checkpoint(paths.data_dir / "checkpoint.json", driver.name)
        cdi = SpecFolder(paths.cdi_dir)
        self._conditions = ReadyConditions(client, driver.name, self._clock) if settings.ready_condition else None
        self._preparer = ClaimPreparer(
            driver,
            client,
            self._checkpoint,
            cdi,
            metadata=MetadataFiles(driver.name, paths.data_dir, cdi, self.published)
            if settings.device_metadata
            else None,
            serialize=settings.serialize,
            on_prepared=self._conditions.prepared if self._conditions else None,
            node=settings.node,
        )
        self._pools: dict[str, Pool] = {}
        self._devices: dict[tuple[str, str], resource_v1.Device] = {}
        self._health = _HealthHub(driver) if isinstance(driver, HealthSource) else None
        self._servers: tuple[SocketServer, ...] = ()
        self._tasks: list[asyncio.Task[None]] = []
        self._lock = -1
        self.registered = asyncio.Event()
        self.registration_error = ""

    @property
    def checkpoint(self) -> Checkpoint:
        """What is prepared on this node."""
        return self._checkpoint

    def published(self, pool: str, device: str) -> resource_v1.Device | None:
        """Return a device as ``discover`` gave it last."""
        return self._devices.get((pool, device))

    # ---- life ----

    async def run(self) -> None:
        """Serve until cancelled; sockets are removed then, slices stay."""
        try:
            await self.start()
            await asyncio.Event().wait()
        finally:
            await self.stop()

    async def start(self) -> None:
        """Load the checkpoint, discover, serve and publish; returns when the sockets answer."""
        self._settings.paths.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        await self._take_folder()
        self._checkpoint.load()
        # Nobody else writes files of this driver on this node now: half ones are of a predecessor that was killed.
        for prefix in (f"{self._driver.name}-claim_", f"{self._driver.name}_metadata_"):
            remove_leftovers(self._settings.paths.cdi_dir, 0, prefix=prefix)
        if self._checkpoint.damage:
            _log.error("%s", self._checkpoint.damage)
        await self.rediscover()
        await self._serve()
        if self._own_publisher:
            await self._owners.start()
            await self._publisher.start()
        self._tasks = [asyncio.create_task(self._keep_sockets())]
        if self._settings.rediscover_seconds:
            self._tasks.append(asyncio.create_task(self._keep_discovering()))
        if self._health is not None:
            self._tasks.append(asyncio.create_task(self._health.run(self._clock)))

    async def stop(self) -> None:
        """Stop serving; what is prepared stays prepared."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._stop_serving()
        await self._preparer.close()
        if self._conditions is not None:
            await self._conditions.close()
        if self._own_publisher:
            await self._publisher.stop()
            await self._owners.stop()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def wait_published(self) -> None:
        """Return when the slices are as the driver wants them."""
        await self._publisher.wait_published()

    async def rediscover(self) -> None:
        """Ask the driver for its devices again and publish what came of it."""
        found = await call(self._driver.discover)
        if isinstance(found, Mapping):
            pools = dict(found)
        else:
            devices = tuple(cast("Iterable[resource_v1.Device]", found))
            pools = {self._settings.node: Pool(devices=devices, node_name=self._settings.node)}
        for name in self._pools.keys() - pools.keys():
            self._publisher.publish_pool(name, None)
        self._pools = pools
        self._devices = {(name, entry.name): entry for name, pool in pools.items() for entry in pool.devices}
        for name, pool in pools.items():
            self._publisher.publish_pool(name, pool)

    async def _take_folder(self) -> None:
        """Wait until no other process serves this driver on this node: two would each believe their own checkpoint."""
        self._lock = os.open(self._settings.paths.data_dir / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        told = False
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not told:
                    told = True
                    _log.warning(
                        "driver %s on node %s waits: another process serves it and holds %s",
                        self._driver.name,
                        self._settings.node,
                        self._settings.paths.data_dir / "lock",
                    )
                await self._clock.sleep(0.1)
            else:
                return

    # ---- registration ----

    async def get_info(self) -> registration.PluginInfo:
        """Answer the agent: who is here."""
        versions = [dra.negotiated_name(version) for version in self._settings.versions]
        if self._health is not None:
            versions.extend(health.service_name(version) for version in health.VERSIONS)
        socket = str(self._settings.paths.service_socket)
        return registration.PluginInfo(registration.DRA_PLUGIN, self._driver.name, socket, tuple(versions))

    async def notify(self, registered: bool, error: str) -> None:
        """Hear from the agent whether it took the plugin."""
        self.registration_error = error
        if not registered:
            self.registered.clear()
            _log.error("driver %s is refused on node %s: %s", self._driver.name, self._settings.node, error)
            return
        self.registered.set()
        _log.info("node %s: driver %s is registered", self._settings.node, self._driver.name)
        for name in self._pools:
            self._publisher.resync(name)

    # ---- sockets ----

    async def _serve(self) -> None:
        services = [dra.dra_service(self._preparer, version) for version in self._settings.versions]
        if self._health is not None:
            services.extend(health.health_service(self._health, version) for version in health.VERSIONS)
        paths = self._settings.paths
        # The service first: an agent may call it as soon as it finds the registration socket.
        service = SocketServer(paths.service_socket, services)
        registrar = SocketServer(paths.registration_socket, [registration.registration_service(self)])
        self._servers = (service, registrar)
        await service.start()
        await registrar.start()

    async def _stop_serving(self) -> None:
        servers, self._servers = self._servers, ()
        for server in reversed(servers):
            await server.stop()

    async def _keep_sockets(self) -> None:
        while True:
            await self._clock.sleep(self._settings.check_sockets_seconds)
            if all(server.present for server in self._servers):
                continue
            _log.warning("a socket of driver %s on node %s is gone", self._driver.name, self._settings.node)
            with contextlib.suppress(OSError):
                await self._stop_serving()
                await self._serve()

    async def _keep_discovering(self) -> None:
        while True:
            await self._clock.sleep(self._settings.rediscover_seconds)
            try:
                await self.rediscover()
            except Exception:
                # The author's code failed; what was published stays until it succeeds again.
                _log.exception("driver %s can't discover its devices", self._driver.name)


class _HealthHub:
    """Passes the driver's health lists to every agent that listens; the newest list is told at once."""

    def __init__(self, source: HealthSource) -> None:
        self._source = source
        self._latest: tuple[health.DeviceHealth, ...] | None = None
        self._changed = asyncio.Condition()

    async def run(self, clock: Clock) -> None:
        while True:
            try:
                async for devices in self._source.health():
                    async with self._changed:
                        self._latest = tuple(devices)
                        self._changed.notify_all()
            except Exception:
                _log.exception("the health source failed and is started again")
            await clock.sleep(5.0)

    async def watch_health(self) -> AsyncIterator[tuple[health.DeviceHealth, ...]]:
        told: tuple[health.DeviceHealth, ...] | None = None
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda told=told: self._latest is not told)  # type: ignore[misc]
                told = self._latest
            if told is not None:
                yield told
