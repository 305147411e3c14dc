"""Runs the drivers of a whole fleet in one process.

One slice publisher per driver name serves all nodes; nodes with processes get a plugin with sockets per driver and
device plugin, hollow nodes only get their slices, so thousands of them cost memory and a watch. Nothing here knows the
agent or the server: sockets and the API are all there is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kubedra.base.clock import Clock
from kubedra.client.protocol import Client
from kubedra.drivers.simulated.cards import PlacedCard, cards_of
from kubedra.drivers.simulated.device_plugin import OPTIONS, SimulatedDevicePlugin
from kubedra.drivers.simulated.driver import SimulatedNodeDriver
from kubedra.drivers.simulated.fleet import Fleet
from kubedra.drivers.simulated.fleet import Pool as NodePool
from kubedra.sdk.device_plugin import DevicePluginRunner
from kubedra.sdk.nodes import NodeOwners
from kubedra.sdk.plugin import NodePaths, NodePlugin, PluginPaths, PluginSettings
from kubedra.sdk.publishing import PublisherSettings, SlicePublisher
from kubedra.sdk.resources import Pool, clean
from kubedra.wire.paths import check_socket_path

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SimulatedDriverSettings:
    """``nodes`` limits the process to some nodes of the fleet (empty: all)."""

    fleet: Fleet
    data_dir: Path
    run_dir: Path
    nodes: frozenset[str] = frozenset()
    ready_condition: bool = True
    device_metadata: bool = True


class SimulatedDriver:
    """All simulated drivers of a fleet."""

    def __init__(self, client: Client, settings: SimulatedDriverSettings, clock: Clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._owners = NodeOwners(client, clock=clock)
        self._publishers: dict[str, SlicePublisher] = {}
        self._plugins: list[NodePlugin] = []
        self._runners: list[DevicePluginRunner] = []
        self.started = asyncio.Event()

    def _check_paths(self) -> None:
        """Refuse sockets that can't be made before anything is; raises ``SocketPathTooLong``."""
        for node, pool in self._settings.fleet.nodes():
            if pool.hollow or (self._settings.nodes and node not in self._settings.nodes):
                continue
            paths = NodePaths(self._settings.data_dir, self._settings.run_dir, node)
            for entry in pool.devices:
                if entry.served_by == "dra":
                    PluginPaths.of_node(paths, entry.driver)
                else:
                    check_socket_path(paths.device_plugins_dir / _endpoint(entry.resource))

    async def run(self) -> None:
        """Serve until cancelled; sockets are removed then, slices stay. Raises ``SocketPathTooLong`` at once."""
        self._check_paths()
        tasks: list[asyncio.Task[None]] = []
        try:
            self._publishers = {driver: self._publisher(driver) for driver in self._settings.fleet.drivers()}
            for node, pool in self._settings.fleet.nodes():
                if not self._settings.nodes or node in self._settings.nodes:
                    self._add_node(node, pool)
            await asyncio.gather(*(plugin.start() for plugin in self._plugins))
            tasks = [asyncio.create_task(runner.run()) for runner in self._runners]
            # The slices come last: a device that is published can be prepared.
            await self._owners.start()
            await asyncio.gather(*(publisher.start() for publisher in self._publishers.values()))
            self.started.set()
            await asyncio.Event().wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._stop_all([plugin.stop() for plugin in self._plugins])
            await self._stop_all([publisher.stop() for publisher in self._publishers.values()])
            await self._owners.stop()

    async def wait_published(self) -> None:
        """Return when the slices of all nodes that exist are in the API."""
        await self.started.wait()
        await asyncio.gather(*(publisher.wait_published() for publisher in self._publishers.values()))

    @staticmethod
    async def _stop_all(stops: list[Coroutine[Any, Any, None]]) -> None:
        for result in await asyncio.gather(*stops, return_exceptions=True):
            if isinstance(result, Exception):
                _log.error("stopping failed: %s", result)

    def _publisher(self, driver: str) -> SlicePublisher:
        nodes = frozenset(self._settings.fleet.drivers()[driver])
        mine = nodes & self._settings.nodes if self._settings.nodes else nodes
        return SlicePublisher(
            self._client,
            PublisherSettings(driver=driver, parallel=32),
            self._owners,
            self._clock,
            # Another process may serve other nodes under the same name.
            manages=lambda entry: entry.node_name in mine,
        )

    def _add_node(self, node: str, pool: NodePool) -> None:
        if pool.hollow:
            served = (entry.driver for entry in pool.devices if entry.served_by == "dra")
            for driver in dict.fromkeys(served):
                self._publishers[driver].publish_made(node, node, partial(_hollow_pool, node, pool, driver))
            return
        by_driver: dict[str, list[PlacedCard]] = {}
        by_resource: dict[str, list[PlacedCard]] = {}
        for card in cards_of(node, pool):
            if card.served.served_by == "dra":
                by_driver.setdefault(card.served.driver, []).append(card)
            else:
                by_resource.setdefault(card.served.resource, []).append(card)
        for driver, cards in by_driver.items():
            self._add_plugin(node, driver, cards)
        for resource, cards in by_resource.items():
            self._add_device_plugin(node, resource, cards)

    def _add_plugin(self, node: str, driver: str, cards: list[PlacedCard]) -> None:
        paths = NodePaths(self._settings.data_dir, self._settings.run_dir, node)
        paths.create()
        settings = PluginSettings(
            node=node,
            paths=PluginPaths.of_node(paths, driver),
            serialize=False,
            device_metadata=self._settings.device_metadata,
            ready_condition=self._settings.ready_condition,
        )
        self._plugins.append(
            NodePlugin(
                SimulatedNodeDriver(driver, node, cards, self._clock),
                self._client,
                settings,
                self._clock,
                publisher=self._publishers[driver],
            )
        )

    def _add_device_plugin(self, node: str, resource: str, cards: list[PlacedCard]) -> None:
        paths = NodePaths(self._settings.data_dir, self._settings.run_dir, node)
        paths.create()
        self._runners.append(
            DevicePluginRunner(
                SimulatedDevicePlugin(resource, node, cards),
                resource,
                paths.device_plugins_dir,
                _endpoint(resource),
                self._clock,
                options=OPTIONS,
            )
        )


def _endpoint(resource: str) -> str:
    """The socket's name of a device plugin."""
    return resource.replace("/", "_")[:40] + ".sock"


def _hollow_pool(node: str, pool: NodePool, driver: str) -> Pool:
    """The devices of a hollow node, made when they are needed: thousands of nodes would fill the memory."""
    cards = [
        card.device for card in cards_of(node, pool) if (card.served.driver, card.served.served_by) == (driver, "dra")
    ]
    return clean(Pool(devices=tuple(cards), node_name=node))[0]
