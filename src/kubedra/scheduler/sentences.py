"""Our sentence after upstream's message: what exactly is missing, and what would help.

What is said comes from `allocation.reasons`, which `why` renders in full. Pods with equal claims get equal sentences
up to the names of their claims, so a sentence is kept for a while per question; on a large cluster it takes longer to
work out than an attempt.

Must never: name pods or claims of another namespace.

Upstream: nothing like it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping

from kubedra.allocation.claims import PreparedPod
from kubedra.allocation.reasons import explain
from kubedra.api.resource_v1 import ResourceClaim
from kubedra.scheduler.cycle import NoPlace
from kubedra.scheduler.dra import CANNOT_ALLOCATE, DraState, DynamicResources

SECONDS_KEPT = 30.0
SENTENCES_KEPT = 256
PREEMPTABLE = "Pods of a lower priority are in the way; kubedra does not evict pods to make room for others."
_HELD_BY = re.compile(r" \(held by [^)]*\)")
_CLASS_MISSING = re.compile(r"device class \S+ does not exist")
_NAMES_SHOWN = 3

Key = tuple[str, bytes, int]


class Sentences:
    """Makes sentences, and remembers them for a while."""

    def __init__(self, dra: DynamicResources) -> None:
        self._dra = dra
        self._known: OrderedDict[Key, tuple[float, str]] = OrderedDict()

    def quick(self, verdict: NoPlace, now: float) -> str | None:
        """The sentence when it costs nothing; None when it must be worked out with `slow`."""
        if verdict.preemptable:
            return PREEMPTABLE
        state = verdict.state
        if state is None:
            return self._other_classes() if _CLASS_MISSING.search(verdict.message) else ""
        if not _failed(verdict) or not state.fresh:
            return ""
        known = self._known.get(_key(verdict, state))
        return None if known is None or known[0] < now else _named(known[1], state.fresh)

    def slow(self, verdict: NoPlace, now: float) -> str:
        """Work the sentence out: reads inventory and ledger, which must not change meanwhile."""
        state = verdict.state
        assert state is not None
        prepared = state.prepared.get(tuple(claim.metadata.uid for claim in state.fresh))
        if prepared is None:
            prepared = self._dra.allocator.prepare(state.fresh)
        text = self._explained(prepared, _failed(verdict), state)
        self._known[_key(verdict, state)] = (now + SECONDS_KEPT, _anonymous(text, state.fresh))
        if len(self._known) > SENTENCES_KEPT:
            self._known.popitem(last=False)
        return text

    def _explained(self, prepared: PreparedPod, nodes: list[str], state: DraState) -> str:
        explanation = explain(self._dra.inventory, self._dra.store.ledger, prepared, nodes)
        text = explanation.sentence()
        holders = iter([fall.holders for fall in explanation.waterfalls if fall.holders])
        names = self._claims_of(state.pod.namespace)
        text = _HELD_BY.sub(lambda _: _held_by([uid for uid, _ in next(holders, [])], names), text)
        return f"{text[:1].upper()}{text[1:]}."

    def _claims_of(self, namespace: str) -> Callable[[str], str | None]:
        own: dict[str, str] = {}
        for claim in self._dra.store:
            if claim.metadata.namespace == namespace:
                own[claim.metadata.uid] = claim.metadata.name
        return own.get

    def _other_classes(self) -> str:
        names = sorted(self._dra.inventory.classes)
        if not names:
            return "There is no device class at all; the driver's installation usually brings some."
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        return f"Device classes that exist: {', '.join(names[:5])}{more}."


def _failed(verdict: NoPlace) -> list[str]:
    return [name for name, rejected in verdict.rejections.items() if rejected is CANNOT_ALLOCATE]


def _key(verdict: NoPlace, state: DraState) -> Key:
    return state.pod.namespace, state.question, len(verdict.rejections)


def _held_by(uids: list[str], name_of: Callable[[str], str | None]) -> str:
    """Claims of the pod's own namespace by name, all others as a number."""
    own = [name for name in map(name_of, uids) if name is not None]
    shown = own[:_NAMES_SHOWN]
    others = len(uids) - len(shown)
    if not shown:
        return f" (held by {others} claims of other namespaces)" if others > 1 else " (held in another namespace)"
    return f" (held by {', '.join(shown)}{f' and {others} more' if others else ''})"


def _anonymous(text: str, claims: list[ResourceClaim]) -> str:
    for place, name in _names(claims).items():
        text = text.replace(f"laim {name},", f"laim \0{place},")
    return text


def _named(text: str, claims: list[ResourceClaim]) -> str:
    for place, name in _names(claims).items():
        text = text.replace(f"laim \0{place},", f"laim {name},")
    return text


def _names(claims: list[ResourceClaim]) -> Mapping[int, str]:
    return {place: f"{claim.metadata.namespace}/{claim.metadata.name}" for place, claim in enumerate(claims)}
