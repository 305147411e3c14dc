"""Settings of the scheduler: names and waits, with upstream's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubedra.base.features import FeatureGates
from kubedra.scheduler.pods import DEFAULT_SCHEDULER
from kubedra.scheduler.queue import QueueSettings


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """How one scheduler behaves."""

    scheduler_name: str = DEFAULT_SCHEDULER
    """Pods with another spec.schedulerName are left alone; also the reporting component of events."""
    feature_gates: FeatureGates = field(default_factory=FeatureGates)
    queue: QueueSettings = field(default_factory=QueueSettings)
    filter_timeout: float = 10.0
    """Seconds that one node's allocation may take; 0 is no limit."""
    binding_timeout: float = 600.0
    """Seconds that a claim's binding conditions may take."""
    binding_poll: float = 5.0
    """Seconds between two looks at binding conditions, should no event come."""
    gate_report_after: float = 1.0
    """Seconds after which a gated pod says so in its condition; before that the reason usually goes by itself."""
    slice_seconds: float = 0.004
    """How long the loop may be held in one go."""
    bindings: int = 64
    """Pods bound at the same time."""
    exhaustive_nodes: int = 16
    """Up to so many feasible nodes the claims are tried on each, as upstream does; above, best node first."""
    audit_seconds: float = 60.0
    """How often the ledger is rebuilt from scratch and compared; 0 is never."""
