"""The published side of the cluster, kept between pods: slices, classes, nodes, taint rules and what follows from them.

Every change comes in as one object and touches only what depends on it. A node's view (its pools in search order) is
built when first needed and kept until a slice of one of its pools, a slice for several nodes, or the node's labels
change; pools that several nodes see alike are shared between their views.

Must never: depend on the order of events. Slices count in the order in which they were first seen, which matters for
pools whose slices contradict each other and for nothing else (spec/allocator.md 3.1).

Upstream counterpart: NewAllocator and GatherPools, which do all of this again for each pod and node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubedra.allocation.columns import Columns, pattern_of
from kubedra.allocation.devices import CounterUses, DeviceView, PoolId, SliceView, bits_of
from kubedra.allocation.features import Features
from kubedra.allocation.pools import PoolView, device_on_node, is_relevant, usable
from kubedra.allocation.selection import Compile, Selection, Selections
from kubedra.api.core_v1 import Node
from kubedra.api.resource_v1 import DeviceClass, DeviceTaintRule, ResourceSlice


class NodeView:
    """The pools of one node in search order, and their devices numbered through."""

    __slots__ = ("_devices", "_patterns", "candidates", "incomplete", "invalid", "masked", "name", "pools")

    def __init__(self, name: str, pools: tuple[PoolView, ...], masked: dict[int, int]) -> None:
        self.name = name
        self.pools = pools
        # (pool, place of its first device among the node's devices)
        candidates = []
        offset = 0
        for pool in pools:
            if pool.state == "complete":
                candidates.append((pool, offset))
                offset += len(pool.devices)
        self.candidates = tuple(candidates)
        # Pools with perDeviceNodeSelection: offset to the devices that are on this node.
        self.masked = masked
        self.incomplete = tuple(pool for pool in pools if pool.state == "incomplete")
        self.invalid = tuple(pool for pool in pools if pool.state == "invalid")
        self._devices: tuple[DeviceView, ...] | None = None
        self._patterns: dict[str, tuple[int, ...]] = {}

    def pattern(self, attribute: str, features: Features) -> tuple[int, ...]:
        """Which devices have equal values of an attribute, without the values: the place of the first such device.

        -1 for devices that lack it. Lists are told apart by the places of each of their members.
        """
        pattern = self._patterns.get(attribute)
        if pattern is None:
            if len(self._patterns) > 16:
                self._patterns.clear()
            pattern = self._patterns[attribute] = self._pattern(attribute, features)
        return pattern

    def _pattern(self, attribute: str, features: Features) -> tuple[int, ...]:
        slices = [slice_ for pool, _ in self.candidates for slice_, _ in pool.spans]
        if len(slices) == 1:
            # Most nodes have one slice, and share its columns with others.
            return slices[0].pattern(attribute, features.list_attributes)
        columns = [slice_.value_column(attribute, features.list_attributes) for slice_ in slices]
        return pattern_of(values for column in columns for values in column)

    @property
    def devices(self) -> tuple[DeviceView, ...]:
        """All devices of the node in search order."""
        devices = self._devices
        if devices is None:
            if len(self.candidates) == 1:
                devices = self.candidates[0][0].devices
            else:
                devices = tuple(device for pool, _ in self.candidates for device in pool.devices)
            self._devices = devices
        return devices


class _NodeEntry:
    __slots__ = ("labels", "name", "number", "shared_version", "view")

    def __init__(self, name: str, labels: Mapping[str, str], number: int) -> None:
        self.name = name
        self.labels = labels
        self.number = number
        self.view: NodeView | None = None
        self.shared_version = -1


class Inventory:
    """Index over everything that is published."""

    def __init__(self, compile_: Compile, features: Features | None = None) -> None:
        self.features = features or Features()
        self.selections = Selections(compile_, self.features)
        self.classes: dict[str, DeviceClass] = {}
        self.slices: dict[str, SliceView] = {}
        self.rules: dict[str, DeviceTaintRule] = {}
        self.pools: dict[PoolId, dict[str, SliceView]] = {}
        self._nodes: dict[str, _NodeEntry] = {}
        self._local: dict[str, dict[str, SliceView]] = {}
        self._shared: dict[str, SliceView] = {}
        self._shared_version = 0
        self._pool_views: dict[PoolId, dict[tuple[object, ...], PoolView]] = {}
        self._uses = CounterUses()
        self.columns = Columns(self.features.list_attributes or self.features.version >= "1.37")
        self._slice_of_number: dict[int, SliceView] = {}
        self._shared_slices = 0
        self._names: list[str] = []
        self._numbers = 0
        # Nodes whose view may have changed, in order; "" stands for all nodes. Consumers catch up from their place.
        self.changes: list[str] = []
        self.first_change = 0

    # -- events -------------------------------------------------------------------------------------------------------

    def update_slice(self, new: ResourceSlice | None, name: str = "") -> None:
        """A slice was added or changed (``new``) or deleted (None and its name).

        ``name`` is the key under which the slice is kept, its own name unless given.
        """
        name = name or (new.metadata.name if new is not None else "")
        old = self.slices.get(name)
        view = None if new is None else SliceView(new, self._uses, self.columns, self._rules_of(new))
        self._replace(name, old, view)

    def update_class(self, new: DeviceClass | None, name: str = "") -> None:
        """A class was added, changed or deleted."""
        if new is None:
            self.classes.pop(name, None)
        else:
            self.classes[new.metadata.name] = new

    def update_node(self, new: Node | None, name: str = "") -> None:
        """A node was added, changed or deleted."""
        if new is None:
            entry = self._nodes.pop(name, None)
            if entry is not None:
                self._numbers &= ~(1 << entry.number)
                self._changed(name)
            return
        name = new.metadata.name
        entry = self._nodes.get(name)
        if entry is None:
            self._nodes[name] = _NodeEntry(name, new.metadata.labels, len(self._names))
            self._numbers |= 1 << len(self._names)
            self._names.append(name)
            self._changed(name)
        elif entry.labels != new.metadata.labels:
            entry.labels = new.metadata.labels
            entry.view = None
            self._changed(name)

    def update_taint_rule(self, new: DeviceTaintRule | None, name: str = "") -> None:
        """A DeviceTaintRule was added, changed or deleted: slices that it concerns are looked at again."""
        name = new.metadata.name if new is not None else name
        old = self.rules.pop(name, None)
        if new is not None:
            self.rules[name] = new
        if not self.features.taint_rules:
            return
        if old is not None and new is not None and old.spec == new.spec:
            return
        for slice_name, view in list(self.slices.items()):
            if any(rule is not None and _may_concern(rule, view.raw) for rule in (old, new)):
                fresh = SliceView(view.raw, self._uses, self.columns, self._rules_of(view.raw))
                self._replace(slice_name, view, fresh)

    # -- questions ----------------------------------------------------------------------------------------------------

    def node_names(self) -> tuple[str, ...]:
        """All nodes in the order in which they were added."""
        return tuple(self._nodes)

    def node_numbers(self) -> int:
        """The numbers of all nodes, as a mask. A node keeps its number until it is deleted."""
        return self._numbers

    def numbers_of(self, nodes: Iterable[str]) -> int:
        """The numbers of some nodes, as a mask; unknown nodes are left out."""
        mask = 0
        for node in nodes:
            entry = self._nodes.get(node)
            if entry is not None:
                mask |= 1 << entry.number
        return mask

    def live_nodes(self, selection: Selection) -> tuple[int, int]:
        """The nodes that may have a device which passes a selection or on which it fails, and those with the latter.

        Masks of node numbers; nodes that are not in the first have none, whatever is free.
        """
        live, failing = selection.live_slices(self.columns, self._slice_of_number.__getitem__)
        return self._nodes_of(live), self._nodes_of(failing)

    def _nodes_of(self, slices: int) -> int:
        if slices & self._shared_slices or slices == self.columns.slices:
            return self._numbers
        nodes = 0
        for number in bits_of(slices):
            entry = self._nodes.get(self._slice_of_number[number].raw.spec.node_name or "")
            if entry is not None:
                nodes |= 1 << entry.number
        return nodes

    def number_of(self, node: str) -> int:
        """The number of a node, -1 for an unknown one."""
        entry = self._nodes.get(node)
        return -1 if entry is None else entry.number

    def name_of(self, number: int) -> str:
        """The node with a number."""
        return self._names[number]

    def labels(self, node: str) -> Mapping[str, str]:
        """The labels of a node ({} for an unknown one)."""
        entry = self._nodes.get(node)
        return {} if entry is None else entry.labels

    def node_view(self, node: str) -> NodeView:
        """The pools of a node. An unknown node has those that name it and those for all nodes."""
        entry = self._nodes.get(node)
        if entry is None:
            return self._build(_NodeEntry(node, {}, -1))
        view = entry.view
        if view is None or entry.shared_version != self._shared_version:
            view = entry.view = self._build(entry)
            entry.shared_version = self._shared_version
        return view

    # -- inside -------------------------------------------------------------------------------------------------------

    def _rules_of(self, raw: ResourceSlice) -> Iterable[DeviceTaintRule]:
        if not self.features.taint_rules or not self.rules:
            return ()
        return [rule for rule in self.rules.values() if _may_concern(rule, raw)]

    def _replace(self, name: str, old: SliceView | None, new: SliceView | None) -> None:
        if old is not None:
            self.columns.remove(old.number, old.columns)
            self._slice_of_number.pop(old.number, None)
            self._shared_slices &= ~(1 << old.number)
        if new is not None:
            self._slice_of_number[new.number] = new
            if not new.raw.spec.node_name:
                self._shared_slices |= 1 << new.number
        if old is not None and (new is None or old.key != new.key):
            self._forget(old)
            siblings = self.pools[old.key]
            del siblings[name]
            if not siblings:
                del self.pools[old.key]
        if old is not None and (new is None or self._home(old) is not self._home(new)):
            self._home(old).pop(name, None)
        if new is None:
            self.slices.pop(name, None)
            return
        self.slices[name] = new
        self.pools.setdefault(new.key, {})[name] = new
        self._home(new)[name] = new
        if old is not None and old.raw.spec.node_name != new.raw.spec.node_name:
            self._forget(old)
        self._forget(new)

    def _home(self, view: SliceView) -> dict[str, SliceView]:
        node = view.raw.spec.node_name
        return self._local.setdefault(node, {}) if node else self._shared

    def _forget(self, changed: SliceView) -> None:
        """Drop the views that may depend on a slice: of its own nodes and of all that have slices of its pool."""
        self._pool_views.pop(changed.key, None)
        for slice_ in (changed, *self.pools.get(changed.key, {}).values()):
            node = slice_.raw.spec.node_name
            if not node:
                self._shared_version += 1
                self._changed("")
                return
            entry = self._nodes.get(node)
            if entry is not None:
                entry.view = None
            self._changed(node)

    def _changed(self, node: str) -> None:
        self.changes.append(node)
        if len(self.changes) > 20000:
            del self.changes[:10000]
            self.first_change += 10000

    def _build(self, entry: _NodeEntry) -> NodeView:
        gathered: dict[PoolId, list[SliceView]] = {}
        features = self.features
        for slice_ in self._local.get(entry.name, {}).values():
            if usable(slice_, features):
                _keep_newest(gathered, slice_)
        for slice_ in self._shared.values():
            if usable(slice_, features) and is_relevant(slice_, entry.labels, entry.name):
                _keep_newest(gathered, slice_)
        pools = [pool for key, kept in gathered.items() if (pool := self._pool(key, kept)) is not None]
        # Pools with binding conditions take longer to use, so they come after all others.
        pools.sort(key=lambda pool: (pool.has_bindings, pool.key))
        return NodeView(entry.name, tuple(pools), self._masks(pools, entry))

    def _masks(self, pools: list[PoolView], entry: _NodeEntry) -> dict[int, int]:
        masks: dict[int, int] = {}
        offset = 0
        for pool in pools:
            if pool.state != "complete":
                continue
            if any(slice_.per_device for slice_, _ in pool.spans):
                mask = 0
                for bit, device in enumerate(pool.devices):
                    if not device.slice.per_device or device_on_node(device, entry.labels, entry.name):
                        mask |= 1 << bit
                masks[offset] = mask
            offset += len(pool.devices)
        return masks

    def _pool(self, key: PoolId, kept: list[SliceView]) -> PoolView | None:
        expected = kept[0].raw.spec.pool.resource_slice_count
        siblings = self.pools[key].values()
        others: list[SliceView] = []
        found, complete = len(kept), len(kept) == expected
        if not complete:
            generation = kept[0].generation
            if any(slice_.generation > generation for slice_ in siblings):
                # A newer generation lives on other nodes only: this one is obsolete.
                return None
            same = [slice_ for slice_ in siblings if slice_.generation == generation]
            found, complete = len(same), len(same) == expected
            if complete:
                others = [slice_ for slice_ in same if slice_ not in kept]
        if not self.features.compatibility_groups and any(s.has_groups for s in (*kept, *others)):
            complete = False
        known = self._pool_views.setdefault(key, {})
        identity = (*kept, None, *others, complete)
        view = known.get(identity)
        if view is None:
            view = known[identity] = PoolView(kept, others, found, complete, self.features.partitionable)
        return view


def _keep_newest(gathered: dict[PoolId, list[SliceView]], slice_: SliceView) -> None:
    kept = gathered.get(slice_.key)
    if kept is None or slice_.generation > kept[0].generation:
        gathered[slice_.key] = [slice_]
    elif slice_.generation == kept[0].generation:
        kept.append(slice_)


def _may_concern(rule: DeviceTaintRule, raw: ResourceSlice) -> bool:
    selector = rule.spec.device_selector
    return (
        selector is not None
        and (selector.driver is None or selector.driver == raw.spec.driver)
        and (selector.pool is None or selector.pool == raw.spec.pool.name)
    )
