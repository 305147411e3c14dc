"""Reads fleet files: which nodes a cluster is to have, and which cards are in them.

One table (``SECTIONS``) says which fields there are; reading, refusing unknown fields with the nearest name, and the
reference page in docs/reference/fleet.md all come from it. Every mistake of a file is told at once, with its line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from kubedra.base import names, yaml
from kubedra.base.quantity import Quantity, QuantityError
from kubedra.drivers.simulated.catalogue import CARDS, VENDORS

MOST_NODES = 20_000
MOST_CARDS = 4_096


class FleetError(Exception):
    """A fleet file can't be used; one line of text per mistake, each with file, line and field."""


class Field(msgspec.Struct, frozen=True):
    """A field of the file: its name there, its type in words, its default in words (``required`` without one), and
    what it means."""

    name: str
    type: str
    default: str
    meaning: str


SECTIONS: dict[str, tuple[Field, ...]] = {
    "Fleet": (
        Field("kind", "string", "required", "`Fleet`"),
        Field("apiVersion", "string", "`kubedra.dev/v1`", "May be left out."),
        Field("metadata", "object", "`{}`", "A `name` for people; nothing reads it."),
        Field("drivers", "map of string", "`{}`", "Driver name by vendor, in place of the vendor's real one."),
        Field("pools", "list of Pool", "required", "The nodes."),
    ),
    "Pool": (
        Field("name", "string", "required", "Nodes are called `<name>-0`, `<name>-1` and so on."),
        Field("count", "integer", "`1`", "How many nodes."),
        Field("hollow", "boolean", "`false`", "Pods on hollow nodes run without processes."),
        Field("cpu", "quantity", "`32`", "CPUs of each node."),
        Field("memory", "quantity", "`128Gi`", "Memory of each node."),
        Field("pods", "integer", "`110`", "How many pods a node takes."),
        Field("labels", "map of string", "`{}`", "Labels of the nodes."),
        Field("devices", "list of Devices", "`[]`", "The cards of each node."),
    ),
    "Devices": (
        Field("card", "string", "required", "A name from the catalogue below."),
        Field("count", "integer", "`1`", "How many in each node."),
        Field("numaNodes", "integer", "`1`", "Over how many NUMA nodes they are spread, evenly."),
        Field("perRoot", "integer", "`2`", "How many cards of a NUMA node share a PCIe root."),
        Field("linked", "integer", "that of the card", "How many neighbours share a link domain; 1 is none."),
        Field("servedBy", "`dra` or `plugin`", "`dra`", "Through a DRA driver, or the old way by a device plugin."),
        Field("driver", "string", "the vendor's", "Name of the DRA driver that serves them."),
        Field("resource", "string", "the vendor's", "Name of the extended resource, for `plugin`."),
    ),
}


class Devices(msgspec.Struct, frozen=True, kw_only=True):
    """Equal cards of each node of a pool; ``driver`` and ``resource`` are resolved."""

    card: str
    count: int = 1
    numa_nodes: int = 1
    per_root: int = 2
    linked: int = 1
    served_by: Literal["dra", "plugin"] = "dra"
    driver: str = ""
    resource: str = ""


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Equal nodes."""

    name: str
    count: int = 1
    hollow: bool = False
    cpu: str = "32"
    memory: str = "128Gi"
    pods: int = 110
    labels: dict[str, str] = {}
    devices: tuple[Devices, ...] = ()

    def node_names(self) -> list[str]:
        """Return the names of the pool's nodes."""
        return [f"{self.name}-{index}" for index in range(self.count)]


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """A whole fleet."""

    pools: tuple[Pool, ...] = ()
    name: str = ""

    def nodes(self) -> Iterator[tuple[str, Pool]]:
        """Yield every node with its pool."""
        for pool in self.pools:
            for name in pool.node_names():
                yield name, pool

    def drivers(self) -> dict[str, tuple[str, ...]]:
        """Return which nodes each DRA driver serves."""
        served: dict[str, list[str]] = {}
        for pool in self.pools:
            for driver in dict.fromkeys(entry.driver for entry in pool.devices if entry.served_by == "dra"):
                served.setdefault(driver, []).extend(pool.node_names())
        return {driver: tuple(nodes) for driver, nodes in served.items()}


