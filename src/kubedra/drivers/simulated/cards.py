"""Places the cards of a fleet in a node: NUMA node, PCIe root, link domain, and an identity that never changes.

Pure and repeatable: the same fleet file gives the same devices, so a driver that is started again publishes what is
there already. Attributes that many cards have in common are one object, since a fleet may have tens of thousands.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from kubedra.api import resource_v1
from kubedra.drivers.simulated.catalogue import CARDS, INDEX, NUMA, Card, Version
from kubedra.drivers.simulated.fleet import Devices, Pool

_NAMESPACE = uuid.UUID("6b756265-6472-6100-8000-73696d756c61")


class PlacedCard(msgspec.Struct, frozen=True, kw_only=True):
    """One card in one node. ``visible`` is what the vendor's variable says for it."""

    name: str
    card: Card
    served: Devices
    device: resource_v1.Device
    numa_node: int
    root: str
    link_domain: str
    pci: str
    visible: str


def cards_of(node: str, pool: Pool) -> Iterator[PlacedCard]:
    """Yield the cards of a node in order; names are unique per driver or resource."""
    buses = iter(range(0x0F, 0x10000))
    counters: dict[str, int] = {}
    roots = 0
    for entry in pool.devices:
        card = CARDS[entry.card]
        server = entry.driver if entry.served_by == "dra" else entry.resource
        per_numa = -(-entry.count // entry.numa_nodes)
        for position in range(entry.count):
            index = counters.get(server, 0)
            counters[server] = index + 1
            numa, place = divmod(position, per_numa)
            root = roots + numa * -(-per_numa // entry.per_root) + place // entry.per_root
            yield _place(node, entry, card, index, position, numa, root, next(buses))
        roots += entry.numa_nodes * -(-per_numa // entry.per_root)


def _place(
    node: str, entry: Devices, card: Card, index: int, position: int, numa: int, root: int, bus: int
) -> PlacedCard:
    # A domain holds 256 buses; nodes with more cards than that get further domains.
    pci = f"{bus >> 8:04x}:{bus & 0xFF:02x}:00.0"
    root_name = f"pci{root >> 6:04x}:{(root & 0x3F) * 4:02x}"
    link = f"{card.name.lower()}-{position // entry.linked}" if entry.linked > 1 else ""
    identity = uuid.uuid5(_NAMESPACE, f"{node}/{card.name}/{index}")
    digest = hashlib.sha256(identity.bytes).hexdigest()
    words = {
        "uuid": str(identity),
        "serial": str(int(digest[:12], 16))[:10].zfill(10),
        "index": str(index),
        "minor": str(index),
        "render": str(128 + index),
        "pci": pci,
        "pci-dashed": pci.replace(":", "-").replace(".", "-"),
        "root": root_name,
        "root-number": root_name.rpartition(":")[2],
        "numa": str(numa),
        "mac": "b8:3f:d2:" + ":".join(digest[at : at + 2] for at in (0, 2, 4)),
    }
    attributes = {key: _attribute(value, words, index, numa) for key, value in card.attributes.items()}
    attributes["resource.kubernetes.io/pciBusID"] = _shared("string", pci)
    attributes["resource.kubernetes.io/pcieRoot"] = _shared("string", root_name)
    attributes["resource.kubernetes.io/numaNode"] = _shared("int", numa)
    if link:
        attributes["linkDomain"] = _shared("string", link)
    name = _fill(card.vendor.device_name, words)
    visible = _fill(card.vendor.value, words)
    if card.vendor.name == "nvidia":
        visible = f"GPU-{visible}"
    return PlacedCard(
        name=name,
        card=card,
        served=entry,
        device=resource_v1.Device(name=name, attributes=attributes, capacity=_capacity(card.name)),
        numa_node=numa,
        root=root_name,
        link_domain=link,
        pci=pci,
        visible=visible,
    )


def _fill(text: str, words: dict[str, str]) -> str:
    if "{" not in text:
        return text
    for word, value in words.items():
        text = text.replace("{" + word + "}", value)
    return text


def _attribute(value: Any, words: dict[str, str], index: int, numa: int) -> resource_v1.DeviceAttribute:
    if value == NUMA:
        return _shared("int", numa)
    if value == INDEX:
        return _shared("int", index)
    if isinstance(value, Version):
        return _shared("version", value.value)
    if isinstance(value, bool):
        return _shared("bool", value)
    if isinstance(value, int):
        return _shared("int", value)
    filled = _fill(value, words)
    return _shared("string", filled) if filled == value else resource_v1.DeviceAttribute(string=filled)


@lru_cache(maxsize=65536, typed=True)
def _shared(kind: str, value: Any) -> resource_v1.DeviceAttribute:
    if kind == "string":
        return resource_v1.DeviceAttribute(string=value)
    if kind == "version":
        return resource_v1.DeviceAttribute(version=value)
    return resource_v1.DeviceAttribute(bool_=value) if kind == "bool" else resource_v1.DeviceAttribute(int_=value)


@lru_cache(maxsize=64)
def _capacity(card: str) -> dict[str, resource_v1.DeviceCapacity]:
    return {key: resource_v1.DeviceCapacity(value=value) for key, value in CARDS[card].capacity.items()}
