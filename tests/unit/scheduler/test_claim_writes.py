"""What is sent to the API server about claims, and what is not sent any more."""

from __future__ import annotations

from kubedra.scheduler import claim_writes
from kubedra.scheduler.claim_writes import FINALIZER, Consumer, Refused
from tests.unit.scheduler.making import allocated_on, claim

PRECONDITION = {"uid": "uid-c", "resourceVersion": "1"}
FREE = claim("c")
TAKEN = claim("c", status=allocated_on("n", "x", reserved=("q",)))


def test_a_fresh_allocation_is_written_with_its_reservation() -> None:
    allocation = TAKEN.status.allocation
    patch = claim_writes.reserve(FREE, Consumer("p", "uid-p"), allocation, "2026-01-01T00:00:00Z")
    assert patch["metadata"] == PRECONDITION
    assert patch["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "uid-p"}]
    assert patch["status"]["allocation"]["allocationTimestamp"] == "2026-01-01T00:00:00Z"
    assert patch["status"]["allocation"]["devices"]["results"][0]["device"] == "x"


def test_the_timestamp_of_an_allocated_claim_is_left_alone() -> None:
    patch = claim_writes.reserve(TAKEN, Consumer("p", "uid-p"), None, "2026-01-01T00:00:00Z")
    assert patch["status"] == {
        "reservedFor": [
            {"resource": "pods", "name": "q", "uid": "uid-q"},
            {"resource": "pods", "name": "p", "uid": "uid-p"},
        ]
    }


def test_the_finalizer_is_added_once() -> None:
    assert claim_writes.protect(FREE) == {"metadata": {**PRECONDITION, "finalizers": [FINALIZER]}}
    protected = claim("c", metadata={"finalizers": ["other", FINALIZER]})
    assert claim_writes.protect(protected) is None
    assert claim_writes.release(protected) == {"metadata": {**PRECONDITION, "finalizers": ["other"]}}
    assert claim_writes.release(FREE) is None


def test_a_claim_that_changed_meanwhile_is_refused() -> None:
    allocation = TAKEN.status.allocation
    assert claim_writes.may_bind(FREE, "uid-c", allocation) is None
    assert claim_writes.may_bind(TAKEN, "uid-c", None) is None
    assert claim_writes.may_bind(TAKEN, "uid-c", allocation) == Refused(
        "claim t/c got allocated elsewhere in the meantime"
    )
    assert claim_writes.may_bind(FREE, "uid-c", None) == Refused("claim t/c got deallocated elsewhere in the meantime")
    assert claim_writes.may_bind(FREE, "old", allocation) == Refused("claim t/c got deleted in the meantime")
    deleting = claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert claim_writes.may_bind(deleting, "uid-c", allocation) == Refused("claim t/c got deleted in the meantime")


def test_only_a_claim_that_nobody_else_reserved_is_given_back() -> None:
    assert claim_writes.may_deallocate(FREE, "uid-p")
    assert claim_writes.may_deallocate(claim("c", status=allocated_on("n", "x", reserved=("p",))), "uid-p")
    assert not claim_writes.may_deallocate(TAKEN, "uid-p")
    assert claim_writes.deallocate(TAKEN)["status"] == {"allocation": None, "reservedFor": None, "devices": None}
