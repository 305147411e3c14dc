"""Remedies in the claim: a selector relaxed, a taint tolerated, less asked for, a constraint dropped."""

from __future__ import annotations

from collections.abc import Iterator

from kubedra.allocation.candidates import bits_of, selected
from kubedra.allocation.waterfall import Waterfall
from kubedra.api import core_v1
from kubedra.api.resource_v1 import DeviceConstraint, DeviceToleration
from kubedra.base.quantity import Quantity
from kubedra.cel.fleet import Fleet
from kubedra.cel.lint import examine
from kubedra.insight import changing
from kubedra.insight.answers import Remedy, plural
from kubedra.insight.constraints import similar_attributes
from kubedra.insight.relaxing import edits
from kubedra.insight.trying import Trying

MOST_EDITS = 6
MOST_AMOUNTS = 4
MOST_SAMPLES = 256


def selector_remedies(trying: Trying) -> Iterator[Remedy]:
    """Selectors that stop too much, or fail, changed to something that devices have."""
    for fall in trying.falls:
        claim, stopped = trying.claim_of(fall), fall.stopped_by()
        if claim is None or not (fall.failing or (stopped is not None and stopped.code == "selector")):
            continue
        ask = changing.ask_of(claim, fall.request)
        for index, selector in enumerate(ask.selectors if ask is not None else ()):
            text = selector.cel.expression if selector.cel is not None else ""
            if fall.failing or stopped is None or text == stopped.text:
                yield from _edited(trying, fall, index, text)


def _edited(trying: Trying, fall: Waterfall, index: int, text: str) -> Iterator[Remedy]:
    kinds: set[str] = set()
    where = "" if len(trying.falls) == 1 else f"In {trying.name_of(fall)}: "
    tried = 0
    for edit in edits(text, trying.class_devices(fall), bool(fall.failing)):
        if tried >= MOST_EDITS:
            return
        if edit.code in kinds:
            continue
        tried += 1
        change = changing.in_claim(fall.claim, changing.selector_replaced, fall.request, index, edit.expression)
        said = where + edit.text if where else edit.text[:1].upper() + edit.text[1:]
        found = trying.remedy(edit.code, said, change, edit.expression)
        if found is not None:
            kinds.add(edit.code)
            yield found
    if not kinds:
        yield from _repaired(trying, fall, index, text)


def _repaired(trying: Trying, fall: Waterfall, index: int, text: str) -> Iterator[Remedy]:
    """What ``kubedra cel check`` would write instead, looked at on a sample of the devices."""
    if trying.deadline.passed():
        return
    snapshot = trying.decision.snapshot
    sample = Fleet(trying.class_devices(fall).sample(MOST_SAMPLES))
    result = examine(text, sample, features=snapshot.gates, version=snapshot.gates.version)
    if not result.repaired or result.repaired == text:
        return
    change = changing.in_claim(fall.claim, changing.selector_replaced, fall.request, index, result.repaired)
    said = result.findings[0].message if result.findings else "the selector is not what was meant"
    found = trying.remedy("repair-selector", f"Write the selector otherwise: {said}", change, result.repaired)
    if found is not None:
        yield found


def dropped_selectors(trying: Trying) -> Iterator[Remedy]:
    """Selectors left out altogether; the last resort."""
    for fall in trying.falls:
        claim = trying.claim_of(fall)
        if claim is None or (fall.stopped_by() is None and not fall.failing):
            continue
        ask = changing.ask_of(claim, fall.request)
        for index, selector in enumerate(ask.selectors if ask is not None else ()):
            text = selector.cel.expression if selector.cel is not None else ""
            change = changing.in_claim(fall.claim, changing.selector_replaced, fall.request, index, None)
            found = trying.remedy("drop-selector", f"Drop the selector of {trying.name_of(fall)}: {text}", change)
            if found is not None:
                yield found


def constraint_remedies(trying: Trying) -> Iterator[Remedy]:
    """Constraints on the attribute that was meant, or dropped."""
    for name, claim in trying.claims.items():
        constraints = claim.spec.devices.constraints if claim.spec.devices is not None else ()
        for index, constraint in enumerate(constraints):
            yield from _other_attribute(trying, name, index, constraint)
            kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
            attribute = constraint.match_attribute or constraint.distinct_attribute
            meaning = "the devices then may differ in it" if constraint.match_attribute else "they then may share it"
            change = changing.in_claim(name, changing.constraint_dropped, index)
            found = trying.remedy("drop-constraint", f"Drop the constraint {kind}: {attribute} ({meaning})", change)
            if found is not None:
                yield found


