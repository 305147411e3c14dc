"""What would help a pod that does not fit, each tried out before it is named, and what can't help.

A remedy is a changed claim, a changed pod, or a changed cluster on which the scheduler's code finds a place. The
mildest and cheapest to try come first; the search ends when its time is over and then says so. Nothing is guessed:
what could not be verified is not said.

Upstream has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kubedra.allocation.candidates import selected
from kubedra.allocation.claims import Alternative
from kubedra.allocation.reasons import Reason
from kubedra.allocation.waterfall import Waterfall
from kubedra.api import core_v1
from kubedra.api.resource_v1 import DeviceConstraint, DeviceToleration, ResourceClaim
from kubedra.insight import changing
from kubedra.insight.answers import Remedy, plural, shortened
from kubedra.insight.constraints import similar_attributes
from kubedra.insight.decision import Claims, Deadline, Decision, Question
from kubedra.insight.devices import NO_DEVICES, Summaries
from kubedra.insight.freeing import Freed, fewest_to_free
from kubedra.insight.node_groups import taint_text
from kubedra.insight.relaxing import Published, edits
from kubedra.insight.snapshots import Snapshot
from kubedra.scheduler.cycle import Placed
from kubedra.scheduler.filters.taint_toleration import tolerated
from kubedra.scheduler.pods import pod_info

MOST_REMEDIES = 6
MOST_EDITS = 6
KINDS_OF_NODES = 3


class Remedies:
    """Looks for remedies for one question."""

    def __init__(self, decision: Decision, question: Question, falls: Sequence[Waterfall], deadline: Deadline) -> None:
        self._decision = decision
        self._question = question
        self._falls = falls
        self._deadline = deadline
        self._claims = {changing.full_name(c): c for claims, _ in question.groups for c in claims}
        self._any = False
        self.published: dict[tuple[str, str], Published] = {}

    def found(self) -> list[Remedy]:
        """The remedies, the mildest first."""
        out: list[Remedy] = []
        seen: set[str] = set()
        sources = [
            self._selectors(),
            self._tolerations(),
            self._freed(),
            self._capacities(),
            self._counts(),
            self._constraints(),
            self._nodes(),
            self._more_nodes(),
            self._dropped_selectors(),
        ]
        # An error of a selector keeps the pod from every node, whatever is free there.
        for source in [self._selectors(), self._dropped_selectors()] if self._question.failed else sources:
            for remedy in source:
                if remedy.text not in seen:
                    seen.add(remedy.text)
                    out.append(remedy)
                    self._any = True
                if len(out) >= MOST_REMEDIES:
                    return out
            if self._deadline.passed():
                break
        return out

    def _try(self, change: changing.ClaimChange) -> str:
        """The node on which changed claims fit, or ""."""
        if self._deadline.passed():
            return ""
        if not self._decision.trial(self._question, change, deadline=self._deadline).fits:
            return ""
        # The trial looks at devices alone; the scheduler has the last word.
        verdict = self._decision.place_with(self._question.pod, change)
        return verdict.node if isinstance(verdict, Placed) else ""

    def _stopped(self) -> Iterator[tuple[Waterfall, ResourceClaim]]:
        """Requests that too few devices are left for, with their claims."""
        for fall in self._falls:
            claim = self._claims.get(fall.claim)
            if claim is not None and fall.stopped_by() is not None:
                yield fall, claim

    # ---- the claim ----

    def _selectors(self) -> Iterator[Remedy]:
        for fall in self._falls:
            claim, stopped = self._claims.get(fall.claim), fall.stopped_by()
            if claim is None or not (fall.failing or (stopped is not None and stopped.code == "selector")):
                continue
            ask = changing.ask_of(claim, fall.request)
            selectors = ask.selectors if ask is not None else ()
            for index, selector in enumerate(selectors):
                text = selector.cel.expression if selector.cel is not None else ""
                if not fall.failing and stopped is not None and text != stopped.text:
                    continue
                yield from self._edited(fall, index, text)

    def _edited(self, fall: Waterfall, index: int, text: str) -> Iterator[Remedy]:
        tried = 0
        kinds: set[str] = set()
        for edit in edits(text, self.class_devices(fall), bool(fall.failing)):
            if tried >= MOST_EDITS or self._deadline.passed():
                return
            if edit.code in kinds:
                continue
            tried += 1
            node = self._try(
                changing.in_claim(fall.claim, changing.selector_replaced, fall.request, index, edit.expression)
            )
            if node:
                kinds.add(edit.code)
                yield Remedy(edit.code, _capital(edit.text), node, edit.expression)

    def _dropped_selectors(self) -> Iterator[Remedy]:
        if self._any:
            return
        for fall in self._falls:
            claim = self._claims.get(fall.claim)
            if claim is None or (fall.stopped_by() is None and not fall.failing):
                continue
            ask = changing.ask_of(claim, fall.request)
            for index, selector in enumerate(ask.selectors if ask is not None else ()):
                text = selector.cel.expression if selector.cel is not None else ""
                node = self._try(changing.in_claim(fall.claim, changing.selector_replaced, fall.request, index, None))
                if node:
                    yield Remedy("drop-selector", f"Drop the selector of request {fall.request!r}: {text}", node)

    def _constraints(self) -> Iterator[Remedy]:
        for name, claim in self._claims.items():
            constraints = claim.spec.devices.constraints if claim.spec.devices is not None else ()
            for index, constraint in enumerate(constraints):
                yield from self._other_attribute(name, index, constraint)
                node = self._try(changing.in_claim(name, changing.constraint_dropped, index))
                if node:
                    kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
                    attribute = constraint.match_attribute or constraint.distinct_attribute
                    meaning = (
                        "the devices then may differ in it" if constraint.match_attribute else "they then may share it"
                    )
                    text = f"Drop the constraint {kind}: {attribute} ({meaning})"
                    yield Remedy("drop-constraint", text, node)

    def _other_attribute(self, name: str, index: int, constraint: DeviceConstraint) -> Iterator[Remedy]:
        """The same constraint on an attribute with a similar name that the drivers publish."""
        attribute = constraint.match_attribute or constraint.distinct_attribute
        names: set[str] = set()
        for fall in self._falls:
            if fall.claim == name:
                names |= self.class_devices(fall).names(capacity=False)
        if attribute in names:
            return
        for other in similar_attributes(attribute, names):
            node = self._try(changing.in_claim(name, changing.constraint_on, index, other))
            if node:
                kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
                yield Remedy("correct-name", f"Write {kind}: {other}, which the driver publishes", node)
                return

    def _tolerations(self) -> Iterator[Remedy]:
        for fall, _ in self._stopped():
            for taint in sorted(fall.untolerated):
                key_value, _, effect = taint.rpartition(":")
                key, equals, value = key_value.partition("=")
                toleration = DeviceToleration(
                    key=key, operator="Equal" if equals else "Exists", value=value, effect=effect
                )
                node = self._try(changing.in_claim(fall.claim, changing.toleration_added, fall.request, toleration))
                if node:
                    text = f"Tolerate the taint {taint} of {plural(fall.untolerated[taint], 'device')} in request"
                    change = _toleration(toleration)
                    yield Remedy("add-toleration", f"{text} {fall.request!r}", node, change)

    def _counts(self) -> Iterator[Remedy]:
        for fall in self._falls:
            if fall.needed < 2 or fall.claim not in self._claims:
                continue
            low, high, best = 1, fall.needed - 1, ("", 0)
            while low <= high:
                middle = (low + high + 1) // 2
                node = self._try(changing.in_claim(fall.claim, changing.count_lowered, fall.request, middle))
                if node:
                    best, low = (node, middle), middle + 1
                else:
                    high = middle - 1
            if best[1]:
                yield Remedy(
                    "lower-count", f"Ask for {best[1]} instead of {fall.needed} in request {fall.request!r}", best[0]
                )

    def _capacities(self) -> Iterator[Remedy]:
        """A smaller share: the largest of the devices' capacities that are left, or their size."""
        for fall, claim in self._stopped():
            ask = changing.ask_of(claim, fall.request)
            for name, wanted in sorted(ask.capacity.requests.items()) if ask is not None and ask.capacity else ():
                for amount in self._amounts_left(fall, name, wanted):
                    node = self._try(
                        changing.in_claim(fall.claim, changing.capacity_lowered, fall.request, name, amount)
                    )
                    if node:
                        text = f"Ask for {amount} of {name} instead of {wanted} in request {fall.request!r}"
                        yield Remedy("lower-capacity", text, node)
                        break

    def _amounts_left(self, fall: Waterfall, name: str, wanted: str) -> list[str]:
        from kubedra.base.quantity import Quantity

        limit = Quantity.parse(wanted)
        amounts: set[Quantity] = set()
        alternative = self._alternative(fall)
        if alternative is None:
            return []
        for node in self._question.nodes[:200]:
            for pool, _ in self._decision.inventory.node_view(node).candidates:
                yes, _ = selected(pool, alternative.ask.selection)
                state = pool.current(self._decision.ledger)
                for bit, device in enumerate(pool.devices):
                    if not yes >> bit & 1:
                        continue
                    for key, total, _item in device.capacity.entries:
                        if key == name:
                            used = state.consumed.get(bit, {}).get(key, 0)
                            left = total - Quantity.parse(f"{used}n") if used else total
                            if Quantity.parse("0") < left < limit:
                                amounts.add(left)
        return [str(amount) for amount in sorted(amounts, reverse=True)[:4]]

    # ---- other pods ----

    def _freed(self) -> Iterator[Remedy]:
        freed = self.freed()
        if freed is None:
            return
        snapshot = self._decision.snapshot
        names = [holder_text(snapshot, key) for key in freed.claims]
        unused = [key for key in freed.claims if not _consumers(snapshot, key)]
        devices = shortened(freed.trial.devices)
        if len(unused) == len(freed.claims):
            text = f"Delete {shortened(names)}: no pod uses {'it' if len(names) == 1 else 'them'}"
            yield Remedy("free-unused-claim", f"{text}; then {devices} can be had", freed.trial.node)
        elif freed.movable:
            it = "it" if len(names) == 1 else "them"
            text = f"Move {shortened(names)}: delete {it}, and create {it} again once this pod runs; this pod then gets"
            back = f"the moved {'pod gets' if len(names) == 1 else 'pods get'} {freed.back}"
            yield Remedy("move-pod", f"{text} {devices}, and {back}", freed.trial.node)
        else:
            few = "" if len(names) == 1 else f" ({len(names)} is the fewest found)"
            yield Remedy("free-device", f"End {shortened(names)}{few}; then {devices} can be had", freed.trial.node)

    def freed(self) -> Freed | None:
        """The fewest claims to free, on the nodes that have enough devices once they are free."""
        nodes = self._nodes_by_deficit()
        return fewest_to_free(self._decision, self._question, nodes, self._deadline) if nodes else None

    def _nodes_by_deficit(self) -> list[str]:
        from kubedra.allocation.waterfall import NODE_STEPS

        size, room = NODE_STEPS.index("size"), NODE_STEPS.index("room")
        deficits: dict[str, int] = {}
        by_request: dict[tuple[str, str], list[Waterfall]] = {}
        for fall in self._falls:
            by_request.setdefault((fall.claim, fall.request.partition("/")[0]), []).append(fall)
        for node in self._question.nodes:
            total = 0
            for falls in by_request.values():
                missing = None
                for fall in falls:
                    counts, need = fall.nodes.get(node), max(fall.needed, 1)
                    if counts is not None and counts[size] >= need:
                        lack = max(need - counts[room], 0)
                        missing = lack if missing is None else min(missing, lack)
                if missing is None:
                    break
                total += missing
            else:
                deficits[node] = total
        return sorted(deficits, key=lambda node: deficits[node])

    # ---- nodes ----

    def _nodes(self) -> Iterator[Remedy]:
        """Nodes that reject the pod, which would do if they did not."""
        decision, question = self._decision, self._question
        pod = question.pod
        taints: dict[str, tuple[core_v1.Taint, list[str]]] = {}
        cordoned, excluded = [], []
        for name, rejected in question.rejected.items():
            info = decision.view.nodes[name]
            if rejected.plugin == "TaintToleration":
                for taint in info.hard_taints:
                    if not tolerated(taint, pod.spec.tolerations):
                        taints.setdefault(taint_text(taint), (taint, []))[1].append(name)
            elif rejected.plugin == "NodeUnschedulable":
                cordoned.append(name)
            elif rejected.plugin == "NodeAffinity":
                excluded.append(name)
        for text, (taint, names) in taints.items():
            toleration = core_v1.Toleration(
                key=taint.key, operator="Equal" if taint.value else "Exists", value=taint.value, effect=taint.effect
            )
            spec = msgspec.structs.replace(pod.spec, tolerations=(*pod.spec.tolerations, toleration))
            node = self._place_changed(spec)
            if node:
                change = _toleration(toleration)
                yield Remedy(
                    "tolerate-node",
                    f"Tolerate the taint {text} of {plural(len(names), 'node')} in the pod",
                    node,
                    change,
                )
        if excluded and (pod.spec.node_selector or pod.spec.affinity is not None):
            spec = msgspec.structs.replace(pod.spec, node_selector={}, affinity=None)
            node = self._place_changed(spec)
            if node:
                yield Remedy("drop-node-selector", "Drop the pod's node selector and affinity", node)
        if cordoned:
            node = self._place_uncordoned(cordoned)
            if node:
                yield Remedy("uncordon-node", f"Let pods in again: kubectl uncordon {node}", node)

    def _place_changed(self, spec: core_v1.PodSpec) -> str:
        if self._deadline.passed():
            return ""
        changed = pod_info(msgspec.structs.replace(self._question.pod.pod, spec=spec))
        verdict = self._decision.place(changed)
        return verdict.node if isinstance(verdict, Placed) else ""

    def _place_uncordoned(self, names: Sequence[str]) -> str:
        view = self._decision.view
        before = {name: view.nodes[name].node for name in names}
        try:
            for name, node in before.items():
                if node is not None:
                    spec = msgspec.structs.replace(node.spec, unschedulable=None, taints=_uncordoned(node.spec.taints))
                    view.set_node(name, msgspec.structs.replace(node, spec=spec))
            return self._place_changed(self._question.pod.spec)
        finally:
            for name, node in before.items():
                view.set_node(name, node)

    def _more_nodes(self) -> Iterator[Remedy]:
        """One more node like one that is there, with all its devices free."""
        decision = self._decision
        summaries = Summaries()
        kinds: dict[str, str] = {}
        for name in self._question.nodes:
            has = summaries.of_view(decision.inventory.node_view(name))
            if has != NO_DEVICES:
                kinds.setdefault(has, name)
        told = 0
        for has, name in kinds.items():
            if self._deadline.passed() or told >= KINDS_OF_NODES:
                return
            if self._fits_on_empty(name):
                told += 1
                yield Remedy("add-node", f"Add a node like {name} ({has})", "")

    def _fits_on_empty(self, name: str) -> bool:
        """Whether the claims fit on a node like this one when nobody holds anything of its own pools."""
        decision = self._decision
        view = decision.inventory.node_view(name)
        if any(not slice_.raw.spec.node_name for pool, _ in view.candidates for slice_, _ in pool.spans):
            return False
        ledger = decision.ledger
        mark = ledger.mark()
        try:
            for pool, _ in view.candidates:
                use = ledger.use_of(pool.key)
                keys = [*use.exclusive.values(), *([c for c, _ in shares] for shares in use.shares.values())]
                for key in {key for claims in keys for key in claims}:
                    ledger.remove_claim(key)
            return decision.trial(self._question, nodes=(name,)).fits
        finally:
            ledger.rollback(mark)

    # ---- what devices there are ----

    def _alternative(self, fall: Waterfall) -> Alternative | None:
        for claims, _ in self._question.groups:
            for claim in self._decision.allocator.prepare(claims).claims:
                for request in claim.requests:
                    for alternative in request.alternatives:
                        if claim.name == fall.claim and alternative.name == fall.request:
                            return alternative
        return None

    def class_devices(self, fall: Waterfall) -> Published:
        """The devices of a request's class, in the current pools."""
        key = (fall.claim, fall.class_name)
        found = self.published.get(key)
        if found is None:
            found = self.published[key] = class_devices(self._decision, fall.class_name)
        return found


