"""The three ways an allocation attempt can end, as types.

"Does not fit" is an answer, an error is the lack of one: the scheduler tries another node after the first, stops the
attempt of the pod after an error that isn't the node's alone. A search that was cut off is an error too, never "does
not fit" (it proved nothing).

Upstream counterpart: the results of structured.Allocator.Allocate and ErrFailedAllocationOnNode.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from kubedra.api.resource_v1 import AllocationResult

INVALID_POOLS = "invalid resource pools were encountered"


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why a claim does not fit on one node, as the search saw it.

    ``code`` is stable. ``request`` is "" when the requests fit one by one but not together.
    """

    code: str
    claim: str = ""
    request: str = ""
    needed: int = 0
    found: int = 0


@dataclass(frozen=True, slots=True)
class Allocated:
    """Every claim fits; the allocations are in the order of the claims."""

    allocations: tuple[AllocationResult, ...]
    steps: int = 0


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """Proven: no choice of devices on this node satisfies the claims."""

    reasons: tuple[Shortage, ...] = ()
    steps: int = 0


@dataclass(frozen=True, slots=True)
class AllocationError:
    """The question could not be answered. ``node_only``: another node may still be tried."""

    message: str
    node_only: bool = False
    timed_out: bool = False
    steps: int = 0
    notes: tuple[str, ...] = field(default=())


Outcome: TypeAlias = Allocated | DoesNotFit | AllocationError


class AllocationFailure(Exception):
    """Raised inside the search to end it with an AllocationError."""

    def __init__(self, message: str, *, node_only: bool = False, timed_out: bool = False) -> None:
        super().__init__(message)
        self.node_only = node_only
        self.timed_out = timed_out

    def outcome(self, steps: int = 0) -> AllocationError:
        """The failure as an outcome."""
        return AllocationError(str(self), self.node_only, self.timed_out, steps)
