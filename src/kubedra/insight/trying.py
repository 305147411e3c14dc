"""Trying a change out: the allocator on changed claims first, and then the scheduler, who has the last word."""

from __future__ import annotations

from collections.abc import Sequence

from kubedra.allocation.claims import Alternative
from kubedra.allocation.waterfall import Waterfall
from kubedra.api.resource_v1 import ResourceClaim
from kubedra.insight.answers import Remedy
from kubedra.insight.changing import ClaimChange, full_name
from kubedra.insight.decision import Deadline, Decision, Question
from kubedra.insight.relaxing import Published
from kubedra.scheduler.cycle import Placed
from kubedra.scheduler.pods import PodInfo


class Trying:
    """What all who look for remedies share: one question, its waterfalls, and the time that is left."""

    def __init__(self, decision: Decision, question: Question, falls: Sequence[Waterfall], deadline: Deadline) -> None:
        self.decision = decision
        self.question = question
        self.falls = falls
        self.deadline = deadline
        self.claims = {full_name(c): c for claims, _ in question.groups for c in claims}
        self._published: dict[str, Published] = {}
        self._alternatives: dict[tuple[str, str], Alternative] = {}
        for claims, _ in question.groups:
            for claim in decision.allocator.prepare(claims).claims:
                for request in claim.requests:
                    for alternative in request.alternatives:
                        self._alternatives[claim.name, alternative.name] = alternative

    def remedy(self, code: str, text: str, change: ClaimChange, shown: str = "") -> Remedy | None:
        """The remedy if the pod fits with changed claims, else None."""
        if self.deadline.passed():
            return None
        if not self.decision.trial(self.question, change, deadline=self.deadline).fits:
            return None
        verdict = self.decision.place_with(self.question.pod, change)
        if not isinstance(verdict, Placed):
            return None
        return Remedy(code, text, verdict.node, shown, claims=change(self.question.claims))

    def place(self, pod: PodInfo) -> str:
        """The node that the scheduler finds now, or ""."""
        if self.deadline.passed():
            return ""
        verdict = self.decision.place(pod)
        return verdict.node if isinstance(verdict, Placed) else ""

    def alternative(self, fall: Waterfall) -> Alternative | None:
        """The prepared request that a waterfall is about."""
        return self._alternatives.get((fall.claim, fall.request))

    def class_devices(self, fall: Waterfall) -> Published:
        """What the devices of a request's class publish."""
        found = self._published.get(fall.class_name)
        if found is None:
            found = self._published[fall.class_name] = class_devices(self.decision, fall.class_name)
        return found

    def name_of(self, fall: Waterfall) -> str:
        """A request in a text; with its claim when there are several."""
        if len(self.claims) == 1:
            return f"request {fall.request!r}"
        return f"request {fall.request!r} of claim {fall.claim.rpartition('/')[2]}"

    def claim_of(self, fall: Waterfall) -> ResourceClaim | None:
        """The claim that a waterfall is about."""
        return self.claims.get(fall.claim)


def class_devices(decision: Decision, class_name: str) -> Published:
    """What the devices of a class publish."""
    inventory = decision.inventory
    device_class = inventory.classes.get(class_name)
    texts = tuple(s.cel.expression for s in (device_class.spec.selectors if device_class else ()) if s.cel is not None)
    selection = inventory.selections.of(texts, ())
    return Published((slice_, selection.row(slice_).yes) for slice_ in inventory.slices.values() if slice_.devices)
