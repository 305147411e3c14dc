"""Pod logs: proxied to the kubelet port of the pod's node, as upstream does.

Upstream counterpart: pkg/registry/core/pod/strategy.go (LogLocation).
"""

from __future__ import annotations

import importlib
import ssl
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

from kubedra.api import errors, kinds
from kubedra.api.errors import ApiError, bad_request
from kubedra.server.calls import Call
from kubedra.server.handler import Handler, no_method
from kubedra.server.requests import Response
from kubedra.server.store import Key

Tree = dict[str, Any]
_PASSED = (
    "follow", "previous", "sinceSeconds", "sinceTime", "timestamps", "tailLines", "limitBytes",
    "insecureSkipTLSVerifyBackend", "stream",
)  # fmt: skip


def install(handler: Handler) -> None:
    """Registers log."""
    handler.subresources[("pods", "log")] = log


async def log(call: Call) -> Response:
    """Streams the log of one container."""
    if call.verb != "get":
        return no_method()
    record = call.state.store.get(call.key)
    if record is None:
        raise errors.not_found(kinds.POD, call.name)
    pod = record.shared_tree()
    container = _container(call, pod)
    node_name = pod["spec"].get("nodeName", "")
    if not node_name:
        # Upstream: a pod that is not scheduled has an empty log.
        return Response(200, b"", "text/plain")
    address, port = _kubelet(call, node_name)
    query = {name: value for name, value in call.request.query.items() if name in _PASSED}
    path = f"/containerLogs/{call.namespace}/{call.name}/{container}"
    url = f"https://{address}:{port}{path}" + (f"?{urlencode(query)}" if query else "")
    return await _proxy(call, url, node_name)


def _container(call: Call, pod: Tree) -> str:
    spec = pod["spec"]
    names = [c["name"] for c in spec.get("containers") or ()]
    others = [c["name"] for member in ("initContainers", "ephemeralContainers") for c in spec.get(member) or ()]
    wanted = call.option("container")
    if not wanted:
        annotated = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container", "")
        if annotated in names:
            return str(annotated)
        if len(names) == 1 and not others:
            return str(names[0])
        if len(names) == 1:
            return str(names[0])
        raise bad_request(
            f"a container name must be specified for pod {call.name}, choose one of: [{' '.join(names)}]"
            + (f" or one of the init containers: [{' '.join(others)}]" if others else "")
        )
    if wanted not in names and wanted not in others:
        raise bad_request(f"container {wanted} is not valid for pod {call.name}")
    return wanted


def _kubelet(call: Call, name: str) -> tuple[str, int]:
    record = call.state.store.get(Key("nodes", "", name))
    if record is None:
        raise errors.not_found(kinds.NODE, name)
    status = record.shared_tree().get("status") or {}
    port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port", 0)
    if not port:
        raise ApiError(503, "ServiceUnavailable", f"node {name} serves no logs: it has no kubelet endpoint")
    addresses = {entry.get("type"): entry.get("address") for entry in status.get("addresses") or ()}
    address = addresses.get("InternalIP") or addresses.get("ExternalIP") or addresses.get("Hostname") or "127.0.0.1"
    return address, port


def _context(call: Call) -> ssl.SSLContext:
    context: ssl.SSLContext | None = call.state.extras.get("kubelet_tls")
    if context is None:
        context = ssl.create_default_context()
        # Upstream does not verify serving certificates of kubelets either unless it is told a CA for them.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        pair = call.state.extras.get("client_pair")
        if pair:
            context.load_cert_chain(*pair)
        call.state.extras["kubelet_tls"] = context
    return context


async def _proxy(call: Call, url: str, node: str) -> Response:
    aiohttp = importlib.import_module("aiohttp")

    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=_context(call)), timeout=aiohttp.ClientTimeout(total=None, connect=10)
    )
    try:
        answer = await session.get(url)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        await session.close()
        raise ApiError(
            500, "InternalError", f"Internal error occurred: the kubelet of node {node} can't be reached: {error}"
        ) from error
    if answer.status != 200:
        text = (await answer.text()).strip()
        await session.close()
        if answer.status == 404:
            raise ApiError(404, "NotFound", f"the server could not find the requested resource ({text})")
        raise ApiError(answer.status, "BadRequest" if answer.status == 400 else "InternalError", text)

    async def chunks() -> AsyncIterator[bytes]:
        try:
            async for chunk in answer.content.iter_any():
                yield chunk
        finally:
            await session.close()

    return Response(200, content_type="text/plain", stream=chunks())
