"""The first node of many on which the claims of a pod fit, without trying the others.

Per ``Ask`` (what is asked of a single device) the finder keeps how many devices each node could give, as one number a
node and one bit mask over nodes for each number asked for. Events mark the nodes that changed; they are counted again
when somebody asks. Whole nodes are then ruled out by intersecting bit masks.
Nodes that pass the counting and still fail (constraints, counters) are compared by shape: what is free, where equal
values are, what is left of counters. A shape that failed once fails on every node. Which nodes failed is remembered for
pods that ask the same, until something changes on the node.

Nodes on which a selector fails always pass, so that the plain search decides there. The answer for a node is the one
that ``Allocator.allocate`` gives; the order of nodes is the caller's, by default that in which they were added.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.candidates import bits_of, node_mask
from kubedra.allocation.claims import Ask, PreparedPod
from kubedra.allocation.inventory import NodeView
from kubedra.allocation.outcomes import Allocated, AllocationError, DoesNotFit, Outcome
from kubedra.api.resource_v1 import ResourceClaim

# Nodes looked at between two yields of the steps.
_BATCH = 4


@dataclass(frozen=True, slots=True)
class Found:
    """The first node that fits, and how many were searched in vain before it."""

    node: str
    allocated: Allocated
    searched: int = 0


@dataclass(frozen=True, slots=True)
class NoNode:
    """No node fits. ``failed`` are the nodes whose own error kept them out (invalid pools)."""

    failed: tuple[tuple[str, AllocationError], ...] = ()


@dataclass(frozen=True, slots=True)
class Aborted:
    """An error that ends the attempt of the pod, met on this node."""

    node: str
    error: AllocationError


Finding = Found | NoNode | Aborted
# Node names in the order in which they are tried; a mask of node numbers (``Inventory.numbers_of``), which costs less
# for many nodes and tries them in the order of their numbers; or None for all.
Nodes: TypeAlias = Iterable[str] | int | None


class _Reader:
    """How far something has read the changes of inventory and ledger."""

    __slots__ = ("nodes_read", "pools_read")

    def __init__(self) -> None:
        self.nodes_read = -1
        self.pools_read = -1

    def forget(self, node: int) -> None:
        """Something changed on a node."""
        raise NotImplementedError

    def forget_all(self) -> None:
        """Something changed on every node."""
        raise NotImplementedError


class _Failures(_Reader):
    """The nodes on which pods that ask the same are known not to fit, as a mask."""

    __slots__ = ("nodes", "shapes")

    def __init__(self) -> None:
        super().__init__()
        self.nodes = 0
        self.shapes: set[object] = set()

    def forget(self, node: int) -> None:
        self.nodes &= ~(1 << node)

    def forget_all(self) -> None:
        self.nodes = 0


class _AskIndex(_Reader):
    """What one Ask could get on each node, by the node's number."""

    __slots__ = ("at_least", "counts", "failing", "known", "live", "masks", "special")

    def __init__(self) -> None:
        super().__init__()
        self.counts: list[int] = []
        self.masks: list[int] = []
        self.known = 0
        # Nodes on which a selector fails or a pool is invalid: counting says nothing about them.
        self.special = 0
        # Nodes that may have a device which passes the selectors, and on which a selector may fail: worked out from
        # the columns of all slices at once. A node that is not live needs no look.
        self.live = self.failing = -1
        # need -> nodes (of the known ones) that have as many
        self.at_least: dict[int, int] = {}

    def forget(self, node: int) -> None:
        bit = 1 << node
        self.known &= ~bit
        self.special &= ~bit
        self.live |= bit
        self.failing |= bit

    def forget_all(self) -> None:
        self.known = self.special = 0
        self.live = self.failing = -1

    def enter(self, node: int, mask: int, special: bool) -> None:
        count = mask.bit_count()
        if node >= len(self.counts):
            missing = node + 1 - len(self.counts)
            self.counts += [0] * missing
            self.masks += [0] * missing
        self.counts[node], self.masks[node] = count, mask
        bit = 1 << node
        self.known |= bit
        if special:
            self.special |= bit
        for need, nodes in self.at_least.items():
            self.at_least[need] = nodes | bit if count >= need else nodes & ~bit

    def enough(self, need: int) -> int:
        """The known nodes that have this many devices."""
        nodes = self.at_least.get(need)
        if nodes is None:
            nodes = 0
            for node in bits_of(self.known):
                if self.counts[node] >= need:
                    nodes |= 1 << node
            if len(self.at_least) >= 16:
                self.at_least.clear()
            self.at_least[need] = nodes
        return nodes


