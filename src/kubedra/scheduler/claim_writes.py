"""The writes that make a decision about a claim true, as patches; and what forbids them.

Pure: each function looks at the newest version of a claim and says what to send, or why it can't be. The shell sends
it with the claim's resource version as a precondition and asks again after a conflict.

Upstream: bindClaim, Unreserve and PostFilter in plugins/dynamicresources/dynamicresources.go. Not copied: a missing
allocationTimestamp of a claim that is allocated already is left alone (setting it is refused as immutable, which kept
such pods pending for ever), its missing finalizer is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubedra.api.codec import to_tree
from kubedra.api.resource_v1 import AllocationResult, ResourceClaim

FINALIZER = "resource.kubernetes.io/delete-protection"


@dataclass(frozen=True, slots=True)
class Refused:
    """The claim does not allow it any more."""

    message: str


@dataclass(frozen=True, slots=True)
class Consumer:
    """The pod that a claim is to be reserved for."""

    name: str
    uid: str


def version_of(claim: ResourceClaim) -> int:
    """The claim's resource version as a number."""
    text = claim.metadata.resource_version
    return int(text) if text.isdigit() else 0


def is_reserved_for(claim: ResourceClaim, uid: str) -> bool:
    """Whether the pod with that uid has reserved the claim."""
    return any(consumer.uid == uid for consumer in claim.status.reserved_for)


def may_bind(claim: ResourceClaim, uid: str, allocation: AllocationResult | None) -> Refused | None:
    """Check that the claim still is the one that the decision was made for."""
    name = f"{claim.metadata.namespace}/{claim.metadata.name}"
    if claim.metadata.deletion_timestamp or claim.metadata.uid != uid:
        return Refused(f"claim {name} got deleted in the meantime")
    if allocation is not None and claim.status.allocation is not None:
        return Refused(f"claim {name} got allocated elsewhere in the meantime")
    if allocation is None and claim.status.allocation is None:
        return Refused(f"claim {name} got deallocated elsewhere in the meantime")
    return None


def protect(claim: ResourceClaim) -> dict[str, Any] | None:
    """Add the finalizer that keeps an allocated claim; None when it is there."""
    if FINALIZER in claim.metadata.finalizers:
        return None
    return {"metadata": {**_precondition(claim), "finalizers": [*claim.metadata.finalizers, FINALIZER]}}


def reserve(
    claim: ResourceClaim, consumer: Consumer, allocation: AllocationResult | None, timestamp: str
) -> dict[str, Any]:
    """Reserve the claim for the pod and, for a fresh allocation, write it; `timestamp` "" writes none."""
    entry = {"resource": "pods", "name": consumer.name, "uid": consumer.uid}
    status: dict[str, Any] = {"reservedFor": [*(to_tree(c) for c in claim.status.reserved_for), entry]}
    if allocation is not None:
        status["allocation"] = to_tree(allocation)
        if timestamp:
            status["allocation"]["allocationTimestamp"] = timestamp
    return {"metadata": _precondition(claim), "status": status}


def unreserve(claim: ResourceClaim, uid: str) -> dict[str, Any]:
    """Take the pod's reservation back (a strategic merge patch: other reservations stay)."""
    return {
        "metadata": {"uid": claim.metadata.uid},
        "status": {"reservedFor": [{"$patch": "delete", "uid": uid}]},
    }


def deallocate(claim: ResourceClaim) -> dict[str, Any]:
    """Give the claim's devices back."""
    return {
        "metadata": _precondition(claim),
        "status": {"allocation": None, "reservedFor": None, "devices": None},
    }


def release(claim: ResourceClaim) -> dict[str, Any] | None:
    """Remove the finalizer so that the claim can go; None when there is none."""
    if FINALIZER not in claim.metadata.finalizers:
        return None
    rest = [name for name in claim.metadata.finalizers if name != FINALIZER]
    return {"metadata": {**_precondition(claim), "finalizers": rest or None}}


def may_deallocate(claim: ResourceClaim, uid: str) -> bool:
    """Whether nobody but this pod would miss the allocation."""
    reserved = claim.status.reserved_for
    return not reserved or (len(reserved) == 1 and reserved[0].uid == uid)


def _precondition(claim: ResourceClaim) -> dict[str, Any]:
    return {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version}
