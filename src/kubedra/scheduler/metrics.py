"""Metrics, named as kube-scheduler's where they mean the same.

Children are made once: looking labels up for every pod costs more than counting.

Upstream: pkg/scheduler/metrics/metrics.go.
"""

from __future__ import annotations

from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kubedra.scheduler.queue import Place, SchedulingQueue

Result = Literal["scheduled", "unschedulable", "error"]
_ATTEMPT = tuple(0.001 * 2**n for n in range(15))


class SchedulerMetrics:
    """All metrics of one scheduler, in a registry of their own unless one is given."""

    def __init__(self, profile: str, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        attempts = Counter(
            "scheduler_schedule_attempts",
            "Attempts to schedule pods, by result",
            ["result", "profile"],
            registry=self.registry,
        )
        durations = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Time of an attempt from popping the pod to the end of its binding",
            ["result", "profile"],
            buckets=_ATTEMPT,
            registry=self.registry,
        )
        results: tuple[Result, ...] = ("scheduled", "unschedulable", "error")
        self._attempts = {result: attempts.labels(result, profile) for result in results}
        self._durations = {result: durations.labels(result, profile) for result in results}
        self.algorithm = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Time of finding a node",
            buckets=_ATTEMPT,
            registry=self.registry,
        )
        self.sli = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from the pod's first being seen to its being bound",
            ["attempts"],
            buckets=tuple(0.01 * 2**n for n in range(20)),
            registry=self.registry,
        )
        self.attempts_per_pod = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts that it took to schedule a pod",
            buckets=(1, 2, 4, 8, 16),
            registry=self.registry,
        )
        pending = Gauge("scheduler_pending_pods", "Pending pods, by queue", ["queue"], registry=self.registry)
        self._pending = {place: pending.labels(place.value) for place in Place if place is not Place.IN_FLIGHT}
        created = Counter(
            "dynamic_resource_allocation_resourceclaim_creates",
            "ResourceClaims created for extended resources",
            ["status", "admin_access"],
            registry=self.registry,
        )
        self.claims_created = {ok: created.labels("success" if ok else "failure", "false") for ok in (True, False)}
        self._waits = Counter(
            "scheduler_dra_bindingconditions_allocations",
            "Allocations with binding conditions, by how the wait ended",
            ["profile", "driver", "status"],
            registry=self.registry,
        )
        self._wait_time = Histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Time waited for binding conditions",
            ["profile", "driver", "status"],
            buckets=tuple(0.1 * 2**n for n in range(14)),
            registry=self.registry,
        )
        self._profile = profile

    def attempt(self, result: Result, seconds: float) -> None:
        """Count the end of an attempt."""
        self._attempts[result].inc()
        self._durations[result].observe(seconds)

    def bound(self, seconds: float, attempts: int) -> None:
        """Count a pod that was bound, by the time since it was first seen."""
        self.sli.labels(str(min(attempts, 15))).observe(seconds)
        self.attempts_per_pod.observe(attempts)

    def waited(self, drivers: set[str], status: str, seconds: float) -> None:
        """Count the end of a wait for binding conditions."""
        for driver in drivers:
            self._waits.labels(self._profile, driver, status).inc()
            self._wait_time.labels(self._profile, driver, status).observe(seconds)

    def pending(self, queue: SchedulingQueue) -> None:
        """Set the gauges of pending pods; call it when metrics are read."""
        counts = queue.counts()
        for place, gauge in self._pending.items():
            gauge.set(counts[place])
