"""Device taint eviction: pods whose devices are tainted NoExecute must go.

Counterpart: ``pkg/controller/devicetainteviction``; rules in spec §5.2. Two things are done right that 1.36.2 does
wrong: a toleration without effect tolerates NoExecute too (as it does for scheduling, and as the API says), and pods
that got their devices through the extended-resource bridge are evicted like all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from kubedra.api import core_v1, kinds, resource_v1
from kubedra.base.clock import format_time, parse_time
from kubedra.base.features import FeatureGates
from kubedra.client.watch_cache import WatchCache
from kubedra.controllers.actions import Action, Patch, Tell
from kubedra.controllers.node_lifecycle import evict
from kubedra.controllers.shell import Context, Controller

NO_EXECUTE = "NoExecute"
STATUS_PERIOD_SECONDS = 10.0
CONDITION = "EvictionInProgress"

Device = tuple[str, str, str]
Pod = core_v1.Pod
Claim = resource_v1.ResourceClaim
Rule = resource_v1.DeviceTaintRule


@dataclass(frozen=True, slots=True)
class ActiveTaint:
    """A NoExecute taint of a device, and the rule it comes from ("" for the driver's own)."""

    taint: resource_v1.DeviceTaint
    rule: str = ""


def rule_selects(rule: Rule, device: Device) -> bool:
    """Whether a rule is about a device. No selector selects nothing, an empty one everything."""
    selector = rule.spec.device_selector
    if selector is None:
        return False
    wanted = (selector.driver, selector.pool, selector.device)
    return all(want is None or want == have for want, have in zip(wanted, device, strict=True))


def slice_taints(slices: Iterable[resource_v1.ResourceSlice]) -> dict[Device, list[ActiveTaint]]:
    """The NoExecute taints that drivers publish, by device, of the newest generation of each pool."""
    newest: dict[tuple[str, str], int] = {}
    slices = tuple(slices)
    for s in slices:
        pool = (s.spec.driver, s.spec.pool.name)
        newest[pool] = max(newest.get(pool, 0), s.spec.pool.generation)
    out: dict[Device, list[ActiveTaint]] = {}
    for s in slices:
        if s.spec.pool.generation != newest[s.spec.driver, s.spec.pool.name]:
            continue
        for device in s.spec.devices:
            for taint in device.taints:
                if taint.effect == NO_EXECUTE:
                    key = (s.spec.driver, s.spec.pool.name, device.name)
                    out.setdefault(key, []).append(ActiveTaint(taint))
    return out


def tolerates(toleration: resource_v1.DeviceToleration, taint: resource_v1.DeviceTaint) -> bool:
    """Whether a toleration of an allocation tolerates a taint; an empty key or effect matches all."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


@dataclass(frozen=True)
class Eviction:
    """When a pod must go, and for which rules."""

    due: datetime
    rules: frozenset[str] = frozenset()


def claim_eviction(claim: Claim, taints: Mapping[Device, Sequence[ActiveTaint]], now: datetime) -> Eviction | None:
    """When the users of a claim must go for the taints of its devices; None when they may stay for good."""
    due: datetime | None = None
    rules: set[str] = set()
    for result in claim.status.allocation.devices.results if claim.status.allocation is not None else ():
        for active in taints.get((result.driver, result.pool, result.device), ()):
            start = parse_time(active.taint.time_added) if active.taint.time_added else now
            matching = [t for t in result.tolerations if tolerates(t, active.taint)]
            if any(t.toleration_seconds is None for t in matching):
                continue
            seconds = min((max(t.toleration_seconds or 0, 0) for t in matching), default=0)
            moment = start + timedelta(seconds=seconds)
            due = moment if due is None else min(due, moment)
            if active.rule:
                rules.add(active.rule)
    return None if due is None else Eviction(due, frozenset(rules))


def claims_of(pod: Pod) -> list[str]:
    """The names of a pod's claims, that of the bridge included."""
    recorded = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
    names = [entry.resource_claim_name or recorded.get(entry.name) for entry in pod.spec.resource_claims]
    extended = pod.status.extended_resource_claim_status
    return [n for n in [*names, extended.resource_claim_name if extended is not None else None] if n]


def pod_eviction(
    pod: Pod, claims: Iterable[Claim], taints: Mapping[Device, Sequence[ActiveTaint]], now: datetime
) -> Eviction | None:
    """When a pod must go; None for pods that are not bound, gone already, or not touched."""
    if not pod.spec.node_name or pod.metadata.deletion_timestamp or pod.status.phase in ("Succeeded", "Failed"):
        return None
    found = [
        e
        for claim in claims
        if any(r.uid == pod.metadata.uid for r in claim.status.reserved_for)
        and (e := claim_eviction(claim, taints, now)) is not None
    ]
    if not found:
        return None
    return Eviction(min(e.due for e in found), frozenset().union(*(e.rules for e in found)))


@dataclass
class RuleCounts:
    """What a rule does: pods that must go now or later, by namespace, and pods evicted since the start."""

    pending: list[str] = field(default_factory=list)
    evicted: int = 0
    published: int = 0
    allocated: int = 0
    would_go: list[str] = field(default_factory=list)


def rule_condition(rule: Rule, counts: RuleCounts) -> tuple[str, str, str]:
    """Status, reason and message of a rule's condition."""
    suffix = ""
    if counts.evicted:
        suffix = f" {_pods(counts.evicted)} evicted since starting the controller."
    effect = rule.spec.taint.effect
    if effect == "None":
        spaces = len(set(counts.would_go))
        where = "1 namespace" if spaces == 1 else f"{spaces} different namespaces"
        message = (
            f"{counts.published} published device(s) selected. {counts.allocated} allocated device(s) selected. "
            f"{len(counts.would_go)} pod(s) would be evicted in {where} if the effect was NoExecute. "
            "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
        )
        return "False", "NoEffect", message
    if effect != NO_EXECUTE:
        return "False", "OtherEffect", "Eviction only happens for the NoExecute effect."
    if counts.pending:
        spaces = len(set(counts.pending))
        needs = "needs" if len(counts.pending) == 1 else "need"
        where = "1 namespace" if spaces == 1 else f"{spaces} different namespaces"
        return (
            "True",
            "PodsPendingEviction",
            f"{_pods(len(counts.pending))} {needs} to be evicted in {where}.{suffix}",
        )
    if counts.evicted:
        return "False", "Completed", suffix.strip()
    return "False", "NotStarted", ""


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def decide_rule_status(rule: Rule, counts: RuleCounts, now: str) -> list[Action]:
    """The apply that makes a rule's condition true; a dry run (effect None) is written once per generation."""
    current = next((c for c in rule.status.conditions if c.type == CONDITION), None)
    generation = rule.metadata.generation
    status, reason, message = rule_condition(rule, counts)
    if current is not None and current.observed_generation == generation:
        if rule.spec.taint.effect == "None" and current.reason == "NoEffect":
            return []
        if (current.status, current.reason, current.message) == (status, reason, message):
            return []
    condition = {
        "type": CONDITION,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": now,
    }
    return [
        Patch(
            kinds.DEVICE_TAINT_RULE,
            rule.metadata.name,
            "",
            {"metadata": {"name": rule.metadata.name}, "status": {"conditions": [condition]}},
            patch_type="apply",
            subresource="status",
            field_manager="device-taint-eviction-controller",
            force=True,
        )
    ]


class DeviceTaintController(Controller):
    """Keys are ("pod", namespace, name), ("rule", name) and ("all",): the taints changed, look at every pod."""

    name = "device-taint-eviction-controller"
    workers = 4

    def __init__(self, gates: FeatureGates) -> None:
        self._with_rules = gates.enabled("DRADeviceTaintRules")
        self._rules: WatchCache[Rule] | None = None
        self._taints: dict[Device, list[ActiveTaint]] = {}
        self._marked: set[str] = set()
        self._evicted: dict[str, int] = {}
        self._written: dict[str, tuple[int | None, float]] = {}

    def setup(self, context: Context) -> None:
        """Watch pods, claims, slices and rules."""
        self._context = context
        self._pods = context.watch(
            kinds.POD, lambda p: [] if self._idle() else [("pod", p.metadata.namespace, p.metadata.name)]
        )
        self._claims = context.caches.of(kinds.RESOURCE_CLAIM)
        self._claims.add_handler(self._claim_changed)
        self._slices = context.caches.of(kinds.RESOURCE_SLICE)
        self._slices.add_handler(self._slice_changed)
        if self._with_rules:
            self._rules = context.watch(kinds.DEVICE_TAINT_RULE, lambda r: [("all",), ("rule", r.metadata.name)])

    def _claim_changed(self, old: Claim | None, new: Claim | None) -> None:
        claim = new or old
        if claim is not None and not self._idle():
            for consumer in claim.status.reserved_for:
                if consumer.resource == "pods":
                    self._context.queue.add(("pod", claim.metadata.namespace, consumer.name))

    def _slice_changed(self, old: resource_v1.ResourceSlice | None, new: resource_v1.ResourceSlice | None) -> None:
        # Slices are republished often and hardly ever tainted: only a change of taints, or of what hides them, counts.
        tainted = any(d.taints for s in (old, new) if s is not None for d in s.spec.devices)
        if tainted or self._taints:
            self._context.queue.add(("all",))

    async def sync(self, key: tuple[str, ...]) -> float | None:
        """Look at all taints, at one pod, or at one rule."""
        if key[0] == "all":
            self._read_taints()
            for (namespace, name), pod in self._pods.items():
                if pod.spec.node_name:
                    self._context.queue.add(("pod", namespace, name))
            for rule in self._rules.list() if self._rules is not None else ():
                self._context.queue.add(("rule", rule.metadata.name))
            return None
        if key[0] == "rule":
            return await self._sync_rule(key[1])
        return await self._sync_pod(key[1], key[2])

    def _read_taints(self) -> None:
        taints = slice_taints(self._slices.list())
        rules = [
            r for r in (self._rules.list() if self._rules is not None else ()) if r.spec.taint.effect == NO_EXECUTE
        ]
        if rules:
            devices = set(taints) | {d for claim in self._claims.list() for d in _devices(claim)}
            for device in devices:
                for rule in rules:
                    if rule_selects(rule, device):
                        taints.setdefault(device, []).append(ActiveTaint(rule.spec.taint, rule.metadata.name))
        self._taints = taints

    def _evicting_rules(self) -> list[Rule]:
        return [r for r in (self._rules.list() if self._rules is not None else ()) if r.spec.taint.effect == NO_EXECUTE]

    def _idle(self) -> bool:
        """Whether nothing is tainted, as nearly always: then no pod needs a look."""
        return not self._taints and not self._marked and not self._evicting_rules()

    def _claims_of(self, pod: Pod) -> list[Claim]:
        namespace = pod.metadata.namespace
        return [c for name in claims_of(pod) if (c := self._claims.get(namespace, name)) is not None]

    async def _sync_pod(self, namespace: str, name: str) -> float | None:
        pod = self._pods.get(namespace, name)
        if pod is None:
            return None
        if self._rules is not None and len(self._rules):
            # A claim that was allocated just now may hold a device that only a rule taints.
            self._read_taints()
        now = self._context.clock.now()
        eviction = pod_eviction(pod, self._claims_of(pod), self._taints, now)
        uid = pod.metadata.uid
        if eviction is None:
            if uid in self._marked and not pod.metadata.deletion_timestamp:
                self._marked.discard(uid)
                note = "Cancelling deletion"
                self._context.recorder.event(pod, kinds.POD, "Normal", "DeviceTaintManagerEviction", note)
            return None
        left = (eviction.due - now).total_seconds()
        if left > 0:
            self._marked.add(uid)
            return left
        self._marked.discard(uid)
        reason, text = "DeletionByDeviceTaintManager", "Device Taint manager: deleting due to NoExecute taint"
        tell = Tell(pod, kinds.POD, "Normal", "DeviceTaintManagerEviction", "Marking for deletion")
        await self._context.carry_out([tell, *evict(pod, reason, text, now)])
        for rule in eviction.rules:
            self._evicted[rule] = self._evicted.get(rule, 0) + 1
            self._context.queue.add(("rule", rule))
        return None

    async def _sync_rule(self, name: str) -> float | None:
        rule = self._rules.get("", name) if self._rules is not None else None
        if rule is None:
            self._written.pop(name, None)
            return None
        now = self._context.clock.monotonic()
        generation, last = self._written.get(name, (None, 0.0))
        wait = STATUS_PERIOD_SECONDS - (now - last)
        if generation == rule.metadata.generation and wait > 0:
            return wait
        actions = decide_rule_status(rule, self._count(rule), format_time(self._context.clock.now()))
        if actions:
            self._written[name] = (rule.metadata.generation, now)
            await self._context.carry_out(actions)
        return None

    def _count(self, rule: Rule) -> RuleCounts:
        counts = RuleCounts(evicted=self._evicted.get(rule.metadata.name, 0))
        selected: dict[Device, list[ActiveTaint]] = {}
        taint = ActiveTaint(_as_no_execute(rule.spec.taint), rule.metadata.name)
        for s in self._slices.list():
            for device in s.spec.devices:
                if rule_selects(rule, (s.spec.driver, s.spec.pool.name, device.name)):
                    counts.published += 1
        for claim in self._claims.list():
            for device_key in _devices(claim):
                if rule_selects(rule, device_key):
                    selected[device_key] = [taint]
        counts.allocated = len(selected)
        now = self._context.clock.now()
        for pod in self._pods.list() if selected else ():
            if pod_eviction(pod, self._claims_of(pod), selected, now) is not None:
                target = counts.pending if rule.spec.taint.effect == NO_EXECUTE else counts.would_go
                target.append(pod.metadata.namespace)
        return counts


def _devices(claim: Claim) -> Iterable[Device]:
    for result in claim.status.allocation.devices.results if claim.status.allocation is not None else ():
        yield result.driver, result.pool, result.device


def _as_no_execute(taint: resource_v1.DeviceTaint) -> resource_v1.DeviceTaint:
    return msgspec.structs.replace(taint, effect=NO_EXECUTE)
