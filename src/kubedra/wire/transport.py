"""gRPC over unix sockets, with the settings that every side of a node needs and typed errors.

This is the only file that imports grpc. Fork support is switched off before the import: a process that holds gRPC
never forks by itself, and grpc's fork handlers would hang one that starts a child. Clients send ``localhost`` as
authority, because the default (the percent-encoded path) is refused by strict servers. Reconnects back off for at most
a second: the other end is on the same machine. Upstream counterpart: the dialling code of the kubelet's plugin
manager and the non-blocking gRPC server of the driver helper library.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Literal, Protocol

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
# What goes wrong with a call is told by its caller; the library's own lines would only confuse.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
import grpc.aio

from kubedra.wire.paths import check_socket_path

_log = logging.getLogger(__name__)

_CHANNEL_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.default_authority", "localhost"),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
)

Code = Literal[
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
]

_CODES: dict[Any, Code] = {
    grpc.StatusCode.OK: "OK",
    grpc.StatusCode.CANCELLED: "Canceled",
    grpc.StatusCode.UNKNOWN: "Unknown",
    grpc.StatusCode.INVALID_ARGUMENT: "InvalidArgument",
    grpc.StatusCode.DEADLINE_EXCEEDED: "DeadlineExceeded",
    grpc.StatusCode.NOT_FOUND: "NotFound",
    grpc.StatusCode.ALREADY_EXISTS: "AlreadyExists",
    grpc.StatusCode.PERMISSION_DENIED: "PermissionDenied",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "ResourceExhausted",
    grpc.StatusCode.FAILED_PRECONDITION: "FailedPrecondition",
    grpc.StatusCode.ABORTED: "Aborted",
    grpc.StatusCode.OUT_OF_RANGE: "OutOfRange",
    grpc.StatusCode.UNIMPLEMENTED: "Unimplemented",
    grpc.StatusCode.INTERNAL: "Internal",
    grpc.StatusCode.UNAVAILABLE: "Unavailable",
    grpc.StatusCode.DATA_LOSS: "DataLoss",
    grpc.StatusCode.UNAUTHENTICATED: "Unauthenticated",
}
_STATUS = {code: status for status, code in _CODES.items()}


class CallError(Exception):
    """A call failed; the text has the form that Go programs print, since people search logs for it."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(f"rpc error: code = {code} desc = {detail}")
        self.code = code
        self.detail = detail


class Message(Protocol):
    """What the transport needs of a generated message class."""

    def SerializeToString(self) -> bytes: ...


def _raised(error: Any) -> CallError:
    code = _CODES.get(error.code(), "Unknown")
    # Go's client, which the wording is taken from, reports its own context and not the server's text here.
    detail = "context deadline exceeded" if code == "DeadlineExceeded" else str(error.details() or "")
    return CallError(code, detail)


def _was_asked_to_stop() -> bool:
    """Whether somebody cancelled this task; grpc raises the same error when a channel is closed under a call."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Channel:
    """A connection to the server behind one unix socket; it reconnects by itself until it is closed."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._channel = grpc.aio.insecure_channel(f"unix:{check_socket_path(socket)}", options=_CHANNEL_OPTIONS)

    @property
    def connected(self) -> bool:
        """Whether the connection stands at this moment."""
        return self._channel.get_state() is grpc.ChannelConnectivity.READY

    async def wait_connected(self, timeout: float) -> bool:
        """Connect; False when that did not succeed within ``timeout`` seconds."""
        try:
            # Not wait_for: until Python 3.12 it swallows a cancellation that comes with the connection.
            async with asyncio.timeout(timeout):
                await self._channel.channel_ready()
        except (TimeoutError, grpc.aio.UsageError):
            return False
        return True

    async def connection_changes(self) -> AsyncIterator[bool]:
        """Yield whether the connection stands, now and after every change; iterating keeps it up."""
        last: bool | None = None
        state = self._channel.get_state(try_to_connect=True)
        while state is not grpc.ChannelConnectivity.SHUTDOWN:
            ready = state is grpc.ChannelConnectivity.READY
            if ready is not last:
                last = ready
                yield ready
            await self._channel.wait_for_state_change(state)
            state = self._channel.get_state(try_to_connect=True)

    async def call(
        self, method: str, request: Message, response: Callable[[bytes], Any], *, timeout: float | None = None
    ) -> Any:
        """Make one unary call; ``response`` decodes the answer. Raises ``CallError``."""
        stub = self._channel.unary_unary(method, None, response)
        try:
            return await stub(request.SerializeToString(), timeout=timeout)
        except grpc.aio.AioRpcError as error:
            raise _raised(error) from error
        except grpc.aio.UsageError as error:
            raise CallError("Unavailable", "the connection was closed") from error
        except asyncio.CancelledError:
            if _was_asked_to_stop():
                raise
            raise CallError("Canceled", "the connection was closed") from None

    async def stream(self, method: str, request: Message, response: Callable[[bytes], Any]) -> AsyncIterator[Any]:
        """Yield the messages of a server stream until it ends. Raises ``CallError``."""
        try:
            call = self._channel.unary_stream(method, None, response)(request.SerializeToString())
        except grpc.aio.UsageError as error:
            raise CallError("Unavailable", "the connection was closed") from error
        try:
            async for message in call:
                yield message
        except grpc.aio.AioRpcError as error:
            raise _raised(error) from error
        except asyncio.CancelledError:
            if _was_asked_to_stop():
                raise
            raise CallError("Canceled", "the connection was closed") from None
        finally:
            call.cancel()

    async def close(self) -> None:
        """Close the connection; calls in flight raise ``CallError``, and never cancel the task that waits for them."""
        await self._channel.close()


