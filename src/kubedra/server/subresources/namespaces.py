"""Finalizing namespaces: the only door to `spec.finalizers`.

Upstream counterpart: pkg/registry/core/namespace/storage (FinalizeREST).
"""

from __future__ import annotations

from kubedra.server.calls import Call
from kubedra.server.handler import Handler, no_method
from kubedra.server.requests import Response
from kubedra.server.verbs import updating


def install(handler: Handler) -> None:
    """Registers finalize."""
    handler.subresources[("namespaces", "finalize")] = finalize


async def finalize(call: Call) -> Response:
    """Replaces the finalizers of the spec; the namespace goes when the last one does."""
    if call.verb != "update":
        return no_method()
    record, _ = await updating.update(call)
    return Response(200, call.served.bytes_of(record))
