"""The objects of a cluster as commands that only read want them: from files, a dump, or a live cluster.

A dump is what plain kubectl prints; its objects may be of any served version and are brought to the newest. Objects
of other kinds are skipped, so one dump serves every command.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from kubedra.allocation.scenario import with_defaults
from kubedra.api import kinds
from kubedra.api.canonical import normalise
from kubedra.api.codec import from_tree
from kubedra.api.conversion import convert, storage_api_version
from kubedra.api.core_v1 import Node, Pod
from kubedra.api.resource_v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from kubedra.cli.output import Refusal

T = TypeVar("T")

# What a dump for these commands needs, as arguments of kubectl get.
DUMP_KINDS = "nodes,pods,resourceslices,deviceclasses,resourceclaims,resourceclaimtemplates,devicetaintrules"
DUMP_COMMAND = f"kubectl get {DUMP_KINDS} -A -o json"

_KINDS: dict[str, Any] = {
    "Node": kinds.NODE,
    "Pod": kinds.POD,
    "DeviceClass": kinds.DEVICE_CLASS,
    "ResourceSlice": kinds.RESOURCE_SLICE,
    "ResourceClaim": kinds.RESOURCE_CLAIM,
    "ResourceClaimTemplate": kinds.RESOURCE_CLAIM_TEMPLATE,
    "DeviceTaintRule": kinds.DEVICE_TAINT_RULE,
}


@dataclass
class ClusterObjects:
    """Objects by kind, in the order in which they were read."""

    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    classes: list[DeviceClass] = field(default_factory=list)
    slices: list[ResourceSlice] = field(default_factory=list)
    claims: list[ResourceClaim] = field(default_factory=list)
    templates: list[ResourceClaimTemplate] = field(default_factory=list)
    rules: list[DeviceTaintRule] = field(default_factory=list)

    def add_tree(self, tree: dict[str, Any], where: str, namespace: str = "default") -> None:
        """Add an object (or the items of a list); kinds that don't matter here are skipped."""
        kind = str(tree.get("kind", ""))
        if kind.endswith("List") and "items" in tree:
            for number, item in enumerate(tree.get("items") or []):
                # Items of a typed list may leave out what the list says.
                item = {"kind": kind.removesuffix("List"), "apiVersion": tree.get("apiVersion", ""), **item}
                self.add_tree(item, f"{where}, item {number}", namespace)
            return
        if kind not in _KINDS:
            return
        version = str(tree.get("apiVersion", ""))
        tree = convert(tree, version, storage_api_version(version, kind))
        if kind == "ResourceClaim":
            tree = with_defaults(tree)
        if kind == "ResourceClaimTemplate":
            tree = {**tree, "spec": with_defaults(tree.get("spec") or {})}
        if kind in ("Pod", "ResourceClaim", "ResourceClaimTemplate"):
            metadata = tree.get("metadata") or {}
            tree = {**tree, "metadata": {**metadata, "namespace": metadata.get("namespace") or namespace}}
        try:
            self.add(_decoded(kind, tree))
        except msgspec.ValidationError as error:
            name = (tree.get("metadata") or {}).get("name", "")
            raise Refusal(f"{where}: {kind} {name} can't be read: {error}") from None

    def add(self, obj: object) -> None:
        """Add an object."""
        lists = (self.nodes, self.pods, self.classes, self.slices, self.claims, self.templates, self.rules)
        types = (Node, Pod, DeviceClass, ResourceSlice, ResourceClaim, ResourceClaimTemplate, DeviceTaintRule)
        for objects, kind in zip(lists, types, strict=True):
            if isinstance(obj, kind):
                cast("list[Any]", objects).append(obj)
                return


def _decoded(kind: str, tree: dict[str, Any]) -> Any:
    try:
        return from_tree(_KINDS[kind].type, tree)
    except msgspec.ValidationError:
        # People write quantities as numbers, too.
        return from_tree(_KINDS[kind].type, normalise(_KINDS[kind].definition, copy.deepcopy(tree)))


def read_file(objects: ClusterObjects, path: str, namespace: str = "default") -> None:
    """Add the objects of a YAML or JSON file ("-" is the standard input)."""
    import sys

    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    if text.lstrip().startswith("{"):
        # Dumps are large; the JSON parser is much faster than the YAML parser.
        try:
            objects.add_tree(msgspec.json.decode(text), path, namespace)
            return
        except msgspec.DecodeError:
            pass
    from kubedra.base import yaml

    for document in yaml.load_all(text, path):
        if not isinstance(document.value, dict):
            raise Refusal(f"{path}:{document.line}: an object is expected here")
        objects.add_tree(document.value, f"{path}:{document.line}", namespace)


async def read_cluster(client: Any) -> ClusterObjects:
    """Everything that is needed, from a live cluster."""
    objects = ClusterObjects()
    for kind in (
        kinds.NODE,
        kinds.POD,
        kinds.DEVICE_CLASS,
        kinds.RESOURCE_SLICE,
        kinds.RESOURCE_CLAIM,
        kinds.RESOURCE_CLAIM_TEMPLATE,
    ):
        for item in (await client.list(kind)).items:
            objects.add(item)
    from kubedra.api.errors import ApiError

    try:
        for item in (await client.list(kinds.DEVICE_TAINT_RULE)).items:
            objects.add(item)
    except ApiError as error:
        # Clusters without the feature don't serve the kind.
        if error.code != 404:
            raise
    return objects


def read_fleet(path: str) -> ClusterObjects:
    """The nodes, slices and classes that a fleet file describes."""
    import importlib

    try:
        reader: Any = importlib.import_module("kubedra.drivers.simulated.fleet")
    except ImportError:
        raise Refusal("this kubedra has no simulated fleets; give a dump with --dump") from None
    objects = ClusterObjects()
    for tree in cast("Iterable[dict[str, Any]]", reader.fleet_objects(Path(path).read_text(encoding="utf-8"), path)):
        objects.add_tree(tree, path)
    return objects
