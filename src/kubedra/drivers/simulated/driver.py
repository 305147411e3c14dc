"""The simulated DRA driver of one node and one driver name, written against the SDK like any author's driver.

Preparing has no hardware to touch: it only says what a container gets. Opaque parameters can slow it down or make it
fail, for demonstrations and tests of what an agent does then: ``{"prepareSeconds": 2}``, ``{"prepareError": "text"}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kubedra.api import resource_v1
from kubedra.base.clock import Clock
from kubedra.drivers.simulated.cards import PlacedCard
from kubedra.drivers.simulated.environment import device_variable, vendor_variables
from kubedra.sdk import Allocation, ContainerEdits, PreparedClaim, PreparedDevice, PrepareError


class SimulatedNodeDriver:
    """Serves the cards that one driver has on one node."""

    def __init__(self, name: str, node: str, cards: Iterable[PlacedCard], clock: Clock) -> None:
        self.name = name
        self._node = node
        self._cards = {card.name: card for card in cards}
        self._clock = clock

    async def discover(self) -> list[resource_v1.Device]:
        """Return the cards as devices."""
        return [card.device for card in self._cards.values()]

    async def prepare(self, allocation: Allocation) -> Sequence[PreparedDevice]:
        """Return the variables of each device; those of a request name all of its devices."""
        by_request: dict[str, list[PlacedCard]] = {}
        for entry in allocation.devices:
            card = self._cards.get(entry.device)
            if card is None or entry.pool != self._node:
                raise PrepareError(f"device {entry.pool}/{entry.device} is not on node {self._node}")
            by_request.setdefault(entry.main_request, []).append(card)
        await self._obey([config for entry in allocation.devices for config in entry.configs])
        numbers = dict.fromkeys(by_request, 0)
        prepared = []
        for entry in allocation.devices:
            request = entry.main_request
            variable = device_variable(request, numbers[request])
            numbers[request] += 1
            env = {variable: f"{self.name}/{entry.pool}/{entry.device}", **vendor_variables(by_request[request])}
            edits = ContainerEdits(env=tuple(f"{name}={value}" for name, value in env.items()))
            prepared.append(PreparedDevice(edits=edits))
        return prepared

    async def unprepare(self, claim: PreparedClaim) -> None:
        """Nothing was touched, so there is nothing to undo."""

    async def _obey(self, configs: Sequence[Any]) -> None:
        wishes: dict[str, Any] = {}
        for config in configs:
            if isinstance(config, dict):
                wishes |= config
        seconds = wishes.get("prepareSeconds", 0)
        if isinstance(seconds, int | float) and seconds > 0:
            await self._clock.sleep(float(seconds))
        if wishes.get("prepareError"):
            raise PrepareError(str(wishes["prepareError"]))
