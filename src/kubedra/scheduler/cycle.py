"""One attempt to place one pod: filters, scores, claims, and a node or the reason why not.

A generator over steps: whoever drives it decides when others get a turn. While it runs, view, inventory and ledger
must not be changed by anybody else (the shell lets events wait), which is what upstream's snapshot is for.

Order of the search. The filters of single nodes come from `candidates`. Where nothing else tells nodes apart, the
claims are tried on the best node first and the first that fits wins: the same node as if all had been tried. Where
scores depend on all feasible nodes (preferences, neighbours, alternatives of claims), or there are few, all of them
are tried, up to upstream's adaptive share.

Upstream: schedulePod and prioritizeNodes in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from kubedra.scheduler import filters, preemption
from kubedra.scheduler.candidates import CandidateCache, Candidates, enough_nodes
from kubedra.scheduler.dra import CANNOT_ALLOCATE, DraState, DynamicResources, Rescue, Reserved
from kubedra.scheduler.hints import ANYTHING
from kubedra.scheduler.nodes import NodeInfo
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.scores import WEIGHTS, neighbours, normalize, preferences
from kubedra.scheduler.unsupported import PLUGIN as UNSUPPORTED_PLUGIN
from kubedra.scheduler.unsupported import unsupported_field
from kubedra.scheduler.verdicts import NO_NODES, AttemptError, Refusal, Rejection, aggregate
from kubedra.scheduler.view import ClusterView


@dataclass(frozen=True, slots=True)
class Placed:
    """The pod goes to this node; its devices are taken and the pod is assumed."""

    node: str
    reserved: tuple[Reserved, ...]


@dataclass(frozen=True, slots=True)
class NoPlace:
    """The pod fits nowhere: upstream's message, who rejected it, and what may be done about it."""

    message: str
    plugins: frozenset[str]
    rejections: dict[str, Rejection]
    state: DraState | None = None
    rescue: Rescue | None = None
    preemptable: bool = False
    """Removing pods with a lower priority might have helped; we never do."""


Verdict = Placed | NoPlace | AttemptError


@dataclass(slots=True)
class _Search:
    """What is found out about the nodes."""

    pod: PodInfo
    candidates: Candidates
    state: DraState | None
    checks: list[filters.Filter]
    rejections: dict[str, Rejection] = field(default_factory=dict)


