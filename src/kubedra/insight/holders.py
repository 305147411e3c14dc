"""Who holds devices, in words: the pods of a claim, or the claim when no pod uses it."""

from __future__ import annotations

from kubedra.allocation.waterfall import Waterfall
from kubedra.insight.answers import shortened
from kubedra.insight.decision import Decision
from kubedra.insight.snapshots import Snapshot

MOST_HOLDERS = 3


def holder_text(snapshot: Snapshot, key: str) -> str:
    """``pod ns/name (claim …, for 3d)``, or the claim when no pod uses it."""
    claim = snapshot.claims_by_key.get(key)
    if claim is None:
        return f"claim {key}"
    meta = claim.metadata
    allocation = claim.status.allocation
    since = (allocation.allocation_timestamp if allocation is not None else "") or meta.creation_timestamp
    age = snapshot.age(since)
    if not claim.status.reserved_for:
        return f"claim {meta.namespace}/{meta.name}{f' (for {age})' if age else ''}"
    users = shortened([f"{c.resource.rstrip('s')} {meta.namespace}/{c.name}" for c in claim.status.reserved_for], 2)
    return f"{users} (claim {meta.name}{f', for {age}' if age else ''})"


def held_by(decision: Decision, fall: Waterfall) -> str:
    """``; held by …`` for the devices that a request could use, or nothing."""
    if not fall.holders:
        return ""
    return f"; held by {holders_text(decision.snapshot, fall)}"


def holders_text(snapshot: Snapshot, fall: Waterfall) -> str:
    """The first holders by name, the rest as a number: there may be thousands."""
    few = len(fall.holders) if len(fall.holders) <= MOST_HOLDERS + 1 else MOST_HOLDERS
    names = [holder_text(snapshot, key) for key, _ in fall.holders[:few]]
    rest = len(fall.holders) - few
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def is_used(snapshot: Snapshot, key: str) -> bool:
    """Whether a pod (or group of pods) uses the claim; True for one that can't be seen."""
    claim = snapshot.claims_by_key.get(key)
    return claim is None or bool(claim.status.reserved_for)
