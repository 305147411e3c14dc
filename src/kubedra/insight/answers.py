"""What ``why`` answers: data first, so that scripts get all of it and the text is only one way to show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kubedra.allocation.reasons import Reason
from kubedra.allocation.waterfall import Waterfall
from kubedra.api import resource_v1

# waits: something must change first. would-fit: the scheduler would place it now. runs, done: nothing to wait for.
State = Literal["waits", "would-fit", "prepares", "runs", "done"]


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike in what they have and in what stops the pod there."""

    nodes: tuple[str, ...]
    has: str
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change after which the pod fits: the scheduler's code was run on the changed objects."""

    code: str
    text: str
    node: str = ""
    change: str = ""
    """What to write, where it can be written down: a selector, a toleration."""
    claims: tuple[resource_v1.ResourceClaim, ...] = ()
    """The pod's claims as they would be, when they are what changes."""
    freed: tuple[str, ...] = ()
    """Claims that would have to go, by uid."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint of a claim: the largest group that satisfies it on one node."""

    claim: str
    attribute: str
    distinct: bool
    needed: int
    best: int
    node: str = ""
    value: str = ""
    lacking: tuple[str, ...] = ()
    """Drivers whose matching devices lack the attribute, with what they have instead."""


@dataclass(slots=True)
class Answer:
    """Why a pod or claim waits. ``reasons``: the first is the one to act on."""

    subject: str
    where: str
    state: State
    headline: str
    fits: bool
    reasons: list[Reason] = field(default_factory=list)
    requests: list[Waterfall] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    nodes: list[NodeGroup] = field(default_factory=list)
    remedies: list[Remedy] = field(default_factory=list)
    remedies_cut: bool = False
    """Whether the search for remedies ended because its time was over."""
    no_help: list[Reason] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    holders: dict[str, str] = field(default_factory=dict)
    """Who holds devices: ledger key of the claim to "claim ns/name (pod …, since …)"."""
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    """Requests (claim, request) that have another name for people: extended resources of containers."""
    version: str = ""

    @property
    def exit_code(self) -> int:
        """3 when the answer is no."""
        return 0 if self.fits else 3

    def to_tree(self) -> dict[str, Any]:
        """For scripts; the codes are stable (docs/reference/reason-codes.md)."""
        return {
            "subject": self.subject,
            "source": self.where,
            "kubernetesVersion": self.version,
            "state": self.state,
            "fits": self.fits,
            "headline": self.headline,
            "reasons": [_reason(reason) for reason in self.reasons],
            "requests": [self._request(fall) for fall in self.requests],
            "constraints": [
                {
                    "claim": c.claim,
                    "attribute": c.attribute,
                    "kind": "distinctAttribute" if c.distinct else "matchAttribute",
                    "needed": c.needed,
                    "best": c.best,
                    "node": c.node,
                    "value": c.value,
                    "lacking": list(c.lacking),
                }
                for c in self.constraints
            ],
            "nodes": [
                {"count": len(g.nodes), "nodes": list(g.nodes), "has": g.has, "code": g.code, "why": g.why}
                for g in self.nodes
            ],
            "remedies": [
                {"code": r.code, "text": r.text, "node": r.node, "change": r.change, "verified": True}
                for r in self.remedies
            ],
            "remediesComplete": not self.remedies_cut,
            "cannotHelp": [_reason(reason) for reason in self.no_help],
            "notes": self.notes,
            "notSeen": self.unseen,
        }

    def _request(self, fall: Waterfall) -> dict[str, Any]:
        stopped = fall.stopped_by()
        return {
            "claim": fall.claim,
            "request": fall.request,
            "deviceClass": fall.class_name,
            "needed": fall.needed or "all",
            "stoppedBy": stopped.code if stopped is not None else "",
            "steps": [
                {"code": s.code, "text": s.text, "devices": s.count, "bestNode": s.node, "onBestNode": s.best}
                for s in fall.steps
            ],
            "heldBy": [
                {"claim": self.holders[key], "devices": count} for key, count in fall.holders if key in self.holders
            ],
            "holders": len(fall.holders),
        }


def _reason(reason: Reason) -> dict[str, str]:
    return {"code": reason.code, "subject": reason.subject, "detail": reason.detail, "remedy": reason.remedy}


def shortened(names: Sequence[str], most: int = 3) -> str:
    """A list of names in one line: the first few, then how many more."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def plural(count: int, word: str) -> str:
    """``1 device``, ``2 devices``."""
    if count == 1:
        return f"1 {word}"
    return f"{count} {word}{'es' if word.endswith('s') else 's'}"
