"""Disruption budgets: how many pods may be evicted now. Counterpart: ``pkg/controller/disruption``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from kubedra.api import kinds, policy_v1
from kubedra.base.clock import format_time, parse_time
from kubedra.controllers import pods as podlib
from kubedra.controllers.actions import Action
from kubedra.controllers.pods import Pod
from kubedra.controllers.shell import Context, Controller

# An eviction that was granted and not seen through is forgotten after this time.
DISRUPTED_SECONDS = 120


def decide_budget(
    budget: policy_v1.PodDisruptionBudget, pods: Sequence[Pod], scale: int | None, now: datetime
) -> list[Action]:
    """The status of a budget. ``pods`` match its selector; ``scale`` is what their controllers ask for together."""
    meta = budget.metadata
    live = [p for p in pods if p.status.phase not in ("Succeeded", "Failed")]
    disrupted = {
        name: time
        for name, time in budget.status.disrupted_pods.items()
        if parse_time(time) + timedelta(seconds=DISRUPTED_SECONDS) > now
        and any(p.metadata.name == name and not p.metadata.deletion_timestamp for p in live)
    }
    healthy = sum(
        podlib.is_ready(p) and not p.metadata.deletion_timestamp and p.metadata.name not in disrupted for p in live
    )
    expected = len(live)
    if budget.spec.max_unavailable is not None:
        expected = scale if scale is not None else len(live)
        desired = max(expected - podlib.scaled(budget.spec.max_unavailable, expected, round_up=True), 0)
    elif isinstance(budget.spec.min_available, str):
        expected = scale if scale is not None else len(live)
        desired = podlib.scaled(budget.spec.min_available, expected, round_up=True)
    else:
        desired = budget.spec.min_available or 0
    allowed = max(healthy - desired, 0) if expected else 0
    ok = allowed > 0
    conditions = podlib.set_condition(
        budget.status.conditions,
        "DisruptionAllowed",
        "True" if ok else "False",
        "SufficientPods" if ok else "InsufficientPods",
        "",
        format_time(now),
    )
    for c in conditions:
        if c["type"] == "DisruptionAllowed":
            c["observedGeneration"] = meta.generation
    status: dict[str, Any] = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "observedGeneration": meta.generation,
        "conditions": conditions,
    }
    gone = {name: None for name in budget.status.disrupted_pods if name not in disrupted}
    if gone:
        status["disruptedPods"] = gone
    return [*podlib.status_patch(kinds.POD_DISRUPTION_BUDGET, meta, budget.status, status)]


class DisruptionController(Controller):
    """Keys are (namespace, name)."""

    name = "disruption-controller"
    component = "controllermanager"

    def setup(self, context: Context) -> None:
        """Watch budgets, pods, and what scales pods."""
        self._context = context
        self._budgets = context.watch(kinds.POD_DISRUPTION_BUDGET, lambda b: [(b.metadata.namespace, b.metadata.name)])
        self._pods = context.watch(kinds.POD, self._keys_of_pod)
        self._scalers: dict[str, Any] = {
            kind.kind: context.caches.of(kind) for kind in (kinds.REPLICA_SET, kinds.STATEFUL_SET, kinds.DEPLOYMENT)
        }

    def _keys_of_pod(self, pod: Pod) -> Iterable[tuple[str, str]]:
        for budget in self._budgets.list(pod.metadata.namespace):
            if podlib.selects(budget.spec.selector, pod.metadata.labels):
                yield budget.metadata.namespace, budget.metadata.name

    async def sync(self, key: tuple[str, str]) -> float | None:
        """Count the pods of one budget."""
        budget = self._budgets.get(*key)
        if budget is None:
            return None
        pods = [p for p in self._pods.list(key[0]) if podlib.selects(budget.spec.selector, p.metadata.labels)]
        await self._context.carry_out(decide_budget(budget, pods, self._scale(key[0], pods), self._context.clock.now()))
        return DISRUPTED_SECONDS / 2 if budget.status.disrupted_pods else None

    def _scale(self, namespace: str, pods: Sequence[Pod]) -> int | None:
        """What the controllers of the pods ask for together; None when a pod has none that can be asked."""
        wanted: dict[str, int] = {}
        for pod in pods:
            owner = podlib.controller_of(pod.metadata)
            cache = self._scalers.get(owner.kind) if owner is not None else None
            found = cache.get(namespace, owner.name) if cache is not None and owner is not None else None
            if found is None:
                return None
            above = podlib.controller_of(found.metadata)
            if above is not None and above.kind == "Deployment":
                found = self._scalers["Deployment"].get(namespace, above.name) or found
            wanted[found.metadata.uid] = 1 if found.spec.replicas is None else found.spec.replicas
        return sum(wanted.values()) if wanted else None
