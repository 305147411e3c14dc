"""Is what the ledger says is taken really what the claims say? Asked once a minute, and in tests.

The ledger is kept by events; a mistake there hands a device out twice, silently. So it is compared with the claims
from scratch, a few at a time. A difference means that scheduling must stop.
"""

from __future__ import annotations

from collections.abc import Generator

from kubedra.allocation.ledger import entries_of_allocation
from kubedra.scheduler.claims import ClaimStore

CLAIMS_A_STEP = 64


def audit(store: ClaimStore, consumable_capacity: bool) -> Generator[None, None, str]:
    """Compare; returns the first difference as a sentence, or "". Yields now and then."""
    ledger = store.ledger
    expected: set[str] = set()
    for count, (uid, allocation) in enumerate(store.allocations()):
        if count % CLAIMS_A_STEP == CLAIMS_A_STEP - 1:
            yield
        entries = entries_of_allocation(allocation, consumable_capacity)
        if entries:
            expected.add(uid)
        if ledger.entries_of(uid) != entries:
            return f"claim {uid} holds {len(entries)} devices, the ledger says {len(ledger.entries_of(uid))}"
        for entry in entries:
            if uid not in ledger.holders(entry.device):
                return f"device {'/'.join(entry.device)} is held by claim {uid}, the ledger does not say so"
    for uid in ledger.claims():
        if uid not in expected:
            return f"the ledger says that claim {uid} holds devices, it does not"
    return ""
