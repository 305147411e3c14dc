"""What a pod's containers should do next: start, wait, stop, or be done.

Pure. The worker tells how every container stands; the answer says which to start now, which to stop, when to look
again, and whether the pod has ended. Upstream counterpart: computePodActions of pkg/kubelet/kuberuntime and
getPhase of pkg/kubelet/kubelet_pods.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from kubedra.api.core_v1 import Container, Pod

Ended = Literal["", "Succeeded", "Failed"]
Role = Literal["init", "sidecar", "main"]


class View(msgspec.Struct, frozen=True):
    """How one container stands. ``started``: its startup probe, if any, has succeeded; ``not_before``: when it may be
    started (again)."""

    running: bool = False
    started: bool = True
    exit_code: int | None = None
    not_before: datetime | None = None


class Decision(msgspec.Struct, frozen=True):
    """What to do now. ``wake_at`` is set when something may be started later."""

    start: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    wake_at: datetime | None = None
    ended: Ended = ""
    initialized: bool = False


class Backoff(msgspec.Struct, frozen=True):
    """How long a container that ended waits before it is started again."""

    first: float = 10.0
    last: float = 300.0
    forgotten: float = 600.0

    def delay(self, crashes: int) -> float:
        """Seconds after the ``crashes``-th end in a row: the first restart is immediate, then it doubles."""
        return 0.0 if crashes <= 1 else min(self.first * 2.0 ** min(crashes - 2, 30), self.last)


def role(pod: Pod, container: Container) -> Role:
    """Init containers that are restarted always are sidecars."""
    if container in pod.spec.containers:
        return "main"
    return "sidecar" if container.restart_policy == "Always" else "init"


def restarts(pod: Pod, container: Container, exit_code: int) -> bool:
    """Whether a container that ended with this code is started again."""
    for rule in container.restart_policy_rules:
        codes = rule.exit_codes
        if codes is not None and rule.action == "Restart" and (exit_code in codes.values) == (codes.operator == "In"):
            return True
    policy = container.restart_policy or pod.spec.restart_policy or "Always"
    if container not in pod.spec.containers and policy == "Always" and container.restart_policy != "Always":
        policy = "OnFailure"  # an init container that succeeded is done
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def decide(pod: Pod, views: Mapping[str, View], now: datetime) -> Decision:
    """The next step of a pod that is not being deleted."""
    start: list[str] = []
    wakes: list[datetime] = []

    def may_start(container: Container) -> None:
        view = views[container.name]
        if view.not_before is None or view.not_before <= now:
            start.append(container.name)
        else:
            wakes.append(view.not_before)

    def wanted(container: Container) -> bool:
        code = views[container.name].exit_code
        return code is None or restarts(pod, container, code)

    def decision(**more: object) -> Decision:
        return Decision(tuple(start), wake_at=min(wakes, default=None), **more)  # type: ignore[arg-type]

    begun = any(_begun(views[container.name]) for container in pod.spec.containers)
    for container in () if begun else pod.spec.init_containers:
        view = views[container.name]
        if role(pod, container) == "init" and not view.running and view.exit_code and not wanted(container):
            return _wind_up(pod, views, "Failed", initialized=False)
    for container in pod.spec.init_containers:
        view = views[container.name]
        if role(pod, container) == "sidecar":
            if not view.running:
                if _mains_done(pod, views):
                    continue
                may_start(container)
            if not begun and not (view.running and view.started):
                return decision()
        elif not begun and view.exit_code != 0:
            if not view.running:
                may_start(container)
            return decision()
    if _mains_done(pod, views):
        failed = any(views[container.name].exit_code != 0 for container in pod.spec.containers)
        return _wind_up(pod, views, "Failed" if failed else "Succeeded", initialized=True)
    for container in pod.spec.containers:
        if not views[container.name].running and wanted(container):
            may_start(container)
    return decision(initialized=True)


def _begun(view: View) -> bool:
    return view.running or view.exit_code is not None


def _mains_done(pod: Pod, views: Mapping[str, View]) -> bool:
    def done(container: Container) -> bool:
        view = views[container.name]
        return not view.running and view.exit_code is not None and not restarts(pod, container, view.exit_code)

    return bool(pod.spec.containers) and all(done(container) for container in pod.spec.containers)


def _wind_up(pod: Pod, views: Mapping[str, View], ended: Ended, *, initialized: bool) -> Decision:
    """All that counts has ended: sidecars are stopped, the last one first, then the pod has ended."""
    running = [c.name for c in reversed(pod.spec.init_containers) if views[c.name].running]
    if running:
        return Decision(stop=(running[0],), initialized=initialized)
    return Decision(ended=ended, initialized=initialized)
