"""The kubelet's HTTPS API as far as the API server needs it: container logs, health, metrics.

Everybody may ask /healthz. The rest is for the API server alone: it must show a client certificate that the cluster's
authority signed, with a name from the settings. exec, attach and port-forward are not there yet and say so.
Upstream counterpart: pkg/kubelet/server.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Collection
from datetime import timedelta
from pathlib import Path
from typing import Any

from kubedra.base.clock import Clock, parse_time
from kubedra.node.http_serving import Answer, HttpsServer, Request
from kubedra.node.logs import LogOptions, read_log

_ABSENT = ("exec", "attach", "portForward", "run", "cri")


class LogTarget:
    """Where a container's log is and whether it may still grow; raises LookupError in ``find``."""

    def __init__(self, path: Path, is_running: Callable[[], bool]) -> None:
        self.path = path
        self.is_running = is_running


FindLog = Callable[[str, str, str, bool], LogTarget]


def tls_context(cert: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    """What the API is served with: clients may show a certificate, and it must be of our authority then."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(cert, key)
    if client_ca is not None:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def log_options(query: Any, clock: Clock) -> LogOptions:
    """The options of a request; raises ValueError with a sentence."""

    def number(name: str) -> int | None:
        text = query.get(name)
        if text is None or text == "":
            return None
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f'invalid value "{text}" for {name}: it must be a number') from None
        if value < 0:
            raise ValueError(f"{name} must not be negative")
        return value

    since = parse_time(query["sinceTime"]) if query.get("sinceTime") else None
    seconds = number("sinceSeconds")
    if seconds is not None:
        since = clock.now() - timedelta(seconds=seconds)
    stream = query.get("stream", "")
    return LogOptions(
        query.get("follow") in ("true", "1"),
        query.get("timestamps") in ("true", "1"),
        since,
        number("tailLines"),
        number("limitBytes"),
        "" if stream in ("", "All") else stream,
    )


class KubeletApi:
    """Serves the API of one node."""

    def __init__(
        self,
        find_log: FindLog,
        metrics: Callable[[], bytes],
        allowed: Collection[str],
        allowed_groups: Collection[str],
        clock: Clock,
        poll: float,
    ) -> None:
        self._find_log = find_log
        self._metrics = metrics
        self._allowed = {("commonName", name) for name in allowed}
        self._allowed |= {("organizationName", name) for name in allowed_groups}
        self._clock = clock
        self._poll = poll
        self._server = HttpsServer(self.answer)

    async def start(self, host: str, port: int, context: ssl.SSLContext) -> int:
        """Listens and returns the port."""
        return await self._server.start(host, port, context)

    async def stop(self) -> None:
        """Closes the port; followers of logs are cut off."""
        await self._server.stop()

    async def answer(self, request: Request) -> Answer:
        """One request."""
        if request.path == "/healthz":
            return Answer(body=b"ok")
        if not request.subject:
            return Answer(401, b"Unauthorized")
        if not request.subject & self._allowed:
            names = ", ".join(sorted(value for key, value in request.subject if key == "commonName"))
            return _said(403, f"Forbidden (user={names}): the node's API is for the API server")
        parts = request.path.strip("/").split("/")
        if parts[0] in _ABSENT:
            return _said(501, f"{parts[0]} is not implemented by this node agent yet")
        if request.method != "GET":
            return _said(405, "Method Not Allowed")
        if parts == ["metrics"]:
            return Answer(body=self._metrics(), content_type="text/plain; version=0.0.4")
        if parts[0] == "containerLogs" and len(parts) == 4:
            return self._logs(request, *parts[1:])
        return _said(404, "404 page not found")

    def _logs(self, request: Request, namespace: str, pod: str, container: str) -> Answer:
        try:
            options = log_options(request.query, self._clock)
            previous = request.query.get("previous") in ("true", "1")
            target = self._find_log(namespace, pod, container, previous)
        except LookupError as error:
            return _said(404, str(error.args[0]))
        except ValueError as error:
            return _said(400, str(error))
        return Answer(stream=self._pieces(target, options))

    async def _pieces(self, target: LogTarget, options: LogOptions) -> AsyncIterator[bytes]:
        # A container that never wrote anything has no file, and one whose pod goes may lose it meanwhile.
        with contextlib.suppress(FileNotFoundError):
            async for piece in read_log(target.path, options, target.is_running, self._clock, self._poll):
                yield piece


def _said(status: int, text: str) -> Answer:
    return Answer(status, text.encode())
