"""Which devices of a node are equal for a pod.

Two devices are of one kind when no request of the pod can tell them apart: the same requests could get them, they have
the same values under every constraint, consume the same counters, and can be shared to the same extent. Exchanging
devices of a kind turns solutions into solutions, which is what lets the search skip and remember.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubedra.allocation.attempt import Attempt
from kubedra.allocation.claims import Alternative, Ask


@dataclass(slots=True)
class KindTable:
    """The kinds of a node's devices."""

    kind_of: list[int]
    masks: list[int]
    # Kinds of devices that can be shared, as a mask over kinds, and their devices.
    shared_kinds: int
    shared_bits: list[int]


def kinds_of_node(attempt: Attempt, masks: dict[Ask, int], everything: dict[Alternative, list[int]]) -> KindTable:
    """Sort the devices of a node into kinds. Devices that no request could get share one kind."""
    pod = attempt.pod
    fixed = [set(bits) for bits in everything.values()]
    compared = [
        (constraint.attribute, alternative)
        for claim in pod.claims
        for request in claim.requests
        for alternative in request.alternatives
        for constraint in (claim.constraints[index] for index in alternative.constraints)
    ]
    # Published values are the same for all requests; derived ones are looked up request by request.
    plain = {attribute: alternative for attribute, alternative in compared if not alternative.ask.selection.derived}
    derived = [(attribute, alternative) for attribute, alternative in compared if alternative.ask.selection.derived]
    questions = [*plain.items(), *derived]
    numbers: dict[object, int] = {}
    table = KindTable([], [], 0, [])
    for bit, device in enumerate(attempt.devices):
        wanted = tuple(mask >> bit & 1 for mask in masks.values())
        member = tuple(bit in bits for bits in fixed)
        key: object = None
        multi = attempt.features.consumable_capacity and device.multi
        if any(wanted) or any(member):
            key = (
                wanted,
                member,
                tuple(attempt.values(attribute, alternative, bit) for attribute, alternative in questions),
                None if device.consumes is None else (attempt.pool_of(bit)[0], id(device.consumes)),
                tuple((k, q.nano, _policy(i)) for k, q, i in device.capacity.entries) if multi else None,
            )
        kind = numbers.get(key)
        if kind is None:
            kind = numbers[key] = len(numbers)
            table.masks.append(0)
        table.kind_of.append(kind)
        table.masks[kind] |= 1 << bit
        if multi and key is not None:
            table.shared_kinds |= 1 << kind
            table.shared_bits.append(bit)
    return table


def _policy(item: object) -> str:
    return repr(getattr(item, "request_policy", None))
