"""The guide of the fast search: look only where a solution can be, leave what is proven hopeless.

Nothing here may change which solution is found first, so a guide only does three things:
* name the devices that the candidate test could accept at all (masks from candidates.py, minus what is picked, minus
  what the constraints rule out by now), in order;
* end a branch that provably has no solution: too few devices for a later request, a state that failed before;
* skip a device when an equal one failed at the same place, and start an equal request behind its predecessor: the
  first solution has that form already.

All of it presumes that no error can be met on the way. ``guidable`` says when that is certain; otherwise the plain
search decides (spec/allocator.md 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubedra.allocation.attempt import Attempt
from kubedra.allocation.bounds import impossible
from kubedra.allocation.candidates import node_mask, value_masks
from kubedra.allocation.claims import MAX_DEVICES, Alternative, Ask, PreparedPod
from kubedra.allocation.columns import ValueSet
from kubedra.allocation.devices import bits_of
from kubedra.allocation.inventory import NodeView
from kubedra.allocation.kinds import KindTable, kinds_of_node
from kubedra.allocation.ledger import Ledger
from kubedra.allocation.search import Frame

# Remembering failures costs some microseconds a step; searches that end at once shall not pay for it.
REMEMBER_AFTER = 24


def node_masks(node: NodeView, ledger: Ledger, pod: PreparedPod, attempt: Attempt) -> dict[Ask, int] | None:
    """The devices each request could get on a node; None if a selector fails on one of them."""
    masks: dict[Ask, int] = {}
    for claim in pod.claims:
        for request in claim.requests:
            for alternative in request.alternatives:
                ask = alternative.ask
                if ask not in masks:
                    mask, failing = node_mask(node, ledger, ask, attempt.features)
                    if failing:
                        return None
                    masks[ask] = mask
    return masks


def may_overflow(pod: PreparedPod, everything: dict[Alternative, list[int]]) -> bool:
    """Whether some choice of alternatives asks for more devices than a claim may have.

    Upstream then leaves branches in an order of its own, so the plain search has the last word on the solution.
    """
    for claim in pod.claims:
        most = 0
        for request in claim.requests:
            most += max((len(everything[a]) if a.all_devices else a.count for a in request.alternatives), default=0)
        if most > MAX_DEVICES:
            return True
    return False


class FastGuide:
    """The guide for one attempt."""

    __slots__ = ("_attempt", "_everything", "_failed", "_frames", "_kinds", "_masks", "_values", "weight")

    def __init__(self, attempt: Attempt, masks: dict[Ask, int], everything: dict[Alternative, list[int]]) -> None:
        self._attempt = attempt
        self._masks = masks
        self._everything = everything
        self._failed: set[object] = set()
        self._frames = 0
        self._kinds: KindTable | None = None
        self._values: dict[str, dict[ValueSet, int]] = {}
        self.weight = 2

    # -- Guide --------------------------------------------------------------------------------------------------------

    def candidates(self, frame: Frame) -> Iterable[int]:
        """The devices worth a try, in order."""
        alternative = frame.alternative
        assert alternative is not None
        if frame.number == 0:
            frame.start = max(frame.start, self._start_behind_equal(frame, alternative))
        mask = self.live(frame.claim, alternative) >> frame.start << frame.start
        if mask.bit_count() < alternative.count - frame.number or not self._rest_possible(frame):
            return ()
        self._frames += 1
        if self._frames > REMEMBER_AFTER:
            kinds = self._kinds
            if kinds is None:
                kinds = self._kinds = kinds_of_node(self._attempt, self._masks, self._everything)
                self.weight = 20
            frame.key = self._key(frame, kinds)
            if frame.key in self._failed:
                frame.key = None
                return ()
            if frame.number == 0 and self._proven_hopeless(frame, alternative):
                self._failed.add(frame.key)
                frame.key = None
                return ()
            return self._one_of_each_kind(mask, frame, kinds)
        return bits_of(mask)

    def failed(self, frame: Frame, bit: int) -> None:
        """Remember the kind of a device that failed here."""
        kinds = self._kinds
        if kinds is not None:
            tried = frame.tried
            if not isinstance(tried, set):
                tried = frame.tried = set()
            tried.add(self._token(bit, kinds))

    def exhausted(self, frame: Frame) -> None:
        """Remember that the state in which this choice was reached has no solution."""
        if frame.key is not None:
            if len(self._failed) > 200_000:
                self._failed.clear()
            self._failed.add(frame.key)

    # -- what is left -------------------------------------------------------------------------------------------------

    def live(self, claim: int, alternative: Alternative) -> int:
        """The devices that a request could get now: not picked, not ruled out by a constraint."""
        attempt = self._attempt
        ask = alternative.ask
        mask = self._masks[ask]
        mask &= ~(attempt.claim_picked[claim] if ask.admin else attempt.picked[0])
        if alternative.constraints and mask:
            states = attempt.constraints[claim]
            constraints = attempt.pod.claims[claim].constraints
            for index in alternative.constraints:
                constraint, state = constraints[index], states[index]
                allowed = 0
                for values, devices in self.values(constraint.attribute, alternative).items():
                    if state is None or bool(values & state) != constraint.distinct:
                        allowed |= devices
                mask &= allowed
        return mask

    def values(self, attribute: str, alternative: Alternative) -> dict[ValueSet, int]:
        """The node's devices by the values that a constraint compares."""
        if alternative.ask.selection.derived:
            return self._derived_values(attribute, alternative)
        known = self._values.get(attribute)
        if known is None:
            attempt = self._attempt
            candidates = attempt.node.candidates
            if len(candidates) == 1:
                known = value_masks(candidates[0][0], attribute, attempt.features)
            else:
                known = {}
                for pool, offset in candidates:
                    for values, mask in value_masks(pool, attribute, attempt.features).items():
                        known[values] = known.get(values, 0) | mask << offset
            self._values[attribute] = known
        return known

    def _derived_values(self, attribute: str, alternative: Alternative) -> dict[ValueSet, int]:
        found: dict[ValueSet, int] = {}
        for bit in bits_of(self._masks[alternative.ask]):
            values = self._attempt.values(attribute, alternative, bit)
            if values:
                found[values] = found.get(values, 0) | 1 << bit
        return found

    def _rest_possible(self, frame: Frame) -> bool:
        """Whether every later request still has enough devices, each looked at by itself."""
        claims = self._attempt.pod.claims
        for claim in range(frame.claim, len(claims)):
            requests = claims[claim].requests
            for number in range(frame.request + 1 if claim == frame.claim else 0, len(requests)):
                if not any(self._possible(claim, alternative) for alternative in requests[number].alternatives):
                    return False
        return True

    def _proven_hopeless(self, frame: Frame, alternative: Alternative) -> bool:
        place = (frame.claim, frame.request, alternative, frame.number)
        return impossible(self._attempt, self, self._everything, *place) is not None

    def _possible(self, claim: int, alternative: Alternative) -> bool:
        if alternative.all_devices:
            return bool(self._everything[alternative])
        return self.live(claim, alternative).bit_count() >= alternative.count

    def _start_behind_equal(self, frame: Frame, alternative: Alternative) -> int:
        """Where to start a request that asks the same as the one before it."""
        requests = self._attempt.pod.claims[frame.claim].requests
        if frame.request == 0 or requests[frame.request].choice or requests[frame.request - 1].choice:
            return 0
        before = requests[frame.request - 1].alternatives[0]
        if (
            before.ask is not alternative.ask
            or before.constraints != alternative.constraints
            or before.count != alternative.count
            or before.all_devices
            or alternative.count == 0
        ):
            return 0
        first = self._attempt.picks[-alternative.count]
        device = self._attempt.devices[first.bit]
        shared = self._attempt.features.consumable_capacity and device.multi
        return first.bit if shared else first.bit + 1

    # -- equal devices, equal states ----------------------------------------------------------------------------------

    def _one_of_each_kind(self, mask: int, frame: Frame, kinds: KindTable) -> Iterator[int]:
        for bit in bits_of(mask):
            tried = frame.tried
            if isinstance(tried, set) and self._token(bit, kinds) in tried:
                continue
            yield bit

    def _token(self, bit: int, kinds: KindTable) -> object:
        kind = kinds.kind_of[bit]
        if kinds.shared_kinds >> kind & 1:
            return kind, tuple(sorted(self._attempt.consumed(bit).items())), self._attempt.shared[0] >> bit & 1
        return kind

    def _key(self, frame: Frame, kinds: KindTable) -> object:
        """The state in which a choice is reached, up to exchanging equal devices.

        Two states with the same key have solutions that map to each other: each kind has as many devices that are
        free, and as many of them ahead in the order of the current request.
        """
        attempt = self._attempt
        picked = attempt.picked[0]
        place = (frame.claim, frame.request, frame.index, frame.number, attempt.counts[frame.claim])
        if attempt.pod.has_admin:
            devices: object = (picked, tuple(attempt.claim_picked), frame.start)
        else:
            free = ~picked
            ahead = free >> frame.start << frame.start
            devices = tuple([((m & ahead).bit_count(), (m & free).bit_count()) for m in kinds.masks])
        shares: object = None
        if kinds.shared_kinds:
            shares = tuple(
                sorted(
                    (kinds.kind_of[bit], bit >= frame.start, tuple(sorted(attempt.consumed(bit).items())))
                    for bit in kinds.shared_bits
                    if attempt.shared[0] >> bit & 1
                )
            )
        counters = attempt.counter_state()
        return place, devices, shares, counters, tuple(attempt.constraints[frame.claim])
