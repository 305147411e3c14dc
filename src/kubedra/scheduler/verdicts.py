"""Why a node, or the whole cluster, can't take a pod: reasons as data, and upstream's sentence made from them.

Filters return `Rejection` (None means "fits"); what refuses a pod everywhere at once is a `Refusal`; what aborts an
attempt is an `AttemptError`. Only `aggregate` renders them, in the words of upstream's FitError.

Upstream: pkg/scheduler/framework/types.go (FitError), staging kube-scheduler/framework/interface.go (Status codes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PREEMPTION_NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_NODES = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class Rejection:
    """One node can't take the pod. `unresolvable`: removing pods from the node would not help either."""

    plugin: str
    reasons: tuple[str, ...]
    unresolvable: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """No node can take the pod, whatever it looks like: found before any node was looked at."""

    plugin: str
    message: str


@dataclass(frozen=True, slots=True)
class AttemptError:
    """The attempt ended in an error, which is not the same as "does not fit": it is tried again after a pause."""

    message: str
    ours: str = ""
    """What upstream's message lacks."""


def rejection(plugin: str, *reasons: str, unresolvable: bool = False) -> Rejection:
    """Make a rejection; written once per reason so that filters can return shared constants."""
    return Rejection(plugin, reasons, unresolvable)


def count_reasons(rejections: Iterable[Rejection]) -> str:
    """`1 Insufficient cpu, 2 node(s) were unschedulable`: counted and sorted as text, as upstream does."""
    counted: Counter[str] = Counter()
    for item in rejections:
        counted.update(item.reasons)
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counted.items()))


def preemption_sentence(outcomes: Iterable[str], nodes: int) -> str:
    """What upstream's DefaultPreemption says when it finds nobody to evict: one reason for each node."""
    counted = Counter(outcomes)
    missing = nodes - sum(counted.values())
    if missing > 0:
        counted[PREEMPTION_NOT_HELPFUL] += missing
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counted.items()))
    return f"preemption: 0/{nodes} nodes are available: {reasons}."


def without_victims(rejections: Iterable[Rejection]) -> list[str]:
    """The reasons for nodes on which nothing of a lower priority runs."""
    return [PREEMPTION_NOT_HELPFUL if item.unresolvable else NO_VICTIMS for item in rejections]


def aggregate(
    nodes: int,
    rejections: Mapping[str, Rejection],
    *,
    refusal: Refusal | None = None,
    after: str | None = None,
    preemption: str | None = None,
) -> str:
    """Upstream's whole message of a pod that fits nowhere; `after` is what the DRA part could do about it.

    `preemption` is what evicting pods could do, unless that is plain from the rejections.
    """
    text = f"0/{nodes} nodes are available:"
    if refusal is not None:
        text += f" {refusal.message}."
    elif rejections:
        text += f" {count_reasons(rejections.values())}."
    if after is not None:
        if preemption is None:
            preemption = preemption_sentence(without_victims(rejections.values()), nodes)
        text += f" {after}, {preemption}"
    return text