def class_devices(decision: Decision, class_name: str) -> Published:
    """The devices of a class."""
    inventory = decision.inventory
    device_class = inventory.classes.get(class_name)
    texts = tuple(s.cel.expression for s in (device_class.spec.selectors if device_class else ()) if s.cel is not None)
    selection = inventory.selections.of(texts, ())
    return Published((slice_, selection.row(slice_).yes) for slice_ in inventory.slices.values() if slice_.devices)


def no_help(decision: Decision, question: Question, remedies: Sequence[Remedy], cut: bool) -> list[Reason]:
    """What people try in vain."""
    codes = {remedy.code for remedy in remedies}
    out = []
    if decision.ledger.claims():
        out.append(
            Reason(
                "preemption",
                "a higher priority",
                "pods are never preempted to free devices; a device is free only when the pods that use it have ended",
            )
        )
    freed = codes & {"free-device", "move-pod", "free-unused-claim"}
    if not freed and not cut and decision.ledger.claims() and not question.failed:
        out.append(Reason("freeing", "ending other pods", "it would not fit on any node even if all devices were free"))
    views = [decision.inventory.node_view(name) for name in question.nodes[:64]]
    published = any(view.candidates for view in views) and not any(view.incomplete or view.invalid for view in views)
    if "add-node" not in codes and not cut and published and not question.failed:
        out.append(Reason("adding-nodes", "more nodes like these", "it would not fit on them either"))
    return out