class Cycle:
    """Attempts of one scheduler; remembers where the next walk over the nodes starts."""

    def __init__(self, view: ClusterView, dra: DynamicResources, *, exhaustive_nodes: int = 16) -> None:
        self.view = view
        self.dra = dra
        dra.declares = view.declares
        self._cache = CandidateCache(view)
        self._exhaustive = exhaustive_nodes
        self._start = 0

    def place(self, pod: PodInfo, now: datetime) -> Generator[None, None, Verdict]:
        """Find a node for the pod; when found, the pod is assumed there and its devices are taken."""
        total = len(self.view.nodes)
        problem = unsupported_field(pod.pod)
        if problem is not None:
            return NoPlace(problem, frozenset((UNSUPPORTED_PLUGIN,)), {})
        if not total:
            return NoPlace(NO_NODES, frozenset((ANYTHING,)), {})
        state = self.dra.prepare(pod, now)
        if isinstance(state, AttemptError):
            return AttemptError(f'running "DynamicResources" prefilter plugin: {state.message}')
        if isinstance(state, Refusal):
            rescue = self.dra.rescue(None)
            after = rescue if isinstance(rescue, str) else rescue.message
            message = aggregate(total, {}, refusal=state, after=after)
            return NoPlace(message, frozenset((state.plugin,)), {})
        candidates = self._cache.of(pod, self.dra.extended.bridged(pod))
        yield from candidates.refresh()
        search = _Search(pod, candidates, state, filters.placement(pod, self.view))
        chosen = yield from self._choose(search)
        if isinstance(chosen, AttemptError):
            return chosen
        if chosen is None:
            return (yield from self._no_place(search, total))
        return self._settle(search, chosen)

    # --- choosing -------------------------------------------------------------------------------------

    def _choose(self, search: _Search) -> Generator[None, None, str | AttemptError | None]:
        pod, candidates, view = search.pod, search.candidates, self.view
        start = self._start % max(len(view.nodes), 1)
        equal = (
            not search.checks
            and not view.nodes_with_soft_taints
            and not preferences.preferred_terms(pod)
            and not neighbours.matters(pod, view)
        )
        many = len(candidates.scores) > self._exhaustive
        if equal and (search.state is None or many):
            return (yield from self._first(search, candidates.ranked(start)))
        return (yield from self._best(search, candidates.walk(start)))

    def _first(self, search: _Search, names: Iterator[str]) -> Generator[None, None, str | AttemptError | None]:
        """The first that fits, in an order in which nothing later can be better."""
        state = search.state
        if state is None:
            return next(names, None)
        wanted = self.dra.best_score(state) if state.prioritized else 0
        found: list[str] = []
        enough = enough_nodes(len(self.view.nodes))
        for item in self._answers(search, state, names):
            if item is None:
                yield
                continue
            name, answer = item
            if isinstance(answer, AttemptError):
                return answer
            if answer is not None:
                search.rejections[name] = answer
                continue
            found.append(name)
            if len(found) >= enough or not wanted or self.dra.score(state, name) >= wanted:
                break
        if not found:
            # Those that were not even asked were ruled out by counting devices.
            for name in search.candidates.scores:
                search.rejections.setdefault(name, CANNOT_ALLOCATE)
            return None
        return found[0] if len(found) == 1 else self._rank(search, found)

    def _answers(
        self, search: _Search, state: DraState, names: Iterator[str]
    ) -> Iterator[tuple[str, Rejection | AttemptError | None] | None]:
        """The answers about nodes in order, None to pause; all nodes at once where the claims allow it."""
        if self.dra.is_plain(state):
            yield from self.dra.search(state, names)
            return
        for name in names:
            steps = self.dra.filter(state, self.view.nodes[name])
            while True:
                try:
                    next(steps)
                except StopIteration as stop:
                    yield name, stop.value
                    break
                yield None
            yield None

    def _best(self, search: _Search, names: Iterator[str]) -> Generator[None, None, str | AttemptError | None]:
        """The best of those that fit, all of them looked at (or enough, in a large cluster)."""
        feasible: list[str] = []
        enough = enough_nodes(len(self.view.nodes))
        for count, name in enumerate(names):
            if count % 16 == 15:
                yield
            node = self.view.nodes[name]
            rejected = _first_rejection(search.checks, node)
            if rejected is not None:
                search.rejections[name] = rejected
                continue
            if search.state is not None:
                answer = yield from self._claims(search, search.state, node)
                if isinstance(answer, AttemptError):
                    return answer
                if answer is not None:
                    continue
            feasible.append(name)
            if len(feasible) >= enough:
                break
        if len(feasible) <= 1:
            return feasible[0] if feasible else None
        return self._rank(search, feasible)

    def _claims(
        self, search: _Search, state: DraState, node: NodeInfo
    ) -> Generator[None, None, Rejection | AttemptError | None]:
        answer = yield from self.dra.filter(state, node)
        if isinstance(answer, Rejection):
            search.rejections[node.name] = answer
        return answer

    def _rank(self, search: _Search, names: list[str]) -> str:
        """The name with the highest total; the first of them when several have it."""
        pod, view = search.pod, self.view
        nodes = [view.nodes[name] for name in names]
        totals = {name: search.candidates.scores[name] for name in names}
        if view.nodes_with_soft_taints or preferences.preferred_terms(pod):
            _add(totals, preferences.score(pod, nodes))
        if neighbours.matters(pod, view):
            _add(totals, neighbours.score(pod, nodes, view))
        if search.state is not None and search.state.prioritized:
            raw = {name: self.dra.score(search.state, name) for name in names}
            weight = WEIGHTS["DynamicResources"]
            _add(totals, {name: weight * value for name, value in normalize(raw).items()})
        return max(names, key=totals.__getitem__)

    # --- ending ---------------------------------------------------------------------------------------

    def _settle(self, search: _Search, name: str) -> Verdict:
        reserved: tuple[Reserved, ...] = ()
        if search.state is not None:
            taken = self.dra.reserve(search.state, name)
            if isinstance(taken, AttemptError):
                return taken
            reserved = taken
        self.view.assume(search.pod, name)
        self._start = search.candidates.place_of(name) + 1
        return Placed(name, reserved)

    def _no_place(self, search: _Search, total: int) -> Generator[None, None, NoPlace]:
        rejections = {**search.candidates.rejected, **search.rejections}
        rescue = self.dra.rescue(search.state)
        after = rescue if isinstance(rescue, str) else rescue.message
        sentence: str | None = None
        preemptable = False
        if any(not item.unresolvable for item in rejections.values()):
            sentence = yield from self._preemption(search, rejections)
            preemptable = sentence is None
        message = aggregate(total, rejections, after=None if preemptable else after, preemption=sentence)
        return NoPlace(
            message,
            frozenset(item.plugin for item in rejections.values()),
            rejections,
            search.state,
            None if isinstance(rescue, str) else rescue,
            preemptable,
        )

    def _preemption(self, search: _Search, rejections: dict[str, Rejection]) -> Generator[None, None, str | None]:
        pod, state = search.pod, search.state
        check = filters.local(pod, self.dra.extended.bridged(pod))

        def claims(node: NodeInfo) -> Generator[None, None, Rejection | AttemptError | None]:
            if state is None:
                return None
            return (yield from self.dra.filter(state, node))

        return (yield from preemption.explain(pod, self.view, rejections, check, claims))


def _first_rejection(checks: Iterable[filters.Filter], node: NodeInfo) -> Rejection | None:
    for check in checks:
        found = check(node)
        if found is not None:
            return found
    return None


def _add(totals: dict[str, int], more: dict[str, int]) -> None:
    for name, value in more.items():
        totals[name] += value
