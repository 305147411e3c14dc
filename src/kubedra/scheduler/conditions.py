"""The PodScheduled condition: what it says, and when it is worth a write.

Upstream's message comes first and unchanged, our sentence after it, both within 1,024 bytes. A condition is not
rewritten while only the numbers in it change: on a busy cluster that would be a write per pod and event.

Upstream: handleSchedulingFailure and updatePod in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kubedra.api import core_v1

MESSAGE_BYTES = 1024
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
SCHEDULING_GATED = "SchedulingGated"
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a failed attempt, or a gate, has to say."""

    reason: str
    message: str
    nominated: str | None = None
    """The node in status.nominatedNodeName from now on: "" clears it, None leaves it."""


def compose(upstream: str, ours: str) -> str:
    """Upstream's message and our sentence, cut to size without cutting upstream's first."""
    text = f"{upstream} {ours}" if ours else upstream
    encoded = text.encode()
    if len(encoded) <= MESSAGE_BYTES:
        return text
    return encoded[: MESSAGE_BYTES - 3].decode("utf-8", "ignore") + "..."


def pod_scheduled(pod: core_v1.Pod) -> core_v1.PodCondition | None:
    """The pod's PodScheduled condition."""
    return next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)


def is_news(pod: core_v1.Pod, outcome: Outcome) -> bool:
    """Whether writing the outcome would tell anything but other numbers."""
    if outcome.nominated is not None and outcome.nominated != pod.status.nominated_node_name:
        return True
    known = pod_scheduled(pod)
    return (
        known is None
        or known.status != "False"
        or known.reason != outcome.reason
        or _NUMBERS.sub("#", known.message) != _NUMBERS.sub("#", outcome.message)
    )


def patch(pod: core_v1.Pod, outcome: Outcome, now: str) -> dict[str, Any]:
    """The strategic merge patch of the pod's status that says it."""
    known = pod_scheduled(pod)
    same_status = known is not None and known.status == "False" and known.last_transition_time
    condition: dict[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "reason": outcome.reason,
        "message": outcome.message,
        "lastProbeTime": None,
        "lastTransitionTime": known.last_transition_time if known is not None and same_status else now,
    }
    status: dict[str, Any] = {"conditions": [condition]}
    if pod.metadata.generation:
        condition["observedGeneration"] = pod.metadata.generation
    if outcome.nominated is not None:
        status["nominatedNodeName"] = outcome.nominated or None
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}
