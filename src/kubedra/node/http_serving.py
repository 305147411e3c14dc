"""A small HTTPS server for the kubelet API: GET-like requests, plain or streamed answers, one request per connection.

A general web framework would cost every cluster start 0.2 s and every process 15 MB for four routes. Bodies of
requests are not read, pipelining is not offered; a client that goes away ends its answer at once, so that nobody
follows a log for nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

log = logging.getLogger(__name__)

HEAD_LIMIT = 64 * 1024
HEAD_SECONDS = 30.0
HANDSHAKE_SECONDS = 10.0


class Request(msgspec.Struct, frozen=True):
    """A request: its path decoded, and who the client's certificate says it is (pairs of kind and name)."""

    method: str
    path: str
    query: Mapping[str, str]
    subject: frozenset[tuple[str, str]]


class Answer(msgspec.Struct, frozen=True):
    """What is sent back; ``stream`` takes the place of ``body``."""

    status: int = 200
    body: bytes = b""
    content_type: str = "text/plain"
    stream: AsyncIterator[bytes] | None = None


Handler = Callable[[Request], Awaitable[Answer]]


class HttpsServer:
    """Listens and hands requests to one handler."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int, context: ssl.SSLContext) -> int:
        """Listens and returns the port."""
        self._server = await asyncio.start_server(
            self._connected, host, port, ssl=context, limit=HEAD_LIMIT, ssl_handshake_timeout=HANDSHAKE_SECONDS
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Closes the port and all connections."""
        if self._server is None:
            return
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the client went away or never said anything
        except asyncio.CancelledError:
            pass  # the server stops
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
            request = _parse(head, writer)
        except (ValueError, asyncio.LimitOverrunError):
            await _send(writer, Answer(400, b"Bad Request"))
            return
        try:
            answer = await self._handler(request)
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            answer = Answer(500, b"Internal Server Error")
        sending = asyncio.ensure_future(_send(writer, answer))
        # Nothing more is expected from the client: what ends this read is its leaving.
        leaving = asyncio.ensure_future(reader.read())
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for future in (sending, leaving):
                if not future.done():
                    future.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)


def _parse(head: bytes, writer: asyncio.StreamWriter) -> Request:
    line = head.split(b"\r\n", 1)[0].decode("latin-1")
    method, target, version = line.split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(version)
    parts = urlsplit(target)
    certificate = writer.get_extra_info("peercert") or {}
    subject = frozenset(pair for part in certificate.get("subject", ()) for pair in part)
    return Request(method, unquote(parts.path), dict(parse_qsl(parts.query, keep_blank_values=True)), subject)


async def _send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    phrase = HTTPStatus(answer.status).phrase
    head = f"HTTP/1.1 {answer.status} {phrase}\r\nContent-Type: {answer.content_type}\r\nConnection: close\r\n"
    if answer.stream is None:
        writer.write(f"{head}Content-Length: {len(answer.body)}\r\n\r\n".encode() + answer.body)
        await writer.drain()
        return
    writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
    async for piece in answer.stream:
        if piece:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()
