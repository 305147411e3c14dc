"""Serves devices the old way: registers a device plugin with an agent and again whenever the agent was restarted.

An agent that starts removes every socket in the device plugin folder and makes its own anew; both are watched for.
Upstream counterpart: the main loop that every device plugin copies.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from kubedra.base.clock import Clock
from kubedra.wire.device_plugin import (
    VERSION,
    ContainerAllocation,
    DevicePlugin,
    Options,
    PluginDevice,
    PreferredAllocation,
    RegisterRequest,
    RegistryClient,
    device_plugin_service,
)
from kubedra.wire.paths import check_socket_path
from kubedra.wire.transport import CallError, Channel, SocketServer

__all__ = [
    "CallError",
    "ContainerAllocation",
    "DevicePlugin",
    "DevicePluginRunner",
    "Options",
    "PluginDevice",
    "PreferredAllocation",
    "forever",
]

_log = logging.getLogger(__name__)

REGISTER_TIMEOUT_SECONDS = 10.0


class DevicePluginRunner:
    """One device plugin on one node; ``endpoint`` is the name of its socket in ``folder``."""

    def __init__(
        self,
        plugin: DevicePlugin,
        resource: str,
        folder: Path,
        endpoint: str,
        clock: Clock,
        *,
        options: Options | None = None,
        look_every_seconds: float = 0.5,
    ) -> None:
        self._plugin = plugin
        self._resource = resource
        self._folder = folder
        self._endpoint = endpoint
        self._clock = clock
        self._options = options or Options()
        self._look_every_seconds = look_every_seconds
        self._server: SocketServer | None = None
        self._registered_with = 0
        self._told = ""
        check_socket_path(folder / endpoint)

    @property
    def registered(self) -> bool:
        """Whether the agent that is there now took the plugin."""
        return self._registered_with != 0 and self._registered_with == self._agent()

    async def run(self) -> None:
        """Serve until cancelled."""
        try:
            while True:
                await self.look()
                await self._clock.sleep(self._look_every_seconds)
        finally:
            if self._server is not None:
                await self._server.stop()

    async def look(self) -> None:
        """Bring back a lost socket and register with an agent that does not know the plugin yet."""
        agent = self._agent()
        if not agent:
            self._registered_with = 0
            return
        if self._server is None or not self._server.present or agent != self._registered_with:
            try:
                await self._serve_and_register(agent)
                self._told = ""
            except (CallError, OSError) as error:
                self._registered_with = 0
                if str(error) != self._told:
                    self._told = str(error)
                    _log.warning("device plugin %s is not registered: %s", self._resource, error)

    def _agent(self) -> int:
        """The inode of the agent's socket: another one is another agent."""
        try:
            return (self._folder / "kubelet.sock").stat().st_ino
        except FileNotFoundError:
            return 0

    async def _serve_and_register(self, agent: int) -> None:
        if self._server is None or not self._server.present:
            if self._server is not None:
                await self._server.stop()
            self._server = SocketServer(self._folder / self._endpoint, [device_plugin_service(self._plugin)])
            await self._server.start()
        channel = Channel(self._folder / "kubelet.sock")
        try:
            request = RegisterRequest(VERSION, self._endpoint, self._resource, self._options)
            await RegistryClient(channel).register(request, timeout=REGISTER_TIMEOUT_SECONDS)
            self._registered_with = agent
        finally:
            await channel.close()


async def forever() -> None:
    """Wait until cancelled; the rest of a stream that has nothing more to tell."""
    await asyncio.Event().wait()
