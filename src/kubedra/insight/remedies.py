"""What would help a pod that does not fit, each tried out before it is named, and what can't help.

A remedy is a changed claim, a changed pod, or a changed cluster on which the scheduler's code finds a place. The
mildest and cheapest to try come first; the search ends when its time is over and then says so. Nothing is guessed:
what could not be verified is not said.

Upstream has no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubedra.allocation.reasons import Reason
from kubedra.insight import claim_remedies, cluster_remedies
from kubedra.insight.answers import Remedy
from kubedra.insight.decision import Decision, Question
from kubedra.insight.trying import Trying

MOST_REMEDIES = 6
_FREEING = frozenset(("free-device", "move-pod", "free-unused-claim"))


def find_remedies(trying: Trying) -> list[Remedy]:
    """The remedies, the mildest first."""
    selectors = claim_remedies.selector_remedies(trying)
    # An error of a selector keeps the pod from every node, whatever is free there.
    sources = [
        selectors,
        *(
            ()
            if trying.question.failed
            else (
                claim_remedies.toleration_remedies(trying),
                cluster_remedies.freeing_remedies(trying),
                claim_remedies.capacity_remedies(trying),
                claim_remedies.count_remedies(trying),
                claim_remedies.constraint_remedies(trying),
                cluster_remedies.node_remedies(trying),
                cluster_remedies.new_node_remedies(trying),
            )
        ),
    ]
    out: list[Remedy] = []
    for source in sources:
        for remedy in source:
            if all(remedy.text != other.text for other in out):
                out.append(remedy)
            if len(out) >= MOST_REMEDIES:
                return out
        if trying.deadline.passed():
            return out
    return out or list(claim_remedies.dropped_selectors(trying))


def no_help(decision: Decision, question: Question, remedies: Sequence[Remedy], cut: bool) -> list[Reason]:
    """What people try in vain."""
    codes = {remedy.code for remedy in remedies}
    out = []
    if decision.ledger.claims():
        detail = "pods are never preempted to free devices; a device is free only when the pods that use it have ended"
        out.append(Reason("preemption", "a higher priority", detail))
    if cut or question.failed or not question.nodes:
        return out
    if decision.ledger.claims() and not codes & _FREEING:
        detail = "it would not fit on any node even if all devices were free"
        out.append(Reason("freeing", "ending other pods", detail))
    views = [decision.inventory.node_view(name) for name in question.nodes[:64]]
    published = any(view.candidates for view in views) and not any(view.incomplete or view.invalid for view in views)
    if published and "add-node" not in codes:
        out.append(Reason("adding-nodes", "more nodes like these", "it would not fit on them either"))
    return out
