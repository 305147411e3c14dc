"""The embedded API server: store, verbs and, unless told otherwise, an HTTPS port.

Starts in a fraction of a second: everything that only some requests need is imported by the first of them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubedra.server.access.authorizing import RbacAuthorizer
from kubedra.server.bootstrap import bootstrap
from kubedra.server.handler import Handler
from kubedra.server.serving import Catalogue
from kubedra.server.settings import ServerSettings
from kubedra.server.state import ServerState
from kubedra.server.store import Store


class Server:
    """One API server over one data folder. `start` it, use it, `stop` it."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.data_dir = Path(settings.data_dir)
        self.store = Store(self.data_dir, keep_events=settings.keep_events)
        self.state: ServerState | None = None
        self.handler: Handler | None = None
        self.url = ""

    async def start(self) -> None:
        """Returns when the server answers. Raises `StoreError` for folders and ports that can't be used."""
        self.store.start()
        self.state = ServerState(
            store=self.store,
            catalogue=Catalogue(),
            features=self.settings.feature_gates,
            authorizer=RbacAuthorizer(self.store),
        )
        await bootstrap(self.state)
        self.handler = Handler(self.state)

    async def stop(self) -> None:
        """Ends watches and connections, then closes the store."""
        await self.store.stop()

    async def run(self) -> None:
        """Serves until cancelled."""
        await self.start()
        try:
            await asyncio.Event().wait()
        finally:
            await self.stop()

    @property
    def kubeconfig_path(self) -> Path:
        """The kubeconfig of the administrator."""
        return self.data_dir / "kubeconfig"