def _other_attribute(trying: Trying, name: str, index: int, constraint: DeviceConstraint) -> Iterator[Remedy]:
    """The same constraint on an attribute with a similar name that the drivers publish."""
    attribute = constraint.match_attribute or constraint.distinct_attribute
    names: set[str] = set()
    for fall in trying.falls:
        if fall.claim == name:
            names |= trying.class_devices(fall).names(capacity=False)
    if attribute in names:
        return
    kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
    for other in similar_attributes(attribute, names):
        change = changing.in_claim(name, changing.constraint_on, index, other)
        text = f"Write {kind}: {other} instead of {attribute}, which no matching device has"
        found = trying.remedy("correct-name", text, change, f"{kind}: {other}")
        if found is not None:
            yield found
            return


def toleration_remedies(trying: Trying) -> Iterator[Remedy]:
    """Taints of devices that the request could tolerate."""
    for fall in trying.falls:
        if trying.claim_of(fall) is None or fall.stopped_by() is None:
            continue
        for taint in sorted(fall.untolerated):
            key_value, _, effect = taint.rpartition(":")
            key, equals, value = key_value.partition("=")
            toleration = DeviceToleration(key=key, operator="Equal" if equals else "Exists", value=value, effect=effect)
            change = changing.in_claim(fall.claim, changing.toleration_added, fall.request, toleration)
            text = f"Tolerate the taint {taint} of {plural(fall.untolerated[taint], 'device')}"
            shown = toleration_text(toleration)
            found = trying.remedy("add-toleration", f"{text} in {trying.name_of(fall)}", change, shown)
            if found is not None:
                yield found


def toleration_text(toleration: DeviceToleration | core_v1.Toleration) -> str:
    """A toleration as it is written in YAML."""
    value = f", value: {toleration.value}" if toleration.value else ""
    return (
        f"tolerations: [{{key: {toleration.key}, operator: {toleration.operator}{value}, effect: {toleration.effect}}}]"
    )


def count_remedies(trying: Trying) -> Iterator[Remedy]:
    """The largest count that fits."""
    for fall in trying.falls:
        if fall.needed < 2 or trying.claim_of(fall) is None:
            continue
        low, high = 1, fall.needed - 1
        best: Remedy | None = None
        while low <= high:
            middle = (low + high + 1) // 2
            change = changing.in_claim(fall.claim, changing.count_lowered, fall.request, middle)
            text = f"Ask for {middle} instead of {fall.needed} in {trying.name_of(fall)}"
            found = trying.remedy("lower-count", text, change)
            if found is not None:
                best, low = found, middle + 1
            else:
                high = middle - 1
        if best is not None:
            yield best


def capacity_remedies(trying: Trying) -> Iterator[Remedy]:
    """A smaller share: what is left of the devices that match."""
    for fall in trying.falls:
        claim = trying.claim_of(fall)
        ask = changing.ask_of(claim, fall.request) if claim is not None and fall.stopped_by() is not None else None
        for name, wanted in sorted(ask.capacity.requests.items()) if ask is not None and ask.capacity else ():
            for amount in _amounts_left(trying, fall, name, wanted):
                change = changing.in_claim(fall.claim, changing.capacity_lowered, fall.request, name, amount)
                text = f"Ask for {amount} of {name} instead of {wanted} in {trying.name_of(fall)}"
                found = trying.remedy("lower-capacity", text, change)
                if found is not None:
                    yield found
                    break


def _amounts_left(trying: Trying, fall: Waterfall, name: str, wanted: str) -> list[str]:
    limit = Quantity.parse(wanted)
    nothing = Quantity.parse("0")
    amounts: set[Quantity] = set()
    alternative = trying.alternative(fall)
    if alternative is None:
        return []
    for node in trying.question.nodes[:200]:
        for pool, _ in trying.decision.inventory.node_view(node).candidates:
            chosen, _errors = selected(pool, alternative.ask.selection)
            state = pool.current(trying.decision.ledger)
            for bit in bits_of(chosen):
                for key, total, _item in pool.devices[bit].capacity.entries:
                    if key == name:
                        used = state.consumed.get(bit, {}).get(key, 0)
                        left = total - Quantity.parse(f"{used}n") if used else total
                        if nothing < left < limit:
                            amounts.add(left)
    return [str(amount) for amount in sorted(amounts, reverse=True)[:MOST_AMOUNTS]]
