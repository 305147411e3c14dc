"""Is what stands in the API right? Checks of whole clusters; nothing here writes."""

from kubedra.audit.allocations import check_allocations

__all__ = ["check_allocations"]
