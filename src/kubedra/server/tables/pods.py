"""Cells of pods: the ready count, and the one word that says how a pod is.

Upstream counterpart: printPod in pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubedra.base.clock import parse_time
from kubedra.server.tables.cells import age

Tree = dict[str, Any]


def _statuses(pod: Tree, member: str) -> list[Tree]:
    found: list[Tree] = (pod.get("status") or {}).get(member) or []
    return found


def _restartable(pod: Tree) -> set[str]:
    containers = (pod.get("spec") or {}).get("initContainers") or ()
    return {c["name"] for c in containers if c.get("restartPolicy") == "Always"}


def ready(pod: Tree) -> str:
    """Ready containers of all, sidecars included."""
    sidecars = _restartable(pod)
    total = len((pod.get("spec") or {}).get("containers") or ()) + len(sidecars)
    done = sum(1 for s in _statuses(pod, "containerStatuses") if s.get("ready") and _running(s))
    done += sum(
        1
        for s in _statuses(pod, "initContainerStatuses")
        if s.get("name") in sidecars and s.get("started") and s.get("ready")
    )
    return f"{done}/{total}"


def _running(status: Tree) -> bool:
    return "running" in (status.get("state") or {})


def phase(pod: Tree) -> str:
    """The word of the Status column."""
    status = pod.get("status") or {}
    reason: str = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    initializing, word = _init_word(pod)
    if initializing:
        reason = word
    if not initializing or _initialized(pod):
        reason = _container_word(pod, reason)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Failed", "Succeeded"):
            return "Terminating"
    return reason


def _initialized(pod: Tree) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Initialized" and c.get("status") == "True" for c in conditions)


def _init_word(pod: Tree) -> tuple[bool, str]:
    sidecars = _restartable(pod)
    statuses = _statuses(pod, "initContainerStatuses")
    total = len((pod.get("spec") or {}).get("initContainers") or ())
    for index, status in enumerate(statuses):
        state = status.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if status.get("name") in sidecars and status.get("started"):
            continue
        if ended is not None:
            if ended.get("reason"):
                return True, f"Init:{ended['reason']}"
            if ended.get("signal"):
                return True, f"Init:Signal:{ended['signal']}"
            return True, f"Init:ExitCode:{ended.get('exitCode', 0)}"
        if waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            return True, f"Init:{waiting['reason']}"
        return True, f"Init:{index}/{total}"
    return False, ""


def _container_word(pod: Tree, reason: str) -> str:
    running = False
    for status in reversed(_statuses(pod, "containerStatuses")):
        state = status.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif ended is not None:
            if ended.get("reason"):
                reason = ended["reason"]
            elif ended.get("signal"):
                reason = f"Signal:{ended['signal']}"
            else:
                reason = f"ExitCode:{ended.get('exitCode', 0)}"
        elif status.get("ready") and _running(status):
            running = True
    if reason == "Completed" and running:
        conditions = (pod.get("status") or {}).get("conditions") or ()
        is_ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
        reason = "Running" if is_ready else "NotReady"
    return reason


def restarts(pod: Tree, now: datetime) -> str:
    """How often containers were restarted, and when the last one was."""
    total, last = 0, ""
    for status in (*_statuses(pod, "containerStatuses"), *_statuses(pod, "initContainerStatuses")):
        total += status.get("restartCount", 0)
        ended = (status.get("lastState") or {}).get("terminated") or {}
        last = max(last, ended.get("finishedAt") or "")
    if total and last:
        return f"{total} ({age(parse_time(last), now)} ago)"
    return str(total)


def readiness_gates(pod: Tree) -> str:
    """Fulfilled gates of all."""
    gates = (pod.get("spec") or {}).get("readinessGates") or ()
    if not gates:
        return "<none>"
    conditions = (pod.get("status") or {}).get("conditions") or ()
    fulfilled = {c.get("type") for c in conditions if c.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in fulfilled)}/{len(gates)}"
