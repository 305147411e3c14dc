"""Which nodes exist, by uid: a node's slices belong to the Node object, so that they go when it goes.

Only name and uid are kept, so watching thousands of nodes costs little. Upstream counterpart: the owner lookup of the
driver helper library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from kubedra.api import kinds, meta_v1
from kubedra.base.clock import Clock
from kubedra.client.protocol import Client
from kubedra.client.watch_cache import WatchCache
from kubedra.sdk.lean import decoded_as


class _Metadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _NodeIdentity(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class NodeOwners:
    """Owner references to the nodes that exist; calls back when a node comes, goes or is replaced."""

    def __init__(self, client: Client, *, node: str = "", clock: Clock | None = None) -> None:
        selector = f"metadata.name={node}" if node else ""
        self._cache: WatchCache[Any] = WatchCache(
            client, decoded_as(kinds.NODE, _NodeIdentity), field_selector=selector, clock=clock
        )

    async def start(self) -> None:
        """List the nodes and follow them."""
        await self._cache.start()

    async def stop(self) -> None:
        """Stop following."""
        await self._cache.stop()

    def owner(self, node: str) -> meta_v1.OwnerReference | None:
        """Return the reference for a node, or None while there is no such Node object."""
        found = self._cache.get("", node)
        if found is None:
            return None
        return meta_v1.OwnerReference(api_version="v1", kind="Node", name=node, uid=found.metadata.uid, controller=True)

    def on_change(self, call: Callable[[str], None]) -> None:
        """Call with a node's name whenever its Node object appears, disappears or gets another uid."""

        def handle(old: Any, new: Any) -> None:
            if old is None or new is None or old.metadata.uid != new.metadata.uid:
                call(cast(str, (new or old).metadata.name))

        self._cache.add_handler(handle)
