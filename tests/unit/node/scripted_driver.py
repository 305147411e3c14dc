"""A DRA driver for tests: real gRPC on a real socket, answers as told, remembers what it was asked."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from kubedra.wire.dra import Claim, Device, PrepareResult, dra_service, negotiated_name
from kubedra.wire.health import DeviceHealth, health_service, service_name
from kubedra.wire.paths import NodePaths
from kubedra.wire.registration import DRA_PLUGIN, PluginInfo, registration_service
from kubedra.wire.transport import CallError, SocketServer


class ScriptedDriver:
    """Prepares every claim with one device, unless told to fail."""

    __test__ = False

    def __init__(
        self,
        paths: NodePaths,
        name: str = "gpu.example.com",
        versions: Sequence[str] = (),
        *,
        health: bool = False,
    ) -> None:
        self.name = name
        self.calls: list[tuple[str, ...]] = []
        self.notices: list[tuple[bool, str]] = []
        self.prepare_error = ""
        self.unprepare_error = ""
        self.claim_error = ""
        self.gate = asyncio.Event()
        self.gate.set()
        self.cdi_ids: dict[str, tuple[str, ...]] = {}
        self._versions = tuple(versions or (negotiated_name("v1"), negotiated_name("v1beta1")))
        self.endpoint = paths.service_socket(name)
        services = [dra_service(self, "v1"), dra_service(self, "v1beta1")]
        if health:
            self._versions += (service_name("v1"),)
            services.append(health_service(self, "v1"))
        self._health: asyncio.Queue[DeviceHealth | None] = asyncio.Queue()
        self._service = SocketServer(self.endpoint, services)
        self._registration = SocketServer(paths.registration_socket(name), (registration_service(self),))

    async def start(self) -> None:
        await self._service.start()
        await self._registration.start()

    async def stop(self) -> None:
        self._health.put_nowait(None)
        await self._registration.stop()
        await self._service.stop()

    def report(self, health: DeviceHealth) -> None:
        self._health.put_nowait(health)

    async def watch_health(self) -> AsyncIterator[tuple[DeviceHealth, ...]]:
        while (health := await self._health.get()) is not None:
            yield (health,)

    async def get_info(self) -> PluginInfo:
        self.calls.append(("GetInfo",))
        return PluginInfo(DRA_PLUGIN, self.name, str(self.endpoint), self._versions)

    async def notify(self, registered: bool, error: str) -> None:
        self.notices.append((registered, error))

    async def prepare(self, claims: Sequence[Claim]) -> Mapping[str, PrepareResult]:
        self.calls.append(("prepare", *(claim.name for claim in claims)))
        await self.gate.wait()
        if self.prepare_error:
            raise CallError("Internal", self.prepare_error)
        if self.claim_error:
            return {claim.uid: PrepareResult(error=self.claim_error) for claim in claims}
        return {
            claim.uid: PrepareResult((Device(("gpu",), "pool", f"dev-{claim.name}", self.cdi_ids.get(claim.name, ())),))
            for claim in claims
        }

    async def unprepare(self, claims: Sequence[Claim]) -> Mapping[str, str]:
        self.calls.append(("unprepare", *(claim.name for claim in claims)))
        return {claim.uid: self.unprepare_error for claim in claims}


async def until(condition: object, *, seconds: float = 10.0) -> None:
    """Waits until a function says yes."""
    assert callable(condition)
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


def node_paths(tmp_path: Path, node: str = "n1") -> NodePaths:
    """Paths of a node, with sockets where they are short enough."""
    return NodePaths(tmp_path / "data", Path(tempfile.mkdtemp(prefix="kn")), node)
