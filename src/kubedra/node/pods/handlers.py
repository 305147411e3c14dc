"""Does what a probe or a lifecycle hook says: a command in the container, an HTTP request, a connection, a pause.

Upstream counterpart: pkg/probe/{exec,http,tcp} and pkg/kubelet/lifecycle/handlers.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl

from kubedra.api.core_v1 import (
    Container,
    ExecAction,
    GRPCAction,
    HTTPGetAction,
    LifecycleHandler,
    SleepAction,
    TCPSocketAction,
)
from kubedra.base.clock import Clock
from kubedra.node.runtime.contract import Container as Running
from kubedra.node.runtime.contract import Runtime, StartError

OUTPUT_LIMIT = 10 * 1024


class ActionFailed(Exception):
    """The action did not succeed; the text says how."""


def port_number(container: Container, port: int | str | None) -> int:
    """A port by number or by the container's name for it; raises ActionFailed."""
    if port is None:
        raise ActionFailed("no port is named")
    if isinstance(port, int) or port.isdigit():
        return int(port)
    for known in container.ports:
        if known.name == port:
            return known.container_port
    raise ActionFailed(f"couldn't find port: {port} in container {container.name}")


async def _get(host: str, port: int, context: ssl.SSLContext | None, request: bytes) -> int:
    """The status of an answer; the rest of it is not read."""
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        writer.write(request)
        await writer.drain()
        line = await reader.readline()
        if not line.startswith(b"HTTP/"):
            raise EOFError("the answer is not HTTP")
        return int(line.split()[1])
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class Actions:
    """Carries out actions for one running container."""

    def __init__(self, runtime: Runtime, spec: Container, running: Running, address: str) -> None:
        self._runtime = runtime
        self._spec = spec
        self._running = running
        self._address = address

    async def execute(self, action: ExecAction, timeout: float) -> None:
        """Runs a command in the container; raises ActionFailed unless it exits with 0."""
        try:
            code, output = await self._runtime.execute(self._running, action.command, timeout)
        except TimeoutError as error:
            raise ActionFailed(
                f'command timed out: "{" ".join(action.command)}" timed out after {timeout:g}s'
            ) from error
        except StartError as error:
            raise ActionFailed(str(error)) from error
        if code != 0:
            raise ActionFailed(output.strip() or f"exit code {code}")

    async def http(self, action: HTTPGetAction, timeout: float) -> None:
        """Asks for a page; raises ActionFailed unless the answer is a success or a redirection."""
        scheme = (action.scheme or "HTTP").lower()
        host, port = action.host or self._address, port_number(self._spec, action.port)
        path = "/" + action.path.lstrip("/")
        url = f"{scheme}://{host}:{port}{path}"
        headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/1.37", "Accept": "*/*", "Connection": "close"}
        headers |= {header.name: header.value for header in action.http_headers}
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        context = None
        if scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        try:
            status = await asyncio.wait_for(_get(host, port, context, "\r\n".join(lines).encode()), timeout)
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            raise ActionFailed(f'Get "{url}": {str(error) or "context deadline exceeded"}') from error
        if not 200 <= status < 400:
            raise ActionFailed(f"HTTP probe failed with statuscode: {status}")

    async def tcp(self, action: TCPSocketAction, timeout: float) -> None:
        """Opens a connection; raises ActionFailed."""
        host, port = action.host or self._address, port_number(self._spec, action.port)
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), timeout)
        except (OSError, TimeoutError) as error:
            raise ActionFailed(f"dial tcp {host}:{port}: {error or 'i/o timeout'}") from error
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def any(
        self,
        timeout: float,
        exec_: ExecAction | None,
        http: HTTPGetAction | None,
        tcp: TCPSocketAction | None,
        grpc: GRPCAction | None = None,
    ) -> None:
        """Whichever action is set; raises ActionFailed."""
        if exec_ is not None:
            await self.execute(exec_, timeout)
        elif http is not None:
            await self.http(http, timeout)
        elif tcp is not None:
            await self.tcp(tcp, timeout)
        elif grpc is not None:
            raise ActionFailed("gRPC probes are not implemented by this node agent")

    async def hook(self, handler: LifecycleHandler, timeout: float, clock: Clock) -> None:
        """What a lifecycle hook says; raises ActionFailed."""
        if handler.sleep is not None:
            await self._sleep(handler.sleep, timeout, clock)
        else:
            await self.any(timeout, handler.exec, handler.http_get, handler.tcp_socket)

    async def _sleep(self, action: SleepAction, timeout: float, clock: Clock) -> None:
        await clock.sleep(min(float(action.seconds), timeout))
