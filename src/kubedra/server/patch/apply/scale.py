"""Ownership across the ``scale`` subresource, whose ``spec.replicas`` is a field of the main resource.

A write to ``/scale`` sees only the owners of the replicas, in terms of the Scale object; afterwards they are put back
in terms of the main resource.

Upstream counterpart: apimachinery ``pkg/util/managedfields/scalehandler.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from kubedra.server.patch.apply.entries import Entry, Managed, decode, encode
from kubedra.server.patch.apply.fieldset import FieldSet, difference, has, of_path
from kubedra.server.patch.apply.manager import FieldManager

SCALE_VERSION = "autoscaling/v1"
_REPLICAS = ("f:spec", "f:replicas")
_REPLICAS_SET: FieldSet = of_path(_REPLICAS)

Entries = list[dict[str, Any]]


class _Scale(NamedTuple):
    definition: str = "io.k8s.api.autoscaling.v1.Scale"
    api_version: str = SCALE_VERSION
    kind: str = "Scale"


@cache
def scale_manager() -> FieldManager:
    """The field manager of Scale objects."""
    return FieldManager(_Scale(), "scale")


def to_scale(entries: Entries, versions: Mapping[str, tuple[str, ...]]) -> Entries:
    """The managed fields of a Scale: the owners of the replicas. ``versions`` has the path of each apiVersion."""
    out: Managed = {}
    for key, entry in decode(entries, trusted=True).items():
        path = versions.get(entry.api_version)
        if path is not None and has(entry.fields, path):
            if key.operation == "Update":
                key = key._replace(api_version=SCALE_VERSION)
            out[key] = Entry(_REPLICAS_SET, SCALE_VERSION, entry.time)
    return encode(out)


def to_parent(
    entries: Entries, scale_entries: Entries, api_version: str, versions: Mapping[str, tuple[str, ...]]
) -> Entries:
    """The managed fields of the main resource after a write to its Scale."""
    scale = decode(scale_entries, trusted=True)
    parent = decode(entries, trusted=True)
    out: Managed = {}
    for key, entry in parent.items():
        path = versions.get(entry.api_version)
        if path is None or not has(entry.fields, path):
            out[key] = entry
            continue
        there = key._replace(api_version=SCALE_VERSION) if key.operation == "Update" else key
        if there in scale:
            out[key] = entry
            del scale[there]
            continue
        left = difference(entry.fields, of_path(path))
        if left:
            out[key] = entry.owning(left)
    for key, entry in scale.items():
        if has(entry.fields, _REPLICAS):
            if key.operation == "Update":
                key = key._replace(api_version=api_version)
            # Upstream takes the time from the main resource's entry, so a new owner of the replicas has none.
            time = parent[key].time if key in parent else ""
            out[key] = Entry(of_path(versions[api_version]), api_version, time)
    return encode(out)
