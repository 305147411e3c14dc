"""Cards publish what real ones do, lie where the fleet says, and keep their identity."""

from __future__ import annotations

from collections import Counter

from kubedra.base.quantity import Quantity
from kubedra.drivers.simulated.cards import cards_of
from kubedra.drivers.simulated.catalogue import CARDS, VENDORS
from kubedra.drivers.simulated.fleet import Pool, parse
from kubedra.sdk.resources import Pool as DevicePool
from kubedra.sdk.resources import clean, pool_problems


def pool(devices: str) -> Pool:
    return parse(f"kind: Fleet\npools:\n- name: a\n  devices: {devices}\n").pools[0]


def test_an_h100_misses_80_gi_by_361_mi_and_an_a100_does_not() -> None:
    (h100,) = cards_of("a-0", pool("[{card: H100}]"))
    memory = Quantity.parse(h100.device.capacity["memory"].value)
    missing = Quantity.parse("80Gi") - memory
    assert str(memory) == "81559Mi" and str(missing) == "361Mi"
    (a100,) = cards_of("a-0", pool("[{card: A100-80G}]"))
    assert Quantity.parse(a100.device.capacity["memory"].value) == Quantity.parse("80Gi")


def test_every_card_of_the_catalogue_can_be_published_whole() -> None:
    for name in CARDS:
        cards = list(cards_of("node-7", pool(f"[{{card: {name}, count: 8, numaNodes: 2}}]")))
        devices = tuple(card.device for card in cards)
        published = DevicePool(devices=devices, node_name="node-7")
        assert pool_problems("node-7", published) == []
        cleaned, dropped = clean(published)
        assert dropped == [], name
        assert [entry.attributes for entry in cleaned.devices] == [entry.attributes for entry in devices]
        for key, amount in devices[0].capacity.items():
            assert Quantity.parse(cleaned.devices[0].capacity[key].value) == Quantity.parse(amount.value)
        assert not any("{" in (value.string or "") for device in devices for value in device.attributes.values())
        assert {card.served.driver for card in cards} == {CARDS[name].vendor.driver}


def test_the_catalogue_covers_the_vendors() -> None:
    assert {card.vendor.name for card in CARDS.values()} == set(VENDORS)
    assert set(CARDS) >= {"L4", "A30-24G", "A100-40G", "A100-80G", "H100", "H200", "B200", "MI300X", "Gaudi3"}


def test_cards_are_spread_over_numa_nodes_roots_and_links() -> None:
    cards = list(cards_of("a-0", pool("[{card: H100, count: 8, numaNodes: 2, perRoot: 2, linked: 2}]")))
    assert [card.numa_node for card in cards] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert Counter(card.root for card in cards).most_common() == [
        (root, 2) for root in dict.fromkeys(c.root for c in cards)
    ]
    assert [card.link_domain for card in cards] == [f"h100-{index // 2}" for index in range(8)]
    for card in cards:
        attributes = card.device.attributes
        assert attributes["resource.kubernetes.io/numaNode"].int_ == card.numa_node
        assert attributes["resource.kubernetes.io/pcieRoot"].string == card.root
        assert attributes["resource.kubernetes.io/pciBusID"].string == card.pci
        assert attributes["linkDomain"].string == card.link_domain
    assert len({card.pci for card in cards}) == 8


def test_odd_numbers_of_cards_do_not_share_a_root_across_numa_nodes() -> None:
    cards = list(cards_of("a-0", pool("[{card: L4, count: 3, numaNodes: 2}, {card: ConnectX-7, count: 2}]")))
    assert [card.numa_node for card in cards] == [0, 0, 1, 0, 0]
    assert len({(card.root, card.numa_node) for card in cards}) == len({card.root for card in cards}) == 3
    assert "linkDomain" not in cards[0].device.attributes


def test_identities_stay_and_differ() -> None:
    devices = pool("[{card: H100, count: 8}]")
    first, again, other = (list(cards_of(node, devices)) for node in ("a-0", "a-0", "a-1"))
    assert first == again
    uuids = [card.device.attributes["uuid"].string for card in (*first, *other)]
    assert len(set(uuids)) == 16 and all(value and value.startswith("GPU-") for value in uuids)
    assert first[0].visible == uuids[0]


def test_two_entries_of_one_driver_have_different_names() -> None:
    cards = list(cards_of("a-0", pool("[{card: L4, count: 2}, {card: H100, count: 2}]")))
    assert [card.name for card in cards] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]


def test_a_node_with_very_many_cards_keeps_valid_addresses() -> None:
    cards = list(cards_of("a-0", pool("[{card: L4, count: 1000, numaNodes: 8}]")))
    assert len({card.pci for card in cards}) == 1000
    assert all(len(card.pci) == 12 for card in cards)
