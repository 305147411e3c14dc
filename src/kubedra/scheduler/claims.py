"""ResourceClaims as the scheduler knows them: what the watch showed, what we wrote since, what we are about to write.

Three layers, the later one counts: *observed* (watch), *assumed* (the answer to our own write, until the watch has
caught up), *pending* (an allocation that is decided and not written yet). The ledger of taken devices always follows
the sum of the three, so no device is decided on twice between two watch events.

Upstream: assume_cache.go, allocateddevices.go, dra_manager.go (signalled pending allocations).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kubedra.allocation.checker import Checker
from kubedra.allocation.ledger import Ledger
from kubedra.api.resource_v1 import AllocationResult, ResourceClaim
from kubedra.scheduler.claim_writes import version_of

ClaimName = tuple[str, str]


def name_of(claim: ResourceClaim) -> ClaimName:
    """Namespace and name."""
    return claim.metadata.namespace, claim.metadata.name


class ClaimStore:
    """All claims, newest known version first; ledger and independent checker follow them."""

    def __init__(self, ledger: Ledger, checker: Checker | None = None) -> None:
        self.ledger = ledger
        self.checker = checker
        self._observed: dict[ClaimName, ResourceClaim] = {}
        self._assumed: dict[ClaimName, ResourceClaim] = {}
        self._pending: dict[str, AllocationResult] = {}

    def __repr__(self) -> str:
        return f"<ClaimStore observed={len(self._observed)} assumed={len(self._assumed)} pending={len(self._pending)}>"

    def __iter__(self) -> Iterator[ResourceClaim]:
        for name, claim in self._observed.items():
            yield self._assumed.get(name, claim)
        for name, claim in self._assumed.items():
            if name not in self._observed:
                yield claim

    def get(self, name: ClaimName) -> ResourceClaim | None:
        """The newest version known."""
        return self._assumed.get(name) or self._observed.get(name)

    def is_pending(self, uid: str) -> bool:
        """Whether an allocation of the claim is decided and not written."""
        return uid in self._pending

    def observe(
        self, old: ResourceClaim | None, new: ResourceClaim | None
    ) -> tuple[ResourceClaim | None, ResourceClaim | None]:
        """Take over a watch event; returns the newest version before and after it."""
        claim = new or old
        if claim is None:
            return None, None
        name = name_of(claim)
        before = self.get(name)
        assumed = self._assumed.get(name)
        if new is None:
            self._observed.pop(name, None)
            if assumed is not None and assumed.metadata.uid == claim.metadata.uid:
                del self._assumed[name]
        else:
            self._observed[name] = new
            if assumed is not None and (
                assumed.metadata.uid != new.metadata.uid or version_of(new) >= version_of(assumed)
            ):
                del self._assumed[name]
        after = self.get(name)
        if before is not None and (after is None or after.metadata.uid != before.metadata.uid):
            self._account(before.metadata.uid, None)
        if after is not None and after is not before:
            self._account(after.metadata.uid, after)
        return before, after

    def assume(self, claim: ResourceClaim) -> None:
        """Take over the answer to a write of ours, which the watch will show later (or has shown already)."""
        name = name_of(claim)
        known = self.get(name)
        if known is not None and known.metadata.uid == claim.metadata.uid and version_of(known) >= version_of(claim):
            return
        self._assumed[name] = claim
        self._account(claim.metadata.uid, claim)

    def disown(self, claim: ResourceClaim) -> None:
        """Forget what we assumed of a claim: we learnt that it is gone."""
        assumed = self._assumed.get(name_of(claim))
        if assumed is not None and assumed.metadata.uid == claim.metadata.uid:
            del self._assumed[name_of(claim)]
            self._account(claim.metadata.uid, self._observed.get(name_of(claim)))

    def set_pending(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """An allocation is decided: its devices are taken from now on."""
        uid = claim.metadata.uid
        self._pending[uid] = allocation
        self.ledger.assume(uid, allocation)
        if self.checker is not None:
            status = msgspec.structs.replace(claim.status, allocation=allocation)
            self.checker.update_claim(msgspec.structs.replace(claim, status=status), uid)

    def drop_pending(self, uid: str, claim: ResourceClaim | None) -> None:
        """The decision was written (the claim shows it) or given up (it does not)."""
        if self._pending.pop(uid, None) is None:
            return
        self._account(uid, claim)

    def allocations(self) -> Iterator[tuple[str, AllocationResult | None]]:
        """What each claim holds, by uid: what the ledger must say."""
        for claim in list(self):
            if claim.metadata.uid not in self._pending:
                yield claim.metadata.uid, claim.status.allocation
        yield from tuple(self._pending.items())

    def _account(self, uid: str, claim: ResourceClaim | None) -> None:
        if uid in self._pending:
            return
        if claim is None:
            self.ledger.remove_claim(uid)
        else:
            self.ledger.update_claim(claim)
        if self.checker is not None:
            self.checker.update_claim(claim, uid)
