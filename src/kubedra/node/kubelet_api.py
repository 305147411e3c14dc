"""The kubelet's HTTPS API as far as the API server needs it: container logs, health, metrics.

Everybody may ask /healthz. The rest is for the API server alone: it must show a client certificate that the cluster's
authority signed, with a name from the settings. exec, attach and port-forward are not there yet and say so.
Upstream counterpart: pkg/kubelet/server.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection
from datetime import timedelta
from pathlib import Path
from typing import Any

from aiohttp import web

from kubedra.base.clock import Clock, parse_time
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
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int, context: ssl.SSLContext) -> int:
        """Listens and returns the port."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/metrics", self._serve_metrics)
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        for name in _ABSENT:
            app.router.add_route("*", f"/{name}/{{rest:.*}}", self._absent)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=context)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Closes the port; followers of logs are cut off."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _check(self, request: web.Request) -> None:
        certificate = request.transport.get_extra_info("peercert") if request.transport is not None else None
        if not certificate:
            raise web.HTTPUnauthorized(text="Unauthorized")
        subject = {pair for part in certificate.get("subject", ()) for pair in part}
        if not subject & self._allowed:
            names = ", ".join(sorted(value for key, value in subject if key == "commonName"))
            text = f"Forbidden (user={names}): the node's API is for the API server"
            raise web.HTTPForbidden(text=text)

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _serve_metrics(self, request: web.Request) -> web.Response:
        self._check(request)
        return web.Response(body=self._metrics(), content_type="text/plain")

    async def _absent(self, request: web.Request) -> web.Response:
        self._check(request)
        what = request.path.split("/")[1]
        return web.Response(status=501, text=f"{what} is not implemented by this node agent yet")

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        self._check(request)
        namespace, pod, container = (request.match_info[name] for name in ("namespace", "pod", "container"))
        try:
            options = log_options(request.query, self._clock)
        except ValueError as error:
            return web.Response(status=400, text=str(error))
        try:
            previous = request.query.get("previous") in ("true", "1")
            target = self._find_log(namespace, pod, container, previous)
        except LookupError as error:
            return web.Response(status=404, text=str(error.args[0]))
        except ValueError as error:
            return web.Response(status=400, text=str(error))
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        pieces = read_log(target.path, options, target.is_running, self._clock, self._poll)
        try:
            async for piece in pieces:
                await response.write(piece)
        except FileNotFoundError:
            pass  # a container that never wrote anything, or whose log was removed meanwhile
        await response.write_eof()
        return response
