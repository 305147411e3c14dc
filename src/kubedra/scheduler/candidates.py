"""The nodes that could take a pod, best first, kept between pods instead of being worked out for each.

Pods of one shape (`PodInfo.shape`: same requests, selectors, tolerations, ports) get the same answer from the filters
of single nodes, and the same resource scores. So both are kept per shape and node, and only nodes that changed since
are asked again: a pod costs what the pods before it changed, not the size of the cluster. That looks at every node,
which upstream avoids by sampling; the rotation of the starting point is kept, so equal nodes are used in turn.

Ties: of equally good nodes the first one in the walk wins, and the walk starts behind the node chosen last.

Upstream counterpart: findNodesThatFitPod and nextStartNodeIndex in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Generator, Iterator

from kubedra.scheduler import filters
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.scores import node_resources
from kubedra.scheduler.verdicts import Rejection
from kubedra.scheduler.view import ClusterView

SHAPES_KEPT = 32
NODES_A_STEP = 64
MIN_FEASIBLE_NODES = 100
MIN_PERCENTAGE = 5


def enough_nodes(total: int) -> int:
    """How many feasible nodes are compared when each must be asked in full: upstream's adaptive share."""
    if total < MIN_FEASIBLE_NODES:
        return total
    share = max(50 - total // 125, MIN_PERCENTAGE)
    return max(total * share // 100, MIN_FEASIBLE_NODES)


class Candidates:
    """Answers of the local filters for one shape of pod."""

    def __init__(self, pod: PodInfo, bridged: frozenset[str], view: ClusterView) -> None:
        self._pod = pod
        self._view = view
        self._check = filters.local(pod, bridged)
        self._structure = -1
        self._sequence = -1
        self._places: dict[str, int] = {}
        self._names: list[str] = []
        self.rejected: dict[str, Rejection] = {}
        self.scores: dict[str, int] = {}
        """Resource scores of the nodes that passed."""
        self._buckets: dict[int, list[int]] = {}

    def __repr__(self) -> str:
        return f"<Candidates {len(self.scores)} of {len(self._names)}>"

    def refresh(self) -> Generator[None, None, None]:
        """Ask the nodes that changed; yields every few nodes."""
        view = self._view
        changed = view.changed_since(self._sequence) if self._structure == view.structure else None
        if changed is None:
            self._names = list(view.order())
            self._places = {name: place for place, name in enumerate(self._names)}
            self.rejected.clear()
            self.scores.clear()
            self._buckets.clear()
            changed = self._names
        for count, name in enumerate(dict.fromkeys(changed)):
            self._ask(name)
            if count % NODES_A_STEP == NODES_A_STEP - 1:
                yield
        self._structure, self._sequence = view.structure, view.sequence

    def ranked(self, start: int) -> Iterator[str]:
        """The nodes that passed, best resource score first, equal ones from place `start` on and round."""
        for score in sorted(self._buckets, reverse=True):
            places = self._buckets[score]
            turn = bisect_left(places, start)
            for place in places[turn:]:
                yield self._names[place]
            for place in places[:turn]:
                yield self._names[place]

    def walk(self, start: int) -> Iterator[str]:
        """The nodes that passed, in the order of the walk from place `start` on."""
        for name in (*self._names[start:], *self._names[:start]):
            if name in self.scores:
                yield name

    def place_of(self, name: str) -> int:
        """Where a node stands in the walk."""
        return self._places[name]

    def _ask(self, name: str) -> None:
        node = self._view.nodes.get(name)
        place = self._places.get(name)
        if node is None or place is None:
            return
        before = self.scores.pop(name, None)
        if before is not None:
            places = self._buckets[before]
            del places[bisect_left(places, place)]
            if not places:
                del self._buckets[before]
        rejected = self._check(node)
        if rejected is not None:
            self.rejected[name] = rejected
            return
        self.rejected.pop(name, None)
        score = node_resources.score(self._pod, node)
        self.scores[name] = score
        insort(self._buckets.setdefault(score, []), place)


class CandidateCache:
    """Candidates of the shapes seen last."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._shapes: OrderedDict[tuple[bytes, frozenset[str]], Candidates] = OrderedDict()

    def of(self, pod: PodInfo, bridged: frozenset[str]) -> Candidates:
        """The candidates for pods like this one; `refresh` them before use."""
        key = (pod.shape, bridged)
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = Candidates(pod, bridged, self._view)
            if len(self._shapes) > SHAPES_KEPT:
                self._shapes.popitem(last=False)
        else:
            self._shapes.move_to_end(key)
        return found
