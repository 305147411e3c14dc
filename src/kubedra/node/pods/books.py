"""One container of a pod as the worker keeps track of it: runs, crashes, and when it may start again.

Upstream counterpart: the pod status cache and the back-off of the kuberuntime manager.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kubedra.api.core_v1 import Container as ContainerSpec
from kubedra.api.core_v1 import Pod
from kubedra.base.clock import parse_time
from kubedra.node.pods.lifecycle import Backoff, View, restarts
from kubedra.node.pods.probing import Probing
from kubedra.node.pods.status import ContainerRecord, Run
from kubedra.node.runtime.contract import Container, ContainerExit

_START_RETRY = Backoff(first=1.0, last=30.0)


def go_duration(seconds: float) -> str:
    """A duration as Go prints it: 10s, 1m20s, 5m0s."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return (f"{hours}h" if hours else "") + f"{minutes}m{left}s"


class ContainerBook:
    """What is known of one container over all its runs."""

    def __init__(self, spec: ContainerSpec, backoff: Backoff) -> None:
        self.spec = spec
        self._backoff = backoff
        self.handle: Container | None = None
        self.handles: list[Container] = []
        self.current: Run | None = None
        self.previous: Run | None = None
        self.attempt = 0
        self.not_before: datetime | None = None
        self.waiting: tuple[str, str] = ("", "")
        self.probing: Probing | None = None
        self.termination_message = ""
        self._crashes = 0
        self._failures = 0

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self.current is not None and self.current.exit is None

    @property
    def view(self) -> View:
        """For deciding."""
        code = self.current.exit.code if self.current is not None and self.current.exit is not None else None
        return View(self.running, self.probing is None or self.probing.started, code, self.not_before)

    def record(self, resources_status: tuple[dict[str, Any], ...]) -> ContainerRecord:
        """For the status."""
        reason, message = self.waiting
        return ContainerRecord(
            self.current,
            self.previous,
            max(self.attempt - 1, 0),
            reason,
            message,
            None if self.probing is None else self.probing.ready,
            self.probing is None or self.probing.started,
            self.termination_message,
            resources_status,
        )

    def adopt(self, handle: Container) -> None:
        """A run of an earlier agent was found; called oldest first."""
        self.started(handle)
        if handle.exit is not None:
            self.ended(handle.exit)
        self.not_before = None

    def started(self, handle: Container) -> None:
        """A run began."""
        self.handle = handle
        self.handles.append(handle)
        self.attempt = handle.config.attempt + 1
        self._begin(Run(handle.config.id, handle.started))
        self._failures = 0

    def _begin(self, run: Run) -> None:
        if self.current is not None:
            self.previous = self.current
        self.current = run
        self.waiting = ("", "")
        self.not_before = None
        self.termination_message = ""

    def ended(self, end: ContainerExit) -> None:
        """The run ended."""
        assert self.current is not None
        if self.probing is not None:
            self.probing.stop()
        run = Run(self.current.id, self.current.started, end)
        self.current = run
        ran = 0.0
        if run.started and end.finished:
            ran = (_time(end.finished) - _time(run.started)).total_seconds()
        self._crashes = 1 if ran >= self._backoff.forgotten else self._crashes + 1

    def could_not_run(self, run_id: str, message: str, now: str) -> None:
        """The command itself can't be executed: counts as a run that failed at once."""
        self.attempt += 1
        self._begin(Run(run_id, now))
        self.ended(ContainerExit(128, finished=now, message=message, reason="StartError"))

    def outlived(self) -> list[Container]:
        """The runs before the previous one: nobody can ask for them any more, so their traces may go."""
        old, self.handles = self.handles[:-2], self.handles[-2:]
        return old

    def never_ran(self) -> None:
        """The pod goes before the container ever ran: upstream tells it as one that was lost."""
        if self.current is None:
            end = ContainerExit(
                137,
                message="The container could not be located when the pod was terminated",
                reason="ContainerStatusUnknown",
            )
            self.current = Run("", exit=end)
            self.waiting = ("", "")

    def could_not_start(self, reason: str, message: str, now: datetime) -> None:
        """Something else was in the way: tried again soon."""
        self._failures += 1
        self.waiting = (reason, message)
        self.not_before = now + timedelta(seconds=max(_START_RETRY.delay(self._failures + 1), 1.0))

    def schedule_restart(self, pod: Pod, now: datetime) -> float:
        """Sets when a run that ended is followed by the next; seconds to wait, 0 when none or at once."""
        if self.current is None or self.current.exit is None or self.not_before is not None:
            return 0.0
        end = self.current.exit
        if not restarts(pod, self.spec, end.code):
            return 0.0
        delay = self._backoff.delay(self._crashes)
        finished = _time(end.finished) if end.finished else now
        self.not_before = finished + timedelta(seconds=delay)
        if self.not_before <= now:
            return 0.0
        meta = pod.metadata
        text = f"back-off {go_duration(delay)} restarting failed container={self.spec.name} "
        self.waiting = ("CrashLoopBackOff", f"{text}pod={meta.name}_{meta.namespace}({meta.uid})")
        return delay


def _time(text: str) -> datetime:
    # Nanoseconds are one digit group more than Python reads.
    head, dot, tail = text.partition(".")
    return parse_time(f"{head}.{tail.rstrip('Z')[:6]}Z" if dot else text)
