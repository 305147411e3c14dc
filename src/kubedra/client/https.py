"""The Client protocol over HTTPS, for a real kube-apiserver and for ours.

A thin layer on aiohttp: a pool of connections, one connection per watch, retries only where the request can't have had
an effect.
"""

from __future__ import annotations

import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

import aiohttp

from kubedra.client.kubeconfig import Connection
from kubedra.client.protocol import Response
from kubedra.client.requests import RequestingClient, error_from

TOKEN_RELOAD_SECONDS = 60.0


class HttpsClient(RequestingClient):
    """A client of one API server as one user. ``close`` it at the end."""

    def __init__(self, connection: Connection, *, user_agent: str = "kubedra", timeout: float = 60.0) -> None:
        self.connection = connection
        self._headers = {"User-Agent": user_agent, "Accept": "application/json"}
        self._timeout = aiohttp.ClientTimeout(total=timeout, connect=10)
        self._stream_timeout = aiohttp.ClientTimeout(total=None, connect=10, sock_read=None)
        self._session: aiohttp.ClientSession | None = None
        self._token = connection.token
        self._token_read = 0.0
        self._refused: set[str] = set()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            connector = aiohttp.TCPConnector(
                ssl=_ssl_context(self.connection) if self.connection.server.startswith("https") else False,
                limit=0,
                keepalive_timeout=60,
            )
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)
        return self._session

    def _all_headers(self, headers: Mapping[str, str] | None) -> dict[str, str]:
        out = self._headers | dict(headers or {})
        if self.connection.token_file and time.monotonic() - self._token_read > TOKEN_RELOAD_SECONDS:
            with suppress(OSError):
                self._token = Path(self.connection.token_file).read_text().strip()
                self._token_read = time.monotonic()
        if self._token:
            out.setdefault("Authorization", f"Bearer {self._token}")
        return out

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send one request. Raises ConnectionError when there was no answer."""
        session = self._open()
        for attempt in (1, 2):
            try:
                async with session.request(
                    method,
                    self.connection.server + path,
                    params=dict(query or {}),
                    data=body,
                    headers=self._all_headers(headers),
                    timeout=self._timeout,
                    server_hostname=self.connection.server_name or None,
                ) as answer:
                    content = await answer.read()
                    return Response(answer.status, {k.lower(): v for k, v in answer.headers.items()}, content)
            except aiohttp.ServerDisconnectedError as error:
                # A kept connection that the server closed meanwhile: reads may be sent again, writes may not.
                if attempt == 2 or method != "GET":
                    raise ConnectionError(f"{self.connection.server} closed the connection") from error
            except (TimeoutError, aiohttp.ClientError, OSError) as error:
                raise ConnectionError(f"{self.connection.server}: {_reason(error)}") from error
        raise AssertionError("unreachable")

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """The lines of a watch; ends when the server ends it. Raises ConnectionError when it breaks."""
        session = self._open()
        try:
            async with session.get(
                self.connection.server + path,
                params=dict(query),
                headers=self._all_headers(None),
                timeout=self._stream_timeout,
                server_hostname=self.connection.server_name or None,
            ) as answer:
                if answer.status >= 300:
                    raise error_from(answer.status, await answer.read())
                rest = b""
                async for chunk in answer.content.iter_any():
                    lines = (rest + chunk).split(b"\n")
                    rest = lines.pop()
                    for line in lines:
                        if line:
                            yield line
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise ConnectionError(f"{self.connection.server}: {_reason(error)}") from error

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _ssl_context(connection: Connection) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=connection.ca.decode() if connection.ca else None)
    if connection.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if connection.client_certificate and connection.client_key:
        # The ssl module only loads from files; this one is readable by nobody else and gone at once.
        with tempfile.NamedTemporaryFile(prefix="kubedra-") as pem:
            pem.write(connection.client_certificate + b"\n" + connection.client_key)
            pem.flush()
            context.load_cert_chain(pem.name)
    return context
