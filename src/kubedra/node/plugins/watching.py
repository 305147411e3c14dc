"""Watches the registration folder: a socket appears, its plugin is asked who it is, and told whether it was taken.

Every socket has a task of its own, so a dead one delays nobody. A socket that is replaced under its name is a new
plugin (the file's inode tells). Upstream counterpart: pkg/kubelet/pluginmanager; its 1 s tick is a setting here and
shorter.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from kubedra.base.clock import Clock
from kubedra.node.plugins.registry import RegistrationRefused
from kubedra.node.settings import Waits
from kubedra.wire.registration import PluginInfo, RegistrationClient
from kubedra.wire.transport import CallError, Channel

log = logging.getLogger(__name__)


class SocketFile(msgspec.Struct, frozen=True):
    """A socket file: the same path with another inode or time of creation is another socket.

    Not the time of its last change: servers bind first and set the permissions after.
    """

    path: str
    inode: int
    created: int


class PluginHandler(msgspec.Struct, frozen=True):
    """What happens with plugins of one type: ``register`` returns what ``deregister`` is given later."""

    register: Callable[[PluginInfo, Path], Awaitable[str]]
    deregister: Callable[[str], Awaitable[None]]


def find_sockets(folder: Path) -> set[SocketFile]:
    """All sockets below a folder; names with a dot in front are not looked at."""
    found = set()
    pending = [str(folder)]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    pending.append(entry.path)
                elif stat.S_ISSOCK(status.st_mode):
                    found.add(SocketFile(entry.path, status.st_ino, status.st_mtime_ns))
    return found


class PluginWatcher:
    """Registers and deregisters plugins as their sockets come and go."""

    def __init__(self, folder: Path, handlers: dict[str, PluginHandler], waits: Waits, clock: Clock) -> None:
        self._folder = folder
        self._handlers = handlers
        self._waits = waits
        self._clock = clock
        self._tasks: dict[SocketFile, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Watches until cancelled."""
        try:
            while True:
                await self.reconcile()
                await self._clock.sleep(self._waits.plugin_scan)
        finally:
            await self._stop(list(self._tasks))

    async def reconcile(self) -> None:
        """Looks once."""
        found = find_sockets(self._folder)
        await self._stop([socket for socket in self._tasks if socket not in found])
        for socket in sorted(found - self._tasks.keys(), key=lambda socket: socket.path):
            self._tasks[socket] = asyncio.create_task(self._serve(socket), name=f"plugin {socket.path}")

    async def _stop(self, sockets: list[SocketFile]) -> None:
        tasks = [self._tasks.pop(socket) for socket in sockets]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, socket: SocketFile) -> None:
        """Registers one plugin, trying again as long as its socket is there, and deregisters it at the end."""
        path = Path(socket.path)
        delay = self._waits.plugin_retry_first
        registered: tuple[PluginHandler, str] | None = None
        try:
            while registered is None:
                registered = await self._register(path)
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    # A call that fails in the moment in which we are to stop tells of its failure only.
                    raise asyncio.CancelledError
                if registered is None:
                    await self._clock.sleep(delay)
                    delay = min(delay * 2, self._waits.plugin_retry_last)
            await asyncio.Event().wait()
        finally:
            if registered is not None:
                await registered[0].deregister(registered[1])

    async def _register(self, path: Path) -> tuple[PluginHandler, str] | None:
        try:
            channel = Channel(path)
        except ValueError as error:
            log.warning("plugin socket: %s", error)
            return None
        try:
            if not await channel.wait_connected(self._waits.plugin_dial):
                log.warning("dial failed at socket %s, err: no answer in %g s", path, self._waits.plugin_dial)
                return None
            client = RegistrationClient(channel)
            try:
                info = await client.get_info(timeout=self._waits.plugin_info)
            except CallError as error:
                log.warning("failed to get plugin info using RPC GetInfo at socket %s, err: %s", path, error)
                return None
            handler = self._handlers.get(info.type)
            key = error_text = ""
            if handler is None:
                error_text = f"no handler registered for plugin type: {info.type} at socket {path}"
            else:
                try:
                    key = await handler.register(info, path)
                except (RegistrationRefused, ValueError) as error:
                    # Upstream checks the versions before and the endpoint while it registers, and says which.
                    phase = "registration" if "already registered" in str(error) else "validation"
                    error_text = f"plugin {phase} failed with err: {error}"
            try:
                text = f"RegisterPlugin error -- {error_text}" if error_text else ""
                await client.notify(not error_text, text, timeout=self._waits.plugin_notify)
            except (CallError, asyncio.CancelledError) as error:
                # The socket may go while its plugin is being told: what was registered must not stay then.
                if handler is not None and key:
                    await handler.deregister(key)
                if isinstance(error, asyncio.CancelledError):
                    raise
                log.warning("could not tell the plugin at %s that it is registered: %s", path, error)
                return None
            if error_text or handler is None:
                log.warning("RegisterPlugin error -- %s", error_text)
                return None
            return handler, key
        finally:
            await channel.close()
