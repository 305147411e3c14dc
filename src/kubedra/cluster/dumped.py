"""A dump of a cluster behind the server's own read verbs: lists, tables and selectors answer as they would live.

The objects go into a store in a temporary folder as they are, with their uids, versions and times; nothing is
validated, nothing can be written.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kubedra.api import kinds
from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server
from kubedra.server.serving import Served, encode_object
from kubedra.server.settings import ServerSettings
from kubedra.server.store import Key


@asynccontextmanager
async def dump_client(objects: Iterable[dict[str, Any]]) -> AsyncIterator[InProcessClient]:
    """A client that reads those objects (trees with apiVersion and kind; kinds that nobody serves are left out)."""
    with tempfile.TemporaryDirectory(prefix="kubedra-dump-") as folder:
        server = Server(ServerSettings(data_dir=Path(folder), http=False, bootstrap=False))
        await server.start()
        client = InProcessClient(server)
        try:
            for tree in objects:
                await _put(server, tree)
            yield client
        finally:
            await client.close()
            await server.stop()


async def _put(server: Server, tree: dict[str, Any]) -> None:
    kind = kinds.by_api_version(str(tree.get("apiVersion")), str(tree.get("kind")))
    assert server.state is not None
    served: Served | None = (
        server.state.catalogue.find(kind.group, kind.version, kind.plural) if kind is not None else None
    )
    meta = tree.get("metadata")
    if served is None or not isinstance(meta, dict) or not meta.get("name"):
        return
    namespace = str(meta.get("namespace") or "default") if served.kind.namespaced else ""
    stored = served.to_storage(tree)

    def encode(revision: int) -> bytes:
        meta.setdefault("resourceVersion", str(revision))
        return encode_object(stored, served.storage_kind)

    key = Key(served.storage, namespace, str(meta["name"]))
    before = server.store.get(key)
    await server.store.put(key, encode, expect=before.revision if before is not None else 0)
