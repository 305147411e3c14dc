"""Decides which ResourceSlices to write so that the API holds what a driver wants to publish.

Pure: what is stored and what is wanted in, writes out, and as few of them as possible. The slices of a pool are
numbered in their names; a slice without number, with a foreign number or of an old generation is deleted. A change of
one slice keeps the generation, anything more raises it and rewrites all, so that a reader never mixes two states.
Upstream counterpart: the sync of k8s.io/dynamic-resource-allocation/resourceslice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec

from kubedra.api import meta_v1, resource_v1
from kubedra.sdk.resources import Pool, SliceContent

_NUMBERED = re.compile(r"([0-9a-f]{5,})-")


class StoredSlice(msgspec.Struct, frozen=True, gc=False):
    """What is kept of a slice in the API: enough to compare it, without its devices."""

    name: str
    uid: str
    resource_version: str
    owners: tuple[str, ...]
    node_name: str
    pool: resource_v1.ResourcePool
    digest: bytes

    @property
    def version(self) -> int:
        """The resource version as a number; 0 where it is none."""
        return int(self.resource_version) if self.resource_version.isdigit() else 0


class Update(msgspec.Struct, frozen=True):
    """A stored slice and the spec that it should have."""

    stored: StoredSlice
    spec: resource_v1.ResourceSliceSpec
    index: int


class Create(msgspec.Struct, frozen=True):
    """A slice to create."""

    generate_name: str
    spec: resource_v1.ResourceSliceSpec
    index: int


class Plan(msgspec.Struct, frozen=True):
    """What to write, in this order: deletes, updates, creates."""

    deletes: tuple[StoredSlice, ...] = ()
    updates: tuple[Update, ...] = ()
    creates: tuple[Create, ...] = ()

    def __len__(self) -> int:
        return len(self.deletes) + len(self.updates) + len(self.creates)


class Accepted(msgspec.Struct, frozen=True):
    """A wanted content and what the API made of it: fields that it dropped are not asked for again and again."""

    wanted: bytes
    stored: bytes


def stored_slice(entry: resource_v1.ResourceSlice) -> StoredSlice:
    """Return what is kept of a slice."""
    meta = entry.metadata
    return StoredSlice(
        meta.name,
        meta.uid,
        meta.resource_version,
        tuple(reference.uid for reference in meta.owner_references),
        entry.spec.node_name or "",
        entry.spec.pool,
        digest(entry.spec),
    )


def digest(spec: resource_v1.ResourceSliceSpec) -> bytes:
    """Return a fingerprint of a slice's content: equal for equal content, whatever its pool's numbers."""
    content = msgspec.json.encode(content_of(spec), order="sorted")
    return hashlib.blake2b(content, digest_size=16).digest()


def plan(
    driver: str,
    name: str,
    pool: Pool,
    contents: Sequence[SliceContent],
    stored: Sequence[StoredSlice],
    *,
    owner: meta_v1.OwnerReference | None,
    accepted: Mapping[int, Accepted],
) -> Plan:
    """Return the writes that bring the stored slices of pool ``name`` to ``contents``."""
    highest = max((entry.pool.generation for entry in stored), default=0)
    matched: dict[int, StoredSlice] = {}
    obsolete = []
    for entry in sorted(stored, key=_newest_first):
        index = index_of(entry.name)
        usable = index is not None and index < len(contents) and index not in matched
        # Node fields are immutable and the owner decides who deletes the slice: a wrong one needs a new slice.
        usable = usable and entry.pool.generation == highest and entry.node_name == pool.node_name
        usable = usable and (owner is None or owner.uid in entry.owners)
        if usable and index is not None:
            matched[index] = entry
        else:
            obsolete.append(entry)

    generation = max(highest, pool.generation, 1)
    wanted = _specs(driver, name, pool, contents, generation)
    changed = [index for index, entry in matched.items() if not _settled(entry, wanted[index], accepted.get(index))]
    complete = len(matched) == len(contents)
    if generation == highest and not (complete and len(changed) <= 1) and stored:
        generation = highest + 1
        wanted = _specs(driver, name, pool, contents, generation)
        changed = list(matched)

    prefix = f"{driver}-" + (f"{owner.name}-" if owner else "")
    return Plan(
        tuple(obsolete),
        tuple(Update(matched[index], wanted[index], index) for index in sorted(changed)),
        tuple(
            Create(f"{index:05x}-{prefix}"[:240], wanted[index], index)
            for index in range(len(contents))
            if index not in matched
        ),
    )


def index_of(name: str) -> int | None:
    """Return the number at the start of a slice's name, or None for a name that we never give."""
    found = _NUMBERED.match(name)
    return int(found[1], 16) if found else None


def content_of(spec: resource_v1.ResourceSliceSpec) -> resource_v1.ResourceSliceSpec:
    """Return the spec without what is not content: the pool's numbers and the times the API puts into taints."""
    devices = spec.devices
    if any(taint.time_added for entry in devices for taint in entry.taints):
        devices = tuple(
            msgspec.structs.replace(
                entry, taints=tuple(msgspec.structs.replace(taint, time_added="") for taint in entry.taints)
            )
            for entry in devices
        )
    return msgspec.structs.replace(spec, devices=devices, pool=resource_v1.ResourcePool())


def dropped_fields(wanted: resource_v1.ResourceSliceSpec, stored: resource_v1.ResourceSliceSpec) -> list[str]:
    """Return which fields of a written slice the API did not keep, as ``devices["x"].taints``."""
    fields = [
        field
        for field in ("shared_counters", "per_device_node_selection", "skip_node_operations")
        if getattr(wanted, field) != getattr(stored, field)
    ]
    kept = {entry.name: entry for entry in content_of(stored).devices}
    for entry in content_of(wanted).devices:
        other = kept.get(entry.name)
        if other is None:
            fields.append(f'devices["{entry.name}"]')
            continue
        fields.extend(
            f'devices["{entry.name}"].{field}'
            for field in entry.__struct_fields__
            if getattr(entry, field) != getattr(other, field)
        )
    return fields


def _settled(stored: StoredSlice, wanted: resource_v1.ResourceSliceSpec, accepted: Accepted | None) -> bool:
    if stored.pool != wanted.pool:
        return False
    want = digest(wanted)
    return stored.digest == want or (
        accepted is not None and accepted.wanted == want and accepted.stored == stored.digest
    )


def _specs(
    driver: str, name: str, pool: Pool, contents: Sequence[SliceContent], generation: int
) -> list[resource_v1.ResourceSliceSpec]:
    numbers = resource_v1.ResourcePool(name=name, generation=generation, resource_slice_count=len(contents))
    return [
        resource_v1.ResourceSliceSpec(
            driver=driver,
            pool=numbers,
            node_name=pool.node_name or None,
            node_selector=pool.node_selector,
            all_nodes=pool.all_nodes or None,
            per_device_node_selection=pool.per_device_node_selection or None,
            devices=content.devices,
            shared_counters=content.shared_counters,
        )
        for content in contents
    ]


def _newest_first(entry: StoredSlice) -> tuple[int, str]:
    return (-entry.version, entry.name)