def _uncordoned(taints: Sequence[core_v1.Taint]) -> tuple[core_v1.Taint, ...]:
    return tuple(t for t in taints if t.key != "node.kubernetes.io/unschedulable")


def _toleration(toleration: DeviceToleration | core_v1.Toleration) -> str:
    value = f", value: {toleration.value}" if toleration.value else ""
    where = f"key: {toleration.key}, operator: {toleration.operator}{value}, effect: {toleration.effect}"
    return f"tolerations: [{{{where}}}]"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _consumers(snapshot: Snapshot, key: str) -> Sequence[object]:
    claim = snapshot.claims_by_key.get(key)
    return claim.status.reserved_for if claim is not None else ()


def holder_text(snapshot: Snapshot, key: str) -> str:
    """Who holds devices: "pod ns/name (claim …, for 3d)", or the claim when no pod uses it."""
    claim = snapshot.claims_by_key.get(key)
    if claim is None:
        return f"claim {key}"
    meta = claim.metadata
    allocation = claim.status.allocation
    since = (allocation.allocation_timestamp if allocation is not None else "") or meta.creation_timestamp
    age = snapshot.age(since)
    if not claim.status.reserved_for:
        return f"claim {meta.namespace}/{meta.name}{f' (for {age})' if age else ''}"
    users = shortened([f"{c.resource.rstrip('s')} {meta.namespace}/{c.name}" for c in claim.status.reserved_for], 2)
    return f"{users} (claim {meta.name}{f', for {age}' if age else ''})"


def claims_of(question: Question) -> Claims:
    """The claims of the first group of nodes."""
    return question.groups[0][0] if question.groups else question.claims
