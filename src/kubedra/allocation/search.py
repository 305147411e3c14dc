"""The search: depth first, first solution wins, in upstream's order.

One machine runs both searches. Plain, it looks at device after device and evaluates selectors when it gets there, so
it meets the same errors as upstream. With a ``Guide`` (fast.py) it only looks at devices the guide names and leaves
branches the guide proves hopeless; the solution found first stays the same.

The machine has a stack of its own instead of recursion, and is a generator: it hands control back every few hundred
device tests, so that whoever drives it can serve others meanwhile or give up. Giving up is not an answer: a search
that was cut off ends in an error which begins with "timed out".

Upstream counterpart: allocateOne.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from typing import Protocol

from kubedra.allocation.attempt import Attempt, Refusal
from kubedra.allocation.candidates import publishable, takes
from kubedra.allocation.claims import MAX_DEVICES, Alternative, PreparedClaim, PreparedPod
from kubedra.allocation.features import Features
from kubedra.allocation.inventory import NodeView
from kubedra.allocation.outcomes import AllocationFailure
from kubedra.allocation.selection import YES, Verdict

# Device tests between two yields: below 5 ms also when every test evaluates CEL.
BATCH = 200
NONE, PAUSE = -1, -2


class Guide(Protocol):
    """What can make a search faster without changing what it finds. ``weight``: what a choice costs, in steps."""

    weight: int

    def candidates(self, frame: Frame) -> Iterable[int]:
        """The devices worth a try for this pick, in order; none if the branch is hopeless."""
        ...

    def failed(self, frame: Frame, bit: int) -> None:
        """Everything after picking this device here failed."""
        ...

    def exhausted(self, frame: Frame) -> None:
        """No device led to a solution here."""
        ...


class Frame:
    """A choice to come back to: between alternatives (``number`` is -1) or for the number-th device of a request."""

    __slots__ = (
        "alternative",
        "bit",
        "claim",
        "index",
        "iterator",
        "key",
        "mark",
        "number",
        "request",
        "start",
        "tried",
    )

    def __init__(self, claim: int, request: int, index: int, alternative: Alternative | None, number: int) -> None:
        self.claim = claim
        self.request = request
        self.index = index
        self.alternative = alternative
        self.number = number
        self.start = 0
        self.bit = -1
        self.iterator: Iterator[int] = iter(())
        self.mark: tuple[int, int] = (0, 0)
        self.key: object = None
        self.tried: object = None


class NodeSelectable:
    """Answers "does this device pass the selectors of this request" for one node, lazily."""

    __slots__ = ("_answers", "_attempt", "_pod")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._answers: dict[tuple[Alternative, int], bool] = {}

    def test(self, claim: PreparedClaim, alternative: Alternative, bit: int) -> bool:
        """Whether the device is selectable; raises AllocationFailure when a selector fails on it."""
        key = (alternative, bit)
        known = self._answers.get(key)
        if known is None:
            known = self._answers[key] = self._test(claim, alternative, bit)
        return known

    def _test(self, claim: PreparedClaim, alternative: Alternative, bit: int) -> bool:
        attempt = self._attempt
        device = attempt.devices[bit]
        if not publishable(device, attempt.features):
            return False
        pool, offset = attempt.pool_of(bit)
        slice_, start = attempt.span(pool, bit - offset)
        selection = alternative.ask.selection
        verdict: Verdict = selection.verdict(slice_, bit - offset - start)
        if verdict is not YES:
            if verdict.error:
                raise AllocationFailure(
                    selection.describe_error(verdict, alternative.class_name, claim.name, alternative.name, device)
                )
            if not verdict.ok:
                return False
        mask = attempt.node.masked.get(offset)
        return mask is None or bool(mask >> (bit - offset) & 1)


def check_node(
    node: NodeView, pod: PreparedPod, attempt: Attempt, selectable: NodeSelectable
) -> dict[Alternative, list[int]]:
    """The checks before the search, in upstream's order; returns the devices of each All request.

    Raises AllocationFailure with the first problem.
    """
    everything: dict[Alternative, list[int]] = {}
    for check in pod.checks:
        if isinstance(check, str):
            raise AllocationFailure(check)
        if isinstance(check, PreparedClaim):
            least = sum(
                min(len(everything[a]) if a.all_devices else a.count for a in request.alternatives)
                for request in check.requests
            )
            if least > MAX_DEVICES:
                raise AllocationFailure(
                    f"claim {check.name}: number of requested devices {least} exceeds the claim limit of {MAX_DEVICES}"
                )
            continue
        claim, alternative = check
        for pool in node.pools:
            if pool.state != "complete":
                status = "being updated" if pool.state == "incomplete" else "invalid"
                raise AllocationFailure(
                    f"claim {claim.name}, request {alternative.short_name}: asks for all devices, but resource pool "
                    f"{pool.key[0]}/{pool.key[1]} is currently {status}"
                )
        everything[alternative] = [
            bit
            for bit in range(len(attempt.devices))
            if selectable.test(claim, alternative, bit) and _serves(attempt, bit, alternative)
        ]
    return everything


def _serves(attempt: Attempt, bit: int, alternative: Alternative) -> bool:
    if not attempt.features.consumable_capacity:
        return True
    if attempt.features.all_counts_full_devices:
        # Could it serve the request were it free? One that is full now makes the request fail.
        return takes(attempt.devices[bit], alternative.ask, attempt.features) is not None
    return attempt.has_capacity(bit, alternative.ask)


class Search:
    """One search on one node. ``steps`` counts device tests."""

    __slots__ = ("attempt", "budget", "everything", "guide", "pod", "selectable", "steps")

    def __init__(
        self,
        attempt: Attempt,
        selectable: NodeSelectable,
        everything: dict[Alternative, list[int]],
        guide: Guide | None,
        budget: int,
    ) -> None:
        self.attempt = attempt
        self.pod = attempt.pod
        self.selectable = selectable
        self.everything = everything
        self.guide = guide
        self.budget = budget
        self.steps = 0

    def run(self) -> Generator[None, None, bool]:
        """Search; returns whether a solution was found (it is in the attempt's picks)."""
        stack: list[Frame] = []
        claims = self.pod.claims
        counts = self.attempt.counts
        claim = request = number = start = 0
        index = -1
        paused = 0
        while True:
            # Down: find out what has to be decided next.
            overflow = -1
            while True:
                if claim >= len(claims):
                    return True
                requests = claims[claim].requests
                if request >= len(requests):
                    claim, request, index, number, start = claim + 1, 0, -1, 0, 0
                    continue
                prepared = requests[request]
                if index < 0:
                    if prepared.choice:
                        stack.append(Frame(claim, request, -1, None, -1))
                        break
                    index = 0
                alternative = prepared.alternatives[index]
                need = self.need(alternative)
                if number >= need:
                    if need == 0 and alternative.all_devices:
                        break
                    request, index, number, start = request + 1, -1, 0, 0
                    continue
                if counts[claim] + need - number > MAX_DEVICES:
                    overflow = claim
                    break
                frame = Frame(claim, request, index, alternative, number)
                frame.mark = self.attempt.mark()
                frame.start = start
                frame.iterator = iter(self._candidates(frame))
                stack.append(frame)
                break
            # Up: take the next option of the innermost choice that has one.
            while True:
                if not stack:
                    return False
                frame = stack[-1]
                if overflow >= 0:
                    # Too many devices for the claim: other devices don't help, another alternative may.
                    more = frame.alternative is None and frame.index + 1 < len(
                        claims[frame.claim].requests[frame.request].alternatives
                    )
                    if frame.claim == overflow and not more:
                        if frame.alternative is not None:
                            self.attempt.undo(frame.mark)
                        stack.pop()
                        continue
                    overflow = -1
                if frame.alternative is None:
                    frame.index += 1
                    alternatives = claims[frame.claim].requests[frame.request].alternatives
                    if self.guide is not None:
                        # An alternative that asks the same as a failed one fails as well.
                        while frame.index < len(alternatives) and alternatives[frame.index].repeats:
                            frame.index += 1
                    if frame.index >= len(alternatives):
                        stack.pop()
                        continue
                    claim, request, index, number, start = frame.claim, frame.request, frame.index, 0, 0
                    break
                if frame.bit >= 0:
                    self.attempt.undo(frame.mark)
                    if self.guide is not None:
                        self.guide.failed(frame, frame.bit)
                    frame.bit = -1
                bit = self._advance(frame)
                if bit == PAUSE or self.steps - paused >= BATCH:
                    paused = self.steps
                    if self.steps > self.budget:
                        raise AllocationFailure(
                            f"timed out trying to allocate devices: stopped after {self.steps} steps", timed_out=True
                        )
                    yield
                if bit == PAUSE:
                    continue
                if bit == NONE:
                    if self.guide is not None:
                        self.guide.exhausted(frame)
                    stack.pop()
                    continue
                frame.bit = bit
                claim, request, index = frame.claim, frame.request, frame.index
                number, start = frame.number + 1, bit + 1
                break

    def need(self, alternative: Alternative) -> int:
        """How many devices an alternative takes on this node."""
        return len(self.everything[alternative]) if alternative.all_devices else alternative.count

    def _candidates(self, frame: Frame) -> Iterable[int]:
        alternative = frame.alternative
        assert alternative is not None
        if alternative.all_devices:
            # All devices are fixed; the order of picking them does not matter.
            bits = self.everything[alternative]
            return bits[frame.number : frame.number + 1]
        if self.guide is not None:
            # Guiding costs more than testing a device: the budget is one of time, after all.
            self.steps += self.guide.weight
            return self.guide.candidates(frame)
        return range(frame.start, len(self.attempt.devices))

    def _advance(self, frame: Frame) -> int:
        """Pick the next device of a frame; NONE if there is none, PAUSE to be called again."""
        attempt, alternative, claim = self.attempt, frame.alternative, frame.claim
        assert alternative is not None
        ask = alternative.ask
        plain = self.guide is None and not alternative.all_devices
        limit = self.steps + BATCH
        for bit in frame.iterator:
            if self.steps >= limit:
                frame.iterator = _again(bit, frame.iterator)
                return PAUSE
            self.steps += 1
            if plain:
                if attempt.in_use(bit, claim, ask):
                    continue
                if not self.selectable.test(self.pod.claims[claim], alternative, bit):
                    continue
                if not attempt.has_capacity(bit, ask):
                    continue
            refusal = attempt.pick(bit, claim, alternative)
            if not refusal:
                return bit
            if refusal is Refusal.CONSTRAINT and alternative.all_devices:
                raise AllocationFailure(
                    f"claim {self.pod.claims[claim].name}, request {alternative.short_name}: cannot add device "
                    f"{attempt.devices[bit]} because a claim constraint would not be satisfied"
                )
        return NONE


def _again(bit: int, rest: Iterator[int]) -> Iterator[int]:
    return chain((bit,), rest)


def make_search(node: NodeView, pod: PreparedPod, attempt: Attempt, guide: Guide | None, budget: int) -> Search:
    """Run the checks of a node and set up its search. Raises AllocationFailure."""
    selectable = NodeSelectable(attempt)
    return Search(attempt, selectable, check_node(node, pod, attempt, selectable), guide, budget)


__all__ = ["BATCH", "Features", "Frame", "Guide", "NodeSelectable", "Search", "check_node", "make_search"]
