"""Claims: what was written counts before the watch shows it, and no device is free in between."""

from __future__ import annotations

from kubedra.allocation.ledger import Ledger
from kubedra.api.resource_v1 import ResourceClaim
from kubedra.scheduler.audit import audit
from kubedra.scheduler.claims import ClaimStore
from tests.unit.scheduler.making import allocated_on, claim, drive

DEVICE = ("d.example", "n", "x")


def free(version: int = 1) -> ResourceClaim:
    return claim("c", version=version)


def allocated(version: int = 2) -> ResourceClaim:
    return claim("c", version=version, status=allocated_on("n", "x"))


def store_of(*claims: ResourceClaim) -> ClaimStore:
    store = ClaimStore(Ledger())
    for item in claims:
        store.observe(None, item)
    return store


def is_taken(store: ClaimStore) -> bool:
    assert drive(audit(store, True)) == ""
    return bool(store.ledger.holders(DEVICE))


def test_a_decision_takes_its_devices_until_it_is_written_and_on() -> None:
    store = store_of(free())
    allocation = allocated().status.allocation
    assert allocation is not None
    store.set_pending(free(), allocation)
    assert is_taken(store)
    store.observe(free(), free(version=2))
    assert is_taken(store)
    store.assume(allocated(3))
    store.drop_pending("uid-c", store.get(("t", "c")))
    assert is_taken(store)
    store.observe(free(2), allocated(3))
    assert is_taken(store)


def test_a_decision_that_is_given_up_frees_its_devices() -> None:
    store = store_of(free())
    allocation = allocated().status.allocation
    assert allocation is not None
    store.set_pending(free(), allocation)
    store.drop_pending("uid-c", store.get(("t", "c")))
    assert not is_taken(store)


def test_a_late_watch_event_does_not_hide_what_was_written() -> None:
    store = store_of(free(1))
    store.assume(allocated(5))
    before, after = store.observe(free(1), free(4))
    assert before is after
    assert is_taken(store)


def test_a_newer_watch_event_wins_over_what_was_written() -> None:
    store = store_of(free(1))
    store.assume(allocated(5))
    store.observe(free(1), free(6))
    assert not is_taken(store)


def test_an_answer_older_than_the_watch_is_ignored() -> None:
    store = store_of(free(9))
    store.assume(allocated(5))
    assert store.get(("t", "c")) == free(9)
    assert not is_taken(store)


def test_a_deleted_claim_holds_nothing() -> None:
    store = store_of(allocated())
    assert is_taken(store)
    store.observe(allocated(), None)
    assert not is_taken(store)
    assert store.get(("t", "c")) is None


def test_a_claim_made_again_under_its_name_is_another_one() -> None:
    store = store_of(allocated())
    again = claim("c", version=7, metadata={"uid": "other"})
    store.observe(allocated(), again)
    assert not is_taken(store)


def test_the_audit_sees_a_ledger_that_went_astray() -> None:
    store = store_of(allocated())
    store.ledger.remove_claim("uid-c")
    assert "uid-c" in drive(audit(store, True))
    store.ledger.update_claim(allocated())
    store.ledger.update_claim(claim("ghost", status=allocated_on("n", "y")))
    assert "uid-ghost" in drive(audit(store, True))
