"""Keeps this node's Node object and Lease: created once, patched when something changed, renewed in time.

Upstream counterpart: kubelet_node_status.go and component-helpers/apimachinery/lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from kubedra.api import kinds
from kubedra.api.core_v1 import Node
from kubedra.api.errors import ApiError
from kubedra.base.clock import Clock, format_micro_time, format_time
from kubedra.client.protocol import Client
from kubedra.node.node_status import capacity, comparable, conditions, labels, node_info, node_tree, with_devices
from kubedra.node.settings import AgentSettings

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
# How often a status that says nothing new is written all the same.
REPORT_SECONDS = 300.0

Tree = dict[str, Any]
Amounts = Callable[[], tuple[dict[str, int], dict[str, int]]]


class NodeRegistration:
    """Tells the API of this node."""

    def __init__(
        self,
        client: Client,
        settings: AgentSettings,
        clock: Clock,
        runtime_version: str,
        port: int,
        declared_features: tuple[str, ...],
        devices: Amounts,
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._runtime_version = runtime_version
        self._port = port
        self._declared = declared_features
        self._devices = devices
        self._last: Tree | None = None
        self._last_moment = 0.0
        self._known: dict[str, str] = {}
        self._changed = asyncio.Event()
        self.node = Node()

    def changed(self) -> None:
        """The devices of plugins changed: tell at once, not at the next round."""
        self._changed.set()

    async def register(self) -> None:
        """Creates or takes over the Node; tries until it works. Raises ApiError when the node itself is invalid."""
        delay = 0.1
        while True:
            try:
                await self._register()
                return
            except (ApiError, ConnectionError) as error:
                if isinstance(error, ApiError) and error.code in (400, 422):
                    # What it was told about itself is wrong: waiting does not help.
                    raise
                log.warning("registering node %s: %s", self._settings.node, error)
            await self._clock.sleep(delay)
            delay = min(delay * 2, 7.0)

    async def _register(self) -> None:
        name = self._settings.node
        status = self._status()
        try:
            self.node = await self._client.create(kinds.NODE, node_tree(self._settings, status))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            self.node = await self._client.get(kinds.NODE, name)
            self._known = dict(self.node.status.capacity)
            missing = {k: v for k, v in labels(self._settings).items() if self.node.metadata.labels.get(k) != v}
            if missing:
                patch = {"metadata": {"uid": self.node.metadata.uid, "labels": missing}}
                self.node = await self._client.patch(kinds.NODE, name, patch)
        if not self.node.status.capacity or self._known:
            await self._write()
        else:
            self._remember(status)

    async def keep(self) -> None:
        """Keeps the status current until cancelled."""
        while True:
            self._changed.clear()
            waiter = asyncio.ensure_future(self._changed.wait())
            sleeper = asyncio.ensure_future(self._clock.sleep(self._settings.waits.node_status))
            try:
                await asyncio.wait((waiter, sleeper), return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiter.cancel()
                sleeper.cancel()
            try:
                self.node = await self._client.get(kinds.NODE, self._settings.node)
                await self._write()
            except ApiError as error:
                if error.code == 404:
                    # Deleted by somebody while we are alive: a node that works registers again.
                    self._known, self._last = {}, None
                    await self.register()
                else:
                    log.warning("status of node %s: %s", self._settings.node, error)
            except ConnectionError as error:
                log.info("status of node %s: %s", self._settings.node, error)

    def _status(self) -> Tree:
        now = format_time(self._clock.now())
        base = capacity(self._settings)
        total, free = self._devices()
        return {
            "capacity": with_devices(base, total, self._known),
            "allocatable": with_devices(base, free, self._known),
            "conditions": conditions(now, self.node if self.node.metadata.uid else None),
            "addresses": [
                {"type": "InternalIP", "address": self._settings.address},
                {"type": "Hostname", "address": self._settings.node},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
            "nodeInfo": node_info(self._runtime_version, self._settings.version),
            **({"declaredFeatures": list(self._declared)} if self._declared else {}),
        }

    def _remember(self, status: Tree) -> None:
        self._last, self._last_moment = comparable(status), self._clock.monotonic()
        self._known |= dict.fromkeys(status["capacity"], "0")

    async def _write(self) -> None:
        status = self._status()
        alive = all(
            condition["status"] == _status_of(self.node, condition["type"]) for condition in status["conditions"]
        )
        same = self._last == comparable(status) and alive
        if same and self._clock.monotonic() - self._last_moment < REPORT_SECONDS:
            return
        patch = {"metadata": {"uid": self.node.metadata.uid}, "status": status}
        self.node = await self._client.patch(
            kinds.NODE, self._settings.node, patch, patch_type="strategic", subresource="status"
        )
        self._remember(status)

    # ---- lease ----

    async def renew(self) -> None:
        """Renews the lease until cancelled."""
        while True:
            try:
                await renew_lease(
                    self._client, self._settings.node, self._settings.waits.lease_duration, self._clock, self.node
                )
                delay = self._settings.waits.lease_renew
            except (ApiError, ConnectionError) as error:
                log.info("lease of node %s: %s", self._settings.node, error)
                delay = min(1.0, self._settings.waits.lease_renew)
            await self._clock.sleep(delay)


def _status_of(node: Node, kind: str) -> str:
    return next((condition.status for condition in node.status.conditions if condition.type == kind), "")


async def renew_lease(client: Client, name: str, duration: float, clock: Clock, node: Node) -> None:
    """Renews a node's lease; creates it, and its namespace, where they are missing."""
    now = format_micro_time(clock.now())
    try:
        await client.patch(kinds.LEASE, name, {"spec": {"renewTime": now}}, LEASE_NAMESPACE)
        return
    except ApiError as error:
        if error.code != 404:
            raise
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid}
    lease: Tree = {
        "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": int(duration), "renewTime": now},
    }
    if node.metadata.uid:
        lease["metadata"]["ownerReferences"] = [owner]
    try:
        await client.create(kinds.LEASE, lease, LEASE_NAMESPACE)
    except ApiError as error:
        if error.code != 404:
            raise
        with contextlib.suppress(ApiError):
            await client.create(kinds.NAMESPACE, {"metadata": {"name": LEASE_NAMESPACE}})
        await client.create(kinds.LEASE, lease, LEASE_NAMESPACE)
