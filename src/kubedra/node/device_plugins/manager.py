"""Serves device plugins: registration, device lists, allocation at admission, and a checkpoint.

The shell around device_plugins/pool.py. At start every socket in the folder is removed, which tells plugins to register
again. The checkpoint has the kubelet's fields and our own checksum (Go's is a hash of Go's memory layout), so it
has its own name. Upstream counterpart: pkg/kubelet/cm/devicemanager.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Callable, Iterator

import msgspec

from kubedra.api.core_v1 import Container, Pod
from kubedra.base.clock import Clock
from kubedra.base.names import qualified_name
from kubedra.base.quantity import Quantity
from kubedra.node.device_plugins.pool import AllocationRefused, Assignment, DevicePool, choose
from kubedra.node.settings import Waits
from kubedra.wire.device_plugin import (
    VERSION,
    DevicePluginClient,
    Options,
    PreferredAllocation,
    RegisterRequest,
    registry_service,
)
from kubedra.wire.durable import write_durably
from kubedra.wire.paths import NodePaths
from kubedra.wire.transport import CallError, Channel, SocketServer

log = logging.getLogger(__name__)

FILE_NAME = "device_plugin_state"
LOOK_SECONDS = 1.0


class _Plugin:
    def __init__(self, channel: Channel, options: Options) -> None:
        self.channel = channel
        self.client = DevicePluginClient(channel)
        self.options = options
        self.task: asyncio.Task[None] | None = None


class _Data(msgspec.Struct):
    assignments: tuple[Assignment, ...]
    resources: tuple[str, ...]


class _File(msgspec.Struct):
    data: str
    checksum: int


class DevicePluginManager:
    """All device plugins of the node."""

    def __init__(self, paths: NodePaths, waits: Waits, clock: Clock) -> None:
        self._paths = paths
        self._waits = waits
        self._clock = clock
        self._plugins: dict[str, _Plugin] = {}
        self._server = SocketServer(paths.kubelet_socket, (registry_service(self),))
        self._guard: asyncio.Task[None] | None = None
        self._file = paths.checkpoint_dir / FILE_NAME
        self.pool = self._load()
        # Called when capacity or health changed.
        self.on_change: Callable[[], None] = lambda: None

    async def start(self) -> None:
        """Removes old sockets and waits for plugins to register."""
        for entry in self._paths.device_plugins_dir.iterdir():
            if entry.is_socket():
                with contextlib.suppress(OSError):
                    entry.unlink()
        await self._server.start()
        self._guard = asyncio.create_task(self._keep_socket(), name="kubelet.sock")

    async def _keep_socket(self) -> None:
        """Brings a lost socket back: who cleans the temp folder takes it, and no plugin could register any more."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            if self._server.present:
                continue
            log.warning("%s is gone and made again", self._paths.kubelet_socket)
            try:
                await self._server.stop()
                self._paths.create()
                await self._server.start()
            except OSError as error:
                log.warning("%s can't be made again: %s", self._paths.kubelet_socket, error)

    async def stop(self) -> None:
        """Lets all plugins go."""
        if self._guard is not None:
            self._guard.cancel()
            await asyncio.gather(self._guard, return_exceptions=True)
        await self._server.stop()
        for plugin in list(self._plugins.values()):
            await self._drop(plugin)
        self._plugins.clear()

    async def _drop(self, plugin: _Plugin) -> None:
        if plugin.task is not None:
            plugin.task.cancel()
            await asyncio.gather(plugin.task, return_exceptions=True)
        await plugin.channel.close()

    # ---- registration ----

    async def register(self, request: RegisterRequest) -> None:
        """A plugin announces itself; raises CallError to refuse it."""
        if request.version != VERSION:
            raise CallError(
                "Unknown",
                f'requested API version "{request.version}" is not supported by kubelet. '
                f'Supported version is ["{VERSION}"]',
            )
        name = request.resource_name
        if "/" not in name or qualified_name(name):
            raise CallError("Unknown", f'the ResourceName "{name}" is invalid')
        if "/" in request.endpoint or not request.endpoint:
            text = f'the endpoint "{request.endpoint}" must be the name of a socket in the device plugin folder'
            raise CallError("Unknown", text)
        channel = Channel(self._paths.device_plugins_dir / request.endpoint)
        if not await channel.wait_connected(self._waits.plugin_dial):
            await channel.close()
            raise CallError("Unknown", f"failed to dial device plugin: {request.endpoint}")
        try:
            options = await DevicePluginClient(channel).options()
        except CallError as error:
            await channel.close()
            raise CallError("Unknown", f"failed to get device plugin options: {error}") from error
        old = self._plugins.pop(name, None)
        if old is not None:
            await self._drop(old)
        plugin = _Plugin(channel, options)
        self._plugins[name] = plugin
        self.pool.registered(name)
        plugin.task = asyncio.create_task(self._follow(name, plugin), name=f"device plugin {name}")
        log.info("device plugin %s registered", name)

    async def _follow(self, name: str, plugin: _Plugin) -> None:
        # One that comes back with the same devices changes the node, too: none were on offer while it was away.
        back = True
        try:
            async for devices in plugin.client.list_and_watch():
                if self.pool.update(name, devices) or back:
                    back = False
                    self.on_change()
        except CallError as error:
            log.info("device plugin %s: %s", name, error)
        self.pool.gone(name, self._clock.monotonic())
        self.on_change()
        if self._plugins.get(name) is plugin:
            del self._plugins[name]
        await plugin.channel.close()

    def expire(self) -> None:
        """To be called now and then: plugins that were away for too long lose their capacity."""
        if self.pool.expire(self._clock.monotonic(), self._waits.device_plugin_gone):
            self.on_change()

    # ---- allocation ----

    def owns(self, resource: str) -> bool:
        """Whether a plugin ever registered this resource here."""
        return resource in self.pool.resources

    async def allocate(self, pod: Pod) -> None:
        """Gives a pod its devices at admission, once; raises AllocationRefused and takes all back then."""
        uid = pod.metadata.uid
        if any(a.pod_uid == uid for a in self.pool.assignments):
            return
        reusable: dict[str, list[str]] = {}
        changed = False
        try:
            for container, resource, count in self._requests(pod):
                init = container in pod.spec.init_containers and container.restart_policy != "Always"
                devices = await self._allocate(uid, container, resource, count, reusable.get(resource, []))
                changed = True
                if init:
                    reusable.setdefault(resource, []).extend(d for d in devices if d not in reusable[resource])
                else:
                    reusable[resource] = [d for d in reusable.get(resource, []) if d not in devices]
        except AllocationRefused:
            self.pool.release(uid)
            raise
        if changed:
            await self._save()

    def _requests(self, pod: Pod) -> Iterator[tuple[Container, str, int]]:
        extended = pod.status.extended_resource_claim_status
        mapped = {(m.container_name, m.resource_name) for m in extended.request_mappings} if extended else set()
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            limits = container.resources.limits if container.resources is not None else {}
            for resource, text in sorted(limits.items()):
                count = Quantity.parse(text).value()
                if self.owns(resource) and count and (container.name, resource) not in mapped:
                    yield container, resource, count

    async def _allocate(
        self, uid: str, container: Container, resource: str, count: int, reusable: list[str]
    ) -> tuple[str, ...]:
        candidates = self.pool.check(resource, count, reusable)
        plugin = self._plugins.get(resource)
        if plugin is None:
            raise AllocationRefused(f"cannot allocate unregistered device {resource}")
        again = tuple(device for device in reusable if device in candidates)[:count]
        try:
            preferred: tuple[str, ...] = ()
            if plugin.options.get_preferred_allocation_available:
                asked = PreferredAllocation(candidates, again, count)
                answers = await plugin.client.preferred_allocation([asked])
                preferred = answers[0] if answers else ()
                # Others may have been served meanwhile.
                candidates = self.pool.check(resource, count, reusable)
            devices = choose(candidates, again, preferred, count)
            # Held from now on: the answer may take a while, and others ask.
            held = Assignment(uid, container.name, resource, devices)
            self.pool.assignments.append(held)
            responses = await plugin.client.allocate([devices])
        except CallError as error:
            raise AllocationRefused(str(error)) from error
        if not responses:
            raise AllocationRefused("no containers return in allocation response ")
        self.pool.assignments.remove(held)
        self.pool.assignments.append(msgspec.structs.replace(held, response=responses[0]))
        return devices

    async def pre_start(self, pod_uid: str, container: str) -> None:
        """Tells plugins that want to know that a container is about to start; raises CallError."""
        for assignment in self.pool.held(pod_uid, container):
            plugin = self._plugins.get(assignment.resource)
            if plugin is not None and plugin.options.pre_start_required:
                await plugin.client.pre_start_container(assignment.devices, timeout=self._waits.pre_start_container)

    async def release(self, pod_uid: str) -> None:
        """A pod has ended."""
        if self.pool.release(pod_uid):
            await self._save()

    # ---- checkpoint ----

    def _load(self) -> DevicePool:
        try:
            file = msgspec.json.decode(self._file.read_bytes(), type=_File)
            if zlib.crc32(file.data.encode()) != file.checksum:
                raise ValueError("checkpoint is corrupted")
            data = msgspec.json.decode(file.data, type=_Data)
        except FileNotFoundError:
            return DevicePool()
        except ValueError as error:
            raise ValueError(
                f"the device plugin checkpoint {self._file} can't be read ({error}): drain the node and remove it"
            ) from error
        return DevicePool(data.assignments, data.resources)

    async def _save(self) -> None:
        data = msgspec.json.encode(_Data(tuple(self.pool.assignments), self.pool.resources))
        content = msgspec.json.encode(_File(data.decode(), zlib.crc32(data)))
        await asyncio.get_running_loop().run_in_executor(None, write_durably, self._file, content)