Unary = Callable[[Any], Awaitable[Message]]
Stream = Callable[[Any], AsyncIterator[Message]]


class Service:
    """The methods of one gRPC service on the server side, by name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._handlers: dict[str, Any] = {}

    def unary(self, method: str, request: Callable[[bytes], Any], answer: Unary) -> None:
        """Add a method with one request and one answer; ``CallError`` from ``answer`` becomes the call's status."""

        async def handle(message: Any, context: Any) -> bytes:
            try:
                return (await answer(message)).SerializeToString()
            except CallError as error:
                await context.abort(_STATUS[error.code], error.detail)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                _log.exception("%s/%s failed", self.name, method)
                await context.abort(grpc.StatusCode.UNKNOWN, f"{type(error).__name__}: {error}")
            raise AssertionError("abort raises")

        self._handlers[method] = grpc.unary_unary_rpc_method_handler(handle, request, None)

    def stream(self, method: str, request: Callable[[bytes], Any], answer: Stream) -> None:
        """Add a method with one request and a stream of answers."""

        async def handle(message: Any, context: Any) -> AsyncIterator[bytes]:
            try:
                async for item in answer(message):
                    yield item.SerializeToString()
            except CallError as error:
                await context.abort(_STATUS[error.code], error.detail)

        self._handlers[method] = grpc.unary_stream_rpc_method_handler(handle, request, None)

    def handler(self) -> Any:
        """Return what grpc registers."""
        return grpc.method_handlers_generic_handler(self.name, self._handlers)


class SocketServer:
    """Serves gRPC services on one unix socket; a stale socket file in the way is replaced."""

    def __init__(self, socket: Path, services: Iterable[Service]) -> None:
        self.socket = check_socket_path(socket)
        self._services = tuple(services)
        self._server: Any = None
        self._inode = 0

    async def start(self) -> None:
        """Bind and serve; the socket may be used by this user alone."""
        self.socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            self.socket.unlink()
        server = grpc.aio.server(options=(("grpc.max_receive_message_length", 64 * 1024 * 1024),))
        server.add_generic_rpc_handlers(tuple(service.handler() for service in self._services))
        try:
            server.add_insecure_port(f"unix:{self.socket}")
        except RuntimeError as error:
            raise OSError(f"no socket can be made at {self.socket}: {error}") from error
        await server.start()
        self.socket.chmod(0o600)
        self._inode = self.socket.stat().st_ino
        self._server = server

    @property
    def present(self) -> bool:
        """Whether the socket file is still there and still ours (an agent that starts may remove it)."""
        try:
            return self.socket.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    async def stop(self, grace: float | None = 0.0) -> None:
        """Stop serving and remove the socket file; calls in flight get ``grace`` seconds."""
        server, self._server = self._server, None
        if server is None:
            return
        ours = self.present
        await server.stop(grace)
        if ours:
            with contextlib.suppress(FileNotFoundError):
                self.socket.unlink()
