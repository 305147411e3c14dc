"""Subresources and answered kinds: binding, eviction, scale, finalize, tokens, logs, reviews.

`install` tells a handler about all of them.
"""

from __future__ import annotations

from kubedra.server.handler import Handler
from kubedra.server.subresources import logs, namespaces, pods, reviews, scale, tokens


def install(handler: Handler) -> None:
    """Registers every subresource with the handler."""
    for module in (pods, namespaces, scale, tokens, logs, reviews):
        module.install(handler)
