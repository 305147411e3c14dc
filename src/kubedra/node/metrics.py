"""The agent's metrics, with the kubelet's names and buckets."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_BUCKETS = (0.1, 0.153, 0.235, 0.361, 0.554, 0.850, 1.304, 2.0, 3.07, 4.71, 7.22, 11.08, 17.0, 26.07, 40.0)
_ANY = "<any>"


class NodeMetrics:
    """One registry per agent: several may live in one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.operations = Histogram(
            "dra_operations_duration_seconds",
            "How long it took to prepare or unprepare all claims of a pod",
            ("operation_name", "is_error"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.calls = Histogram(
            "dra_grpc_operations_duration_seconds",
            "How long calls to DRA drivers took",
            ("driver_name", "method_name", "grpc_status_code"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.claims_in_use = Gauge(
            "dra_resource_claims_in_use",
            "Claims that are prepared on this node, by driver",
            ("driver_name",),
            registry=self._registry,
        )
        self.pods = Gauge("kubelet_running_pods", "Pods on this node", registry=self._registry)
        self.started = Counter("kubelet_started_containers", "Containers that were started", registry=self._registry)

    def claims(self, by_driver: dict[str, int], total: int) -> None:
        """How many claims are in use now."""
        self.claims_in_use.clear()
        self.claims_in_use.labels(_ANY).set(total)
        for driver, count in by_driver.items():
            self.claims_in_use.labels(driver).set(count)

    def text(self) -> bytes:
        """All of them in the exposition format."""
        return generate_latest(self._registry)
