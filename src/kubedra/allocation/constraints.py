"""matchAttribute and distinctAttribute, on values as sets.

A scalar is a set of one, so one rule covers scalars and lists: the devices of a match constraint must share a value,
those of a distinct constraint must not. Values carry their type: an int never equals a string.

States are immutable, so that undoing a pick puts the former one back. That repairs three upstream defects at once: the
narrowed intersection that stayed, the single value remembered per request name, and removal that took too much
(spec/allocator.md 3.6).

Upstream counterpart: constraint.go and matchAttributeConstraint of the allocator.
"""

from __future__ import annotations

from kubedra.allocation.columns import ValueSet

# The state of a constraint: nothing yet, the values shared so far (match), or those used so far (distinct).
State = ValueSet | None


def added(state: State, values: ValueSet | None, distinct: bool) -> State:
    """The state after a device with these values joins, or None if it may not."""
    if not values:
        return None
    if state is None:
        return values
    if distinct:
        return None if values & state else values | state
    return (values & state) or None
