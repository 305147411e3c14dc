"""Which devices satisfy which claims: the heart of the house. Pure: no files, sockets, clock or randomness.

``Inventory`` is what is published, ``Ledger`` what is taken, ``Allocator`` answers.
"""

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.features import Features
from kubedra.allocation.inventory import Inventory
from kubedra.allocation.ledger import Ledger
from kubedra.allocation.outcomes import Allocated, AllocationError, DoesNotFit, Outcome

__all__ = ["Allocated", "AllocationError", "Allocator", "DoesNotFit", "Features", "Inventory", "Ledger", "Outcome"]
