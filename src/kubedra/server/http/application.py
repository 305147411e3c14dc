"""The ASGI application: bytes of a connection to a `Request`, a `Response` back to bytes.

Does authentication and impersonation; everything else is the handler's. Streams end when the client goes away.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from kubedra.api.errors import ApiError
from kubedra.server.access.authentication import Authenticator, impersonated
from kubedra.server.decoding.bodies import MAX_BODY
from kubedra.server.handler import Handler
from kubedra.server.requests import Request, Response, error_response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

GZIP_FROM = 128 * 1024
_NO_CACHE = (b"cache-control", b"no-cache, private")
_CONTENT_TYPES: dict[str, bytes] = {}


class Application:
    """One per server."""

    def __init__(self, handler: Handler, authenticator: Authenticator) -> None:
        self._handler = handler
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request."""
        if scope["type"] != "http":
            return
        headers: dict[str, str] = {}
        every: list[tuple[str, str]] = []
        impersonates = False
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            headers[name] = value
            if name.startswith("impersonate-"):
                impersonates = True
                every.append((name, value))
            elif name == "accept" and "accept" in headers:
                headers[name] = value
        method, path = scope["method"], scope["path"]
        try:
            body = await _body(receive, headers)
            user = self._authenticator.request(headers.get("authorization", ""), scope.get("user"), path)
            if impersonates:
                user = impersonated(user, headers, every, self._handler.state.authorizer.authorize)
            raw_query = scope["query_string"]
            query = _query(raw_query) if raw_query else {}
            response = await self._handler.handle(Request(method, path, query, headers, body, user))
        except ApiError as error:
            response = error_response(error)
            if error.code == 401:
                response.content_type = "application/json"
        if response.stream is not None:
            await _stream(response, receive, send)
        else:
            await _answer(response, headers.get("accept-encoding", ""), send)


def _query(raw: bytes) -> dict[str, str]:
    query: dict[str, str] = {}
    for name, value in parse_qsl(raw.decode("latin-1"), keep_blank_values=True):
        # Go's query.Get takes the first of several.
        query.setdefault(name, value)
    return query


async def _body(receive: Receive, headers: dict[str, str]) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts, size = [body], len(body)
        while message.get("more_body"):
            message = await receive()
            part = message.get("body", b"")
            size += len(part)
            if size > 2 * MAX_BODY:
                raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY}")
            parts.append(part)
        body = b"".join(parts)
    if body and headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return body


def _start(response: Response, extra: list[tuple[bytes, bytes]]) -> Message:
    kind = _CONTENT_TYPES.get(response.content_type)
    if kind is None:
        kind = _CONTENT_TYPES[response.content_type] = response.content_type.encode()
    headers = [(b"content-type", kind), _NO_CACHE, *extra]
    for name, value in response.headers:
        headers.append((name.lower().encode(), value.encode("utf-8")))
    return {"type": "http.response.start", "status": response.status, "headers": headers}


async def _answer(response: Response, encodings: str, send: Send) -> None:
    body = response.body
    extra: list[tuple[bytes, bytes]] = []
    if len(body) >= GZIP_FROM and "gzip" in encodings:
        # zlib lets other threads run: the loop keeps serving meanwhile.
        body = await asyncio.to_thread(gzip.compress, body, 1)
        extra.append((b"content-encoding", b"gzip"))
        extra.append((b"vary", b"Accept-Encoding"))
    extra.append((b"content-length", str(len(body)).encode()))
    await send(_start(response, extra))
    await send({"type": "http.response.body", "body": body})


async def _stream(response: Response, receive: Receive, send: Send) -> None:
    assert response.stream is not None
    stream = response.stream
    await send(_start(response, []))
    # An empty chunk pushes the headers out: clients wait for them before they read.
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    gone = asyncio.ensure_future(_disconnected(receive))
    step: asyncio.Future[bytes] | None = None
    try:
        while True:
            step = asyncio.ensure_future(anext(stream))
            await asyncio.wait((step, gone), return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                break
            try:
                chunk = step.result()
            except StopAsyncIteration:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                break
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    finally:
        gone.cancel()
        if step is not None and not step.done():
            step.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await step
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


async def _disconnected(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
