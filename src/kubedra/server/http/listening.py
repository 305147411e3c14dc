"""Listening: the TLS context, the free port, uvicorn without its signal handlers, and the graceful end.

Client certificates: a subclass of uvicorn's httptools protocol reads the verified peer certificate when a connection
is made and puts its user into the scope. This leans on a private seam of uvicorn (pinned in pyproject, with a test);
upstream pull requests will replace it.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kubedra.server.access.authentication import certificate_user
from kubedra.server.access.users import User
from kubedra.server.store import StoreError

PORTS_TO_TRY = 50


class PortInUse(StoreError):
    """The port that was asked for is taken."""


class DamagedKeys(StoreError):
    """Keys and certificates that can't be read or do not belong together."""


class JoinedWrites:
    """A transport that sends what one turn of the loop wrote as one piece: head and body of an answer together.

    Over TLS every write is a record and a system call of its own.
    """

    __slots__ = ("_loop", "_parts", "_transport")

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Queues data until the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        """Sends what is queued, then closes."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class CertificateProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose scope knows the user of the client certificate."""

    _certificate_user: User | None = None

    def connection_made(self, transport: Any) -> None:
        """Reads the peer certificate, which TLS has verified."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert() if tls is not None else None
        if certificate:
            self._certificate_user = certificate_user(certificate.get("subject", ()))

    def on_message_begin(self) -> None:
        """Hands the user to the application."""
        super().on_message_begin()
        if self._certificate_user is not None:
            self.scope["user"] = self._certificate_user  # type: ignore[typeddict-unknown-key]


def tls_context(certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    """A server context that asks for client certificates and takes connections without. Raises `DamagedKeys`."""
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority))
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise DamagedKeys(
            f"the keys and certificates in {authority.parent} can't be used ({error.reason}); "
            "remove that folder, and new ones are made"
        ) from error
    context.verify_mode = ssl.CERT_OPTIONAL
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def bind(host: str, port: int | None, default: int) -> socket.socket:
    """A bound socket. Raises `PortInUse` if `port` was asked for and is taken."""
    candidates = [port] if port is not None else [*range(default, default + PORTS_TO_TRY), 0]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in candidates:
        # The protocol is named: asyncio sets TCP_NODELAY only where it reads IPPROTO_TCP.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            # Claimed at once: two servers that start together must not both believe in the same port.
            listener.listen(2048)
        except OSError as error:
            listener.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise PortInUse(f"the address {host}:{candidate} can't be used: {error.strerror}") from error
            if port is not None:
                why = "is in use by another program" if error.errno == errno.EADDRINUSE else "needs more rights"
                raise PortInUse(f"port {candidate} on {host} {why}; choose another one with --port") from error
            continue
        listener.setblocking(False)
        return listener
    raise PortInUse(f"no free port on {host}")


class Listener:
    """One listening server. `start`, then `stop`, which gives open requests a few seconds."""

    def __init__(self, application: Any, listener: socket.socket, context: ssl.SSLContext, stop_seconds: float) -> None:
        self._socket = listener
        self._config = uvicorn.Config(
            application,
            http=CertificateProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            date_header=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=90,
            timeout_graceful_shutdown=stop_seconds,  # type: ignore[arg-type]
            backlog=2048,
        )
        self._config.load()
        self._config.ssl = context
        self._server = uvicorn.Server(self._config)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._socket.getsockname()[1])

    async def start(self) -> None:
        """Begins to accept connections."""
        server = self._server
        server.lifespan = self._config.lifespan_class(self._config)
        await server.startup(sockets=[self._socket])

    async def stop(self) -> None:
        """Ends keep-alive connections at once and running requests after the grace."""
        await self._server.shutdown(sockets=[self._socket])
