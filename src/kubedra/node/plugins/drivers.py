"""The connections to registered DRA drivers: follows them, watches their health, wipes slices of the vanished.

The shell around plugins/registry.py. Upstream counterpart: dra_plugin_manager.go of pkg/kubelet/cm/dra/plugin.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.base.clock import Clock
from kubedra.client.protocol import Client
from kubedra.node.plugins.registry import DriverRegistry, Instance, negotiate
from kubedra.node.settings import Waits
from kubedra.wire.dra import DraClient
from kubedra.wire.health import DeviceHealth, HealthClient
from kubedra.wire.paths import check_socket_path
from kubedra.wire.registration import PluginInfo
from kubedra.wire.transport import CallError, Channel

log = logging.getLogger(__name__)

# A node registers after its first wipe: it must not stay away for minutes (upstream: 5) once the API is back.
LAST_WIPE_RETRY = 5.0
HealthHandler = Callable[[str, tuple[DeviceHealth, ...] | None], None]


class _Connection:
    def __init__(self, instance: Instance, channel: Channel) -> None:
        self.instance = instance
        self.channel = channel
        self.client = DraClient(channel, instance.services.version)
        self.tasks: list[asyncio.Task[None]] = []


class ConnectedDrivers:
    """All DRA drivers of the node, found by name."""

    def __init__(self, client: Client, node: str, waits: Waits, clock: Clock) -> None:
        self._client = client
        self._node = node
        self._waits = waits
        self._clock = clock
        self._registry = DriverRegistry(waits.slice_wipe)
        self._connections: dict[str, _Connection] = {}
        # Called when a driver can be used (again): pods that wait for it should try now.
        self.on_available: Callable[[str], None] = lambda driver: None
        self.on_health: HealthHandler = lambda driver, devices: None

    def find(self, name: str) -> DraClient | None:
        """The client of the instance that serves, None when the driver is not registered."""
        instance = self._registry.serving(name)
        return self._connections[instance.endpoint].client if instance else None

    def names(self) -> frozenset[str]:
        """All registered drivers."""
        return self._registry.drivers()

    def register(self, info: PluginInfo, socket: Path) -> str:
        """Takes a plugin, returns its endpoint; raises RegistrationRefused, or ValueError for an impossible path."""
        endpoint = info.endpoint or str(socket)
        instance = Instance(info.name, endpoint, str(socket), negotiate(info.name, endpoint, info.supported_versions))
        check_socket_path(Path(endpoint))
        self._registry.add(instance)
        connection = _Connection(instance, Channel(Path(endpoint)))
        self._connections[endpoint] = connection
        connection.tasks.append(asyncio.create_task(self._follow(connection), name=f"connection {info.name}"))
        if instance.services.health is not None:
            connection.tasks.append(asyncio.create_task(self._health(connection), name=f"health {info.name}"))
        log.info("driver %s registered (%s)", info.name, instance.services.version)
        self.on_available(info.name)
        return endpoint

    async def deregister(self, endpoint: str) -> None:
        """Lets a plugin go."""
        instance = self._registry.remove(endpoint, self._clock.monotonic())
        if instance is None:
            return
        log.info("driver %s left", instance.driver)
        await self._close(self._connections.pop(endpoint))
        self.on_health(instance.driver, None)

    async def close(self) -> None:
        """Closes all connections."""
        connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            await self._close(connection)

    async def _close(self, connection: _Connection) -> None:
        for task in connection.tasks:
            task.cancel()
        await asyncio.gather(*connection.tasks, return_exceptions=True)
        await connection.channel.close()

    async def _follow(self, connection: _Connection) -> None:
        instance = connection.instance
        async for connected in connection.channel.connection_changes():
            self._registry.set_connected(instance.endpoint, connected, self._clock.monotonic())
            if connected:
                self.on_available(instance.driver)

    async def _health(self, connection: _Connection) -> None:
        instance = connection.instance
        version = instance.services.health
        assert version is not None
        while True:
            try:
                async for devices in HealthClient(connection.channel, version).watch():
                    self.on_health(instance.driver, devices)
            except CallError as error:
                log.debug("health of %s: %s", instance.driver, error)
            self.on_health(instance.driver, None)
            await self._clock.sleep(self._waits.health_restart)

    async def wipe_at_start(self) -> None:
        """Deletes all slices of this node: no driver has registered yet, so nobody vouches for them. Retries."""
        await self._wipe(f"spec.nodeName={self._node}")

    async def wipe_vanished(self) -> None:
        """Deletes the slices of drivers that have been away for too long, for ever."""
        async with contextlib.AsyncExitStack() as stack:
            group = await stack.enter_async_context(asyncio.TaskGroup())
            while True:
                await self._clock.sleep(min(1.0, self._waits.slice_wipe / 4))
                for driver in self._registry.due_wipes(self._clock.monotonic()):
                    log.info("driver %s has been away for %g s: wiping its slices", driver, self._waits.slice_wipe)
                    group.create_task(self._wipe(f"spec.driver={driver},spec.nodeName={self._node}"))

    async def _wipe(self, selector: str) -> None:
        delay = 0.2
        while True:
            try:
                await self._client.delete_collection(kinds.RESOURCE_SLICE, field_selector=selector)
                return
            except (ApiError, ConnectionError) as error:
                log.warning("wiping slices (%s): %s; trying again", selector, error)
            await self._clock.sleep(delay)
            delay = min(delay * 2, LAST_WIPE_RETRY)