def load(path: Path) -> Fleet:
    """Read a fleet file; raises ``FleetError``."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FleetError(f"the fleet file {path} can't be read: {error.strerror}") from error
    try:
        text = yaml.decode(data, str(path))
    except yaml.YamlError as error:
        raise FleetError(str(error)) from error
    return parse(text, str(path))


def parse(text: str, filename: str = "<fleet>") -> Fleet:
    """Read the text of a fleet file; raises ``FleetError`` with every mistake."""
    try:
        documents = [document for document in yaml.load_all(text, filename) if document.value is not None]
    except yaml.YamlError as error:
        raise FleetError(str(error)) from error
    if len(documents) != 1:
        raise FleetError(f"{filename}: a fleet file holds one document, this one has {len(documents)}")
    reader = _Reader(documents[0])
    fleet = reader.fleet()
    if reader.mistakes:
        raise FleetError("\n".join(reader.mistakes))
    return fleet


class _Reader:
    """Turns a tree into a fleet and collects mistakes instead of raising at the first."""

    def __init__(self, document: yaml.Document) -> None:
        self._document = document
        self.mistakes: list[str] = []

    def fleet(self) -> Fleet:
        tree = self._section(self._document.value, "", "Fleet")
        if tree.get("kind") != "Fleet":
            self._mistake("kind", f'must be "Fleet", not {_shown(tree.get("kind"))}')
        overrides = self._strings(tree, "", "drivers")
        for vendor in overrides:
            if vendor not in VENDORS:
                self._mistake(f"drivers.{vendor}", f'unknown vendor "{vendor}"{_nearest(vendor, VENDORS)}')
        pools = tuple(
            self._pool(entry, f"pools[{index}]", overrides) for index, entry in enumerate(self._list(tree, "", "pools"))
        )
        if not pools and not self.mistakes:
            self._mistake("pools", "at least one pool is required")
        seen: set[str] = set()
        for index, pool in enumerate(pools):
            if pool.name in seen:
                self._mistake(f"pools[{index}].name", f'there are two pools "{pool.name}"')
            seen.add(pool.name)
        if sum(pool.count for pool in pools) > MOST_NODES:
            self._mistake("pools", f"more than {MOST_NODES} nodes")
        metadata = tree.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        return Fleet(pools=pools, name=str(name or ""))

    def _pool(self, value: Any, path: str, overrides: Mapping[str, str]) -> Pool:
        tree = self._section(value, path, "Pool")
        name = self._text(tree, path, "name", "")
        if "name" in tree and names.dns_label(name):
            self._mistake(f"{path}.name", f'"{name}" can\'t be part of a node name: {names.dns_label(name)[0]}')
        labels = self._strings(tree, path, "labels")
        for key, text in labels.items():
            for fault in (*names.qualified_name(key), *names.label_value(text)):
                self._mistake(f"{path}.labels.{key}", fault)
        devices = tuple(
            self._devices(entry, f"{path}.devices[{index}]", overrides)
            for index, entry in enumerate(self._list(tree, path, "devices"))
        )
        return Pool(
            name=name,
            count=self._number(tree, path, "count", 1, MOST_NODES, least=0),
            hollow=self._flag(tree, path, "hollow"),
            cpu=self._quantity(tree, path, "cpu", "32"),
            memory=self._quantity(tree, path, "memory", "128Gi"),
            pods=self._number(tree, path, "pods", 110, 100_000, least=0),
            labels=labels,
            devices=devices,
        )

    def _devices(self, value: Any, path: str, overrides: Mapping[str, str]) -> Devices:
        tree = self._section(value, path, "Devices")
        name = self._text(tree, path, "card", "")
        card = CARDS.get(name)
        if card is None and name:
            self._mistake(f"{path}.card", f'no card "{name}" in the catalogue{_nearest(name, CARDS)}')
        count = self._number(tree, path, "count", 1, MOST_CARDS)
        numa_nodes = self._number(tree, path, "numaNodes", 1, 64)
        linked = 1 if card is None else count if card.linked == "all" else card.linked
        served_by = self._text(tree, path, "servedBy", "dra")
        if served_by not in ("dra", "plugin"):
            self._mistake(f"{path}.servedBy", f'must be "dra" or "plugin", not {_shown(served_by)}')
        vendor = card.vendor if card else None
        driver = self._text(tree, path, "driver", "") or (
            overrides.get(vendor.name, vendor.driver) if vendor else "unknown"
        )
        if len(driver) > 63 or names.dns_subdomain(driver):
            self._mistake(f"{path}.driver", f'"{driver}" is no driver name: a DNS name of at most 63 characters')
        resource = self._text(tree, path, "resource", "") or (vendor.resource if vendor else "example.com/unknown")
        if "/" not in resource or names.qualified_name(resource):
            self._mistake(f"{path}.resource", f'"{resource}" is no resource name: domain/name')
        return Devices(
            card=name,
            count=count,
            numa_nodes=min(numa_nodes, count),
            per_root=self._number(tree, path, "perRoot", 2, MOST_CARDS),
            linked=self._number(tree, path, "linked", max(linked, 1), MOST_CARDS),
            served_by="plugin" if served_by == "plugin" else "dra",
            driver=driver,
            resource=resource,
        )

    # ---- values ----

    def _mistake(self, path: str, text: str) -> None:
        line = self._document.line_of(path)
        self.mistakes.append(f"{self._document.filename}:{line}: {path or 'file'}: {text}")

    def _section(self, value: Any, path: str, section: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._mistake(path, f"must be a {section} object, not {_shown(value)}")
            return {}
        known = {field.name for field in SECTIONS[section]}
        for key in value:
            if key not in known:
                self._mistake(_join(path, str(key)), f'unknown field "{key}"{_nearest(str(key), known)}')
        for field in SECTIONS[section]:
            if field.default == "required" and value.get(field.name) is None:
                self._mistake(_join(path, field.name), "is required")
        return value

    def _text(self, tree: Mapping[str, Any], path: str, key: str, default: str) -> str:
        value = tree.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            self._mistake(_join(path, key), f"must be a string, not {_shown(value)}")
            return default
        return value

    def _number(self, tree: Mapping[str, Any], path: str, key: str, default: int, most: int, *, least: int = 1) -> int:
        value = tree.get(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self._mistake(_join(path, key), f"must be a whole number from {least} to {most}, not {_shown(value)}")
            return default
        return value

    def _flag(self, tree: Mapping[str, Any], path: str, key: str) -> bool:
        value = tree.get(key)
        if value is not None and not isinstance(value, bool):
            self._mistake(_join(path, key), f"must be true or false, not {_shown(value)}")
        return value is True

    def _quantity(self, tree: Mapping[str, Any], path: str, key: str, default: str) -> str:
        value = tree.get(key)
        if value is None:
            return default
        try:
            quantity = Quantity.parse(value)
        except (QuantityError, TypeError):
            self._mistake(_join(path, key), f"must be a quantity like 64Gi, not {_shown(value)}")
            return default
        if quantity.nano < 0:
            self._mistake(_join(path, key), "must not be negative")
        return str(quantity)

    def _strings(self, tree: Mapping[str, Any], path: str, key: str) -> dict[str, str]:
        value = tree.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._mistake(_join(path, key), f"must be a map, not {_shown(value)}")
            return {}
        for name, text in value.items():
            if not isinstance(text, str):
                self._mistake(f"{_join(path, key)}.{name}", f"must be a string, not {_shown(text)}: put it in quotes")
        return {str(name): text for name, text in value.items() if isinstance(text, str)}

    def _list(self, tree: Mapping[str, Any], path: str, key: str) -> list[Any]:
        value = tree.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self._mistake(_join(path, key), f"must be a list, not {_shown(value)}")
            return []
        return value


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:60]


def _nearest(name: str, known: Mapping[str, Any] | set[str]) -> str:
    folded = {entry.lower(): entry for entry in known}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    if found:
        return f'; did you mean "{folded[found[0]]}"?'
    return f"; known are {', '.join(sorted(known))}"
