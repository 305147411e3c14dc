"""The embedded API server: store, verbs and, unless told otherwise, an HTTPS port.

Starts in a fraction of a second: everything that only some requests need is imported by the first of them.
"""

from __future__ import annotations

import asyncio
import importlib
import resource
from contextlib import suppress
from pathlib import Path
from typing import Any

from kubedra.api.lifecycle import is_served
from kubedra.server import health, subresources
from kubedra.server.access.authentication import Authenticator
from kubedra.server.access.authorizing import RbacAuthorizer
from kubedra.server.access.tokens import PARTS, StaticTokens, TokenSigner
from kubedra.server.admission import plugins
from kubedra.server.bootstrap import bootstrap
from kubedra.server.discovery import Discovery
from kubedra.server.expiry import EventExpiry
from kubedra.server.handler import Handler
from kubedra.server.openapi import OpenApi
from kubedra.server.serving import Catalogue
from kubedra.server.settings import DEFAULT_PORT, ServerSettings
from kubedra.server.state import ServerState
from kubedra.server.store import Store

_HOSTS = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
    "127.0.0.1",
    "::1",
)


class Server:
    """One API server over one data folder. `start` it, use it, `stop` it."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.data_dir = Path(settings.data_dir)
        self.store = Store(self.data_dir, keep_events=settings.keep_events)
        self.state: ServerState | None = None
        self.handler: Handler | None = None
        self.url = ""
        self._listener: Any = None
        self._ready = False
        self._expiry: EventExpiry | None = None

    async def start(self) -> None:
        """Returns when the server answers. Raises `StoreError` for folders and ports that can't be used."""
        self.store.start()
        try:
            await self._start()
        except BaseException:
            await self.store.stop()
            raise

    async def _start(self) -> None:
        signer = TokenSigner(self.data_dir / "pki", self.store)
        static = StaticTokens(self.data_dir / "tokens")
        authenticator = Authenticator(static, signer)
        authorizer = RbacAuthorizer(self.store)
        state = self.state = ServerState(
            store=self.store,
            catalogue=Catalogue(lambda kind: is_served(kind, self.settings.feature_gates.version)),
            features=self.settings.feature_gates,
            authorizer=authorizer,
        )
        state.extras["tokens"] = signer
        state.extras["authenticate"] = authenticator.token
        state.extras["rules_for"] = lambda user, namespace: [
            rule for _, rules in authorizer.rules_for(user, namespace) for rule in rules
        ]
        if self.settings.bootstrap:
            await bootstrap(state)
        state.admission = plugins(self.settings.admission, taint_all_nodes=self.settings.taint_all_nodes)
        self._expiry = EventExpiry(state, self.settings.event_ttl_seconds)
        handler = Handler(state)
        subresources.install(handler)
        health.install(handler, lambda: self._ready)
        Discovery(handler)
        OpenApi(handler)
        self.handler = handler
        if self.settings.http:
            static.load(self.settings.admin_token)
            await self._listen(handler, authenticator)
        self._ready = True

    async def _listen(self, handler: Handler, authenticator: Authenticator) -> None:
        _raise_open_files()
        application = importlib.import_module("kubedra.server.http.application")
        listening = importlib.import_module("kubedra.server.http.listening")
        authority = importlib.import_module("kubedra.server.access.certificates").Authority(self.data_dir / "pki")
        settings = self.settings
        hosts = list(dict.fromkeys((*_HOSTS, settings.host)))
        authority.ensure([host for host in hosts if host not in ("0.0.0.0", "::")])
        context = listening.tls_context(*authority.pair("server"), authority.ca_certificate)
        bound = listening.bind(settings.host, settings.port, DEFAULT_PORT)
        self._listener = listening.Listener(
            application.Application(handler, authenticator), bound, context, settings.stop_seconds
        )
        await self._listener.start()
        host = "127.0.0.1" if settings.host == "0.0.0.0" else settings.host
        self.url = f"https://{f'[{host}]' if ':' in host else host}:{self._listener.port}"
        handler.state.extras["client_pair"] = authority.ensure_client(
            "kubelet-client", "kube-apiserver-kubelet-client", ("system:masters",)
        )
        write = importlib.import_module("kubedra.server.access.kubeconfig").write_kubeconfig
        write(self.kubeconfig_path, self.url, authority.ca_certificate, "admin", pair=authority.pair("admin"))
        for part in PARTS:
            if part != "admin":
                token = self.token_path(part).read_text()
                write(self.part_kubeconfig_path(part), self.url, authority.ca_certificate, part, token=token)

    async def stop(self) -> None:
        """Ends watches and connections, then closes the store."""
        self._ready = False
        if self._expiry is not None:
            self._expiry.stop()
        self.store.close_watches()
        if self._listener is not None:
            listener, self._listener = self._listener, None
            await listener.stop()
        await self.store.stop()
        self.handler = None

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

    def token_path(self, part: str = "admin") -> Path:
        """The bearer token file of the administrator or of a part."""
        return self.data_dir / "tokens" / part

    def part_kubeconfig_path(self, part: str) -> Path:
        """The kubeconfig of a part: scheduler, controllers, agents, drivers."""
        return self.data_dir / "pki" / f"{part}.kubeconfig"


def _raise_open_files() -> None:
    """Every watch is a connection: takes as many open files as the system gives."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
