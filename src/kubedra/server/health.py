"""Health, version and metrics."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable
from functools import cache
from typing import Any

from kubedra.server.handler import Handler, PathHandler, no_method
from kubedra.server.requests import Request, Response, json_response

VERSION = "v1.37.0"


def install(handler: Handler, ready: Callable[[], bool]) -> None:
    """Registers /healthz, /livez, /readyz, /version and /metrics."""

    async def alive(request: Request) -> Response:
        if "verbose" in request.query:
            return _text(b"[+]ping ok\n[+]store ok\nhealthz check passed\n")
        return _text(b"ok")

    async def readiness(request: Request) -> Response:
        if not ready():
            return Response(503, b"the server is starting or stopping\n", "text/plain; charset=utf-8")
        return await alive(request)

    for path in ("/healthz", "/livez", "/healthz/*", "/livez/*"):
        handler.paths[path] = alive
    for path in ("/readyz", "/readyz/*"):
        handler.paths[path] = readiness
    handler.paths["/version"] = version
    handler.paths["/metrics"] = _metrics(handler)


def _text(body: bytes) -> Response:
    return Response(200, body, "text/plain; charset=utf-8")


async def version(request: Request) -> Response:
    """The Kubernetes version that is served."""
    if request.method != "GET":
        return no_method()
    package = importlib.import_module("kubedra")
    return json_response(
        {
            "major": "1",
            "minor": "37",
            "emulationMajor": "1",
            "emulationMinor": "37",
            "minCompatibilityMajor": "1",
            "minCompatibilityMinor": "36",
            "gitVersion": f"{VERSION}+kubedra.{getattr(package, '__version__', '0')}",
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "none",
            "compiler": platform.python_implementation(),
            "platform": f"linux/{platform.machine()}",
        }
    )


@cache
def _prometheus() -> Any:
    return importlib.import_module("prometheus_client")


def _metrics(handler: Handler) -> PathHandler:
    async def metrics(request: Request) -> Response:
        client = _prometheus()
        registry = client.CollectorRegistry()
        store = handler.state.store
        objects = client.Gauge(
            "apiserver_resource_objects", "Number of stored objects.", ["resource"], registry=registry
        )
        for resource in store.resources():
            objects.labels(resource).set(store.count(resource))
        client.Gauge("apiserver_storage_revision", "Last revision.", registry=registry).set(store.revision)
        client.Gauge("apiserver_longrunning_requests", "Open watches.", registry=registry).set(store.watches())
        requests = client.Counter(
            "apiserver_request_total", "Requests by verb, resource and code.", ["verb", "resource", "code"],
            registry=registry,
        )  # fmt: skip
        for (verb, resource, code), count in handler.counts.items():
            requests.labels(verb, resource, str(code)).inc(count)
        process = client.CollectorRegistry()
        client.ProcessCollector(registry=process)
        registries = [registry, process, *handler.state.extras.get("registries", lambda: ())()]
        body = b"".join(client.generate_latest(r) for r in registries)
        return Response(200, body, "text/plain; version=0.0.4; charset=utf-8")

    return metrics
