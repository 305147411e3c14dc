"""The simulated device plugin: the same cards, handed out by count, as before DRA.

A container is told what it got in the same variables; there is no request, so the last part of the resource's name
stands for it. Asked for a preference, the plugin prefers cards under one PCIe root, then on one NUMA node, which is
all a device plugin can do: the node was chosen before, by count. Upstream counterpart: the vendors' device plugins.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

from kubedra.drivers.simulated.cards import PlacedCard
from kubedra.drivers.simulated.environment import device_variable, vendor_variables
from kubedra.sdk.device_plugin import (
    CallError,
    ContainerAllocation,
    Options,
    PluginDevice,
    PreferredAllocation,
    forever,
)

OPTIONS = Options(get_preferred_allocation_available=True)


class SimulatedDevicePlugin:
    """Serves the cards of one resource on one node."""

    def __init__(self, resource: str, node: str, cards: Iterable[PlacedCard]) -> None:
        self.resource = resource
        self._node = node
        self._cards = {card.name: card for card in cards}

    async def options(self) -> Options:
        """Preferences are given, nothing is done before a container starts."""
        return OPTIONS

    async def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        """Tell all cards once; they never change."""
        yield tuple(PluginDevice(card.name, numa_nodes=(card.numa_node,)) for card in self._cards.values())
        await forever()

    async def preferred_allocation(self, containers: Sequence[PreferredAllocation]) -> list[tuple[str, ...]]:
        """Return the cards that belong together best, per container."""
        return [self._prefer(container) for container in containers]

    async def allocate(self, containers: Sequence[tuple[str, ...]]) -> list[ContainerAllocation]:
        """Return the variables of each container."""
        request = self.resource.rpartition("/")[2]
        answers = []
        for devices in containers:
            unknown = [name for name in devices if name not in self._cards]
            if unknown:
                raise CallError("InvalidArgument", f"no device {', '.join(unknown)} on node {self._node}")
            cards = [self._cards[name] for name in sorted(devices, key=list(self._cards).index)]
            envs = {
                device_variable(request, number): f"{self.resource}/{self._node}/{card.name}"
                for number, card in enumerate(cards)
            }
            answers.append(ContainerAllocation(envs | vendor_variables(cards)))
        return answers

    async def pre_start_container(self, devices: tuple[str, ...]) -> None:
        """Never asked for."""

    def _prefer(self, wanted: PreferredAllocation) -> tuple[str, ...]:
        chosen = list(wanted.must_include)
        free = [name for name in self._cards if name in set(wanted.available) and name not in chosen]
        for attribute in ("root", "numa_node"):
            groups: dict[object, list[str]] = {}
            for name in free:
                groups.setdefault(getattr(self._cards[name], attribute), []).append(name)
            missing = wanted.size - len(chosen)
            # The smallest group that suffices: larger ones stay whole for those who need them.
            fitting = sorted((group for group in groups.values() if len(group) >= missing), key=len)
            if fitting and not wanted.must_include:
                return tuple(fitting[0][:missing])
        return tuple((*chosen, *free)[: wanted.size])
