"""A fleet file in place of a cluster: the nodes and slices that it would have, without starting anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kubedra.api.core_v1 import Node, NodeStatus
from kubedra.api.meta_v1 import ObjectMeta
from kubedra.api.resource_v1 import (
    CELDeviceSelector,
    Device,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubedra.cli.output import Refusal
from kubedra.drivers.simulated.cards import cards_of
from kubedra.drivers.simulated.fleet import Fleet, FleetError, load

DEVICES_IN_A_SLICE = 128


def fleet_objects(path: Path) -> Iterator[Node | ResourceSlice | DeviceClass]:
    """Nodes, slices, and a class for each driver under the driver's name. Raises Refusal."""
    try:
        fleet = load(path)
    except FleetError as error:
        raise Refusal(str(error)) from None
    yield from objects_of(fleet)


def objects_of(fleet: Fleet) -> Iterator[Node | ResourceSlice | DeviceClass]:
    """The same for a fleet that is read already."""
    for driver in sorted(fleet.drivers()):
        selector = DeviceSelector(cel=CELDeviceSelector(expression=f'device.driver == "{driver}"'))
        yield DeviceClass(metadata=ObjectMeta(name=driver), spec=DeviceClassSpec(selectors=(selector,)))
    for name, pool in fleet.nodes():
        by_driver: dict[str, list[Device]] = {}
        allocatable = {"cpu": pool.cpu, "memory": pool.memory, "pods": str(pool.pods)}
        plugin: dict[str, int] = {}
        for card in cards_of(name, pool):
            if card.served.served_by == "dra":
                by_driver.setdefault(card.served.driver, []).append(card.device)
            else:
                plugin[card.served.resource] = plugin.get(card.served.resource, 0) + 1
        allocatable |= {resource: str(count) for resource, count in plugin.items()}
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **pool.labels}
        yield Node(
            metadata=ObjectMeta(name=name, labels=labels),
            status=NodeStatus(allocatable=allocatable, capacity=allocatable),
        )
        for driver, devices in by_driver.items():
            count = -(-len(devices) // DEVICES_IN_A_SLICE)
            for number in range(count):
                yield ResourceSlice(
                    metadata=ObjectMeta(name=f"{name}-{driver}-{number}"),
                    spec=ResourceSliceSpec(
                        driver=driver,
                        node_name=name,
                        pool=ResourcePool(name=name, generation=1, resource_slice_count=count),
                        devices=tuple(devices[number * DEVICES_IN_A_SLICE : (number + 1) * DEVICES_IN_A_SLICE]),
                    ),
                )