class Finder:
    """Finds nodes for pods. One per allocator; keeps its counts between pods."""

    def __init__(self, allocator: Allocator, limit: int = 64) -> None:
        self._allocator = allocator
        self._inventory = allocator.inventory
        self._ledger = allocator.ledger
        self._limit = limit
        self._indexes: dict[Ask, _AskIndex] = {}
        self._failures: dict[object, _Failures] = {}
        # How many devices nobody holds as a whole, whatever they are: rules full nodes out for selectors that are new.
        self._free = _AskIndex()

    def find(self, claims: Sequence[ResourceClaim] | PreparedPod, nodes: Nodes = None) -> Finding:
        """The first of the nodes (all by default) on which the claims fit."""
        steps = self.steps(claims, nodes)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]

    def steps(
        self, claims: Sequence[ResourceClaim] | PreparedPod, nodes: Nodes = None
    ) -> Generator[None, None, Finding]:
        """The same in steps: yields now and then."""
        searched = 0
        failed = []
        for node, outcome in self.outcomes(claims, nodes):
            if outcome is None:
                yield
                continue
            if isinstance(outcome, Allocated):
                return Found(node, outcome, searched)
            if isinstance(outcome, AllocationError):
                if not outcome.node_only:
                    return Aborted(node, outcome)
                failed.append((node, outcome))
            searched += 1
        return NoNode(tuple(failed))

    def outcomes(
        self, claims: Sequence[ResourceClaim] | PreparedPod, nodes: Nodes = None
    ) -> Generator[tuple[str, Outcome | None], None, None]:
        """The answers for the nodes that counting does not rule out, in order; (node, None) is a pause.

        The caller decides when it has seen enough.
        """
        pod = claims if isinstance(claims, PreparedPod) else self._allocator.prepare(claims)
        indexes = [(self._index(ask), ask, need) for ask, need in self._needs(pod)]
        failures = self._failures_of(pod) if indexes else _Failures()
        looked = 0
        for number in self._passing(nodes, indexes, failures.nodes):
            looked += 1
            if looked % _BATCH == 0:
                yield "", None
            name = self._inventory.name_of(number)
            view = self._inventory.node_view(name)
            if not self._enough(number, view, indexes):
                continue
            shape = self._shape(view, number, pod, indexes)
            if shape is not None and shape in failures.shapes:
                failures.nodes |= 1 << number
                continue
            outcome: Outcome | None = None
            steps = self._allocator.view_steps(view, pod)
            while outcome is None:
                try:
                    next(steps)
                    yield name, None
                except StopIteration as stop:
                    outcome = stop.value
            if isinstance(outcome, DoesNotFit):
                failures.nodes |= 1 << number
                if shape is not None:
                    failures.shapes.add(shape)
            yield name, outcome

    # -- counting -----------------------------------------------------------------------------------------------------

    def _needs(self, pod: PreparedPod) -> list[tuple[Ask, int]]:
        """How many devices every node must have for each Ask: none for those that have alternatives.

        A pod with a problem, or with a request for all devices, is not counted at all.
        """
        if any(isinstance(check, str) for check in pod.checks) or pod.has_all:
            return []
        needs: dict[Ask, int] = {}
        for claim in pod.claims:
            for request in claim.requests:
                for alternative in request.alternatives:
                    need = 0 if request.choice else alternative.count
                    needs[alternative.ask] = max(needs.get(alternative.ask, 0), need)
        return list(needs.items())

    def _passing(
        self, nodes: Nodes, indexes: list[tuple[_AskIndex, Ask, int]], failed: int
    ) -> Generator[int, None, None]:
        """The numbers of the nodes that are not ruled out by what is known now, in order."""
        special = 0
        ruled_out = 0
        free = self._free
        self._catch_up(free, None)
        special |= free.special
        for index, ask, need in indexes:
            special |= index.special | (index.failing & ~index.known)
            ruled_out |= index.known & ~index.enough(need)
            if need:
                ruled_out |= ~index.live
                if not ask.admin:
                    ruled_out |= free.known & ~free.enough(need)
        ruled_out = ruled_out & ~special | failed
        if nodes is None or isinstance(nodes, int):
            wanted = self._inventory.node_numbers() if nodes is None else nodes & self._inventory.node_numbers()
            yield from bits_of(wanted & ~ruled_out)
            return
        for name in nodes:
            number = self._inventory.number_of(name)
            if number >= 0 and not ruled_out >> number & 1:
                yield number

    def _enough(self, number: int, view: NodeView, indexes: list[tuple[_AskIndex, Ask, int]]) -> bool:
        """Whether a node must be searched: it has enough of everything, or counting says nothing about it."""
        enough, special = True, False
        if not self._free.known >> number & 1:
            self._free.enter(number, self._free_mask(view), bool(view.invalid))
        for index, ask, need in indexes:
            if not index.known >> number & 1:
                mask, failing = node_mask(view, self._ledger, ask, self._inventory.features)
                index.enter(number, mask, failing or bool(view.invalid))
            special = special or bool(index.special >> number & 1)
            enough = enough and index.counts[number] >= need
        return enough or special

    def _free_mask(self, view: NodeView) -> int:
        mask = 0
        for pool, offset in view.candidates:
            mask |= ((1 << len(pool.devices)) - 1 & ~pool.current(self._ledger).exclusive) << offset
        return mask

    def _index(self, ask: Ask) -> _AskIndex:
        """The counts for an Ask, brought up to date with all events."""
        index = self._indexes.pop(ask, None) or _AskIndex()
        self._indexes[ask] = index
        if len(self._indexes) > self._limit:
            del self._indexes[next(iter(self._indexes))]
        self._catch_up(index, (ask,))
        if index.live < 0:
            index.live, index.failing = self._inventory.live_nodes(ask.selection)
        return index

    def _failures_of(self, pod: PreparedPod) -> _Failures:
        """What is remembered for pods that ask the same, brought up to date."""
        key = tuple(
            (
                tuple((c.attribute, c.distinct) for c in claim.constraints),
                tuple(
                    (request.choice, tuple((a.ask, a.count, a.constraints) for a in request.alternatives))
                    for request in claim.requests
                ),
            )
            for claim in pod.claims
        )
        failures = self._failures.pop(key, None) or _Failures()
        if len(failures.shapes) > 20000:
            failures.shapes.clear()
        self._failures[key] = failures
        if len(self._failures) > self._limit:
            del self._failures[next(iter(self._failures))]
        self._catch_up(failures, {a.ask for c in pod.claims for r in c.requests for a in r.alternatives})
        return failures

    def _catch_up(self, reader: _Reader, asks: Collection[Ask] | None) -> None:
        """Make a reader forget the nodes on which something changed since it last looked."""
        inventory, ledger = self._inventory, self._ledger
        nodes_end = inventory.first_change + len(inventory.changes)
        pools_end = ledger.first_change + len(ledger.changes)
        if reader.nodes_read < inventory.first_change or reader.pools_read < ledger.first_change:
            reader.forget_all()
        else:
            for name in inventory.changes[reader.nodes_read - inventory.first_change :]:
                if not name:
                    reader.forget_all()
                    break
                number = inventory.number_of(name)
                if number >= 0:
                    reader.forget(number)
            for pool in set(ledger.changes[reader.pools_read - ledger.first_change :]):
                for number in self._nodes_of(pool, asks):
                    if number < 0:
                        reader.forget_all()
                        break
                    reader.forget(number)
        reader.nodes_read, reader.pools_read = nodes_end, pools_end

    def _nodes_of(self, pool: tuple[str, str], asks: Collection[Ask] | None) -> Iterable[int]:
        """The nodes that may see a pool; -1 stands for all."""
        inventory = self._inventory
        slices = inventory.pools.get(pool, {}).values()
        if any(not slice_.raw.spec.node_name for slice_ in slices):
            if asks is None or any(
                ask.selection.row(slice_).yes for slice_ in slices if slice_.devices for ask in asks
            ):
                return (-1,)
            return ()
        numbers = {inventory.number_of(slice_.raw.spec.node_name or "") for slice_ in slices}
        numbers.discard(-1)
        return numbers

    # -- shapes -------------------------------------------------------------------------------------------------------

    def _shape(
        self, view: NodeView, number: int, pod: PreparedPod, indexes: list[tuple[_AskIndex, Ask, int]]
    ) -> object:
        """What decides whether the pod fits on a node, up to names; None if that can't be told cheaply."""
        if not indexes:
            return None
        masks = []
        union = 0
        for index, ask, _ in indexes:
            if index.special >> number & 1 or ask.selection.derived:
                return None
            masks.append(index.masks[number])
            union |= index.masks[number]
        attributes = {c.attribute for claim in pod.claims for c in claim.constraints}
        patterns = tuple(view.pattern(attribute, self._inventory.features) for attribute in sorted(attributes))
        extra: list[object] = []
        for pool, offset in view.candidates:
            if not union >> offset & ((1 << len(pool.devices)) - 1):
                continue
            if pool.needs or pool.has_shared:
                state = pool.current(self._ledger)
                consumed = tuple(sorted((bit, tuple(sorted(used.items()))) for bit, used in state.consumed.items()))
                groups = tuple(sorted(state.groups.items(), key=lambda item: item[0]))
                extra.append((offset, pool.fingerprint(), state.left, groups, state.shared, consumed))
        return tuple(masks), patterns, tuple(extra)
