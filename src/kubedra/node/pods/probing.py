"""Startup, liveness and readiness probes of a running container.

Counting is pure (Counter), a task per probe does the asking. Until a startup probe has succeeded the others wait; a
container with a readiness probe is not ready until it says so; one that fails its liveness or startup probe is
stopped and restarted by its policy. Upstream counterpart: pkg/kubelet/prober.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from kubedra.api.core_v1 import Container, Probe
from kubedra.base.clock import Clock
from kubedra.node.pods.handlers import ActionFailed, Actions

ProbeKind = Literal["Startup", "Liveness", "Readiness"]


class Counter:
    """Turns single results into a verdict, by the probe's thresholds."""

    def __init__(self, probe: Probe, verdict: bool) -> None:
        self._success = probe.success_threshold or 1
        self._failure = probe.failure_threshold or 3
        self._last: bool | None = None
        self._count = 0
        self.verdict = verdict

    def add(self, success: bool) -> bool:
        """Another result; whether the verdict was reached (again) by it."""
        self._count = self._count + 1 if success is self._last else 1
        self._last = success
        if self._count < (self._success if success else self._failure):
            return False
        self.verdict = success
        return True


class Probing:
    """The probes of one run of a container."""

    def __init__(
        self,
        spec: Container,
        actions: Actions,
        clock: Clock,
        *,
        changed: Callable[[], None],
        unhealthy: Callable[[ProbeKind, str], None],
        failed: Callable[[ProbeKind, Probe], None],
    ) -> None:
        self._spec = spec
        self._actions = actions
        self._clock = clock
        self._changed = changed
        self._unhealthy = unhealthy
        self._failed = failed
        self._tasks: list[asyncio.Task[None]] = []
        self._started = asyncio.Event()
        self.ready = spec.readiness_probe is None
        if spec.startup_probe is None:
            self._started.set()

    @property
    def started(self) -> bool:
        """Whether the startup probe has succeeded, or there is none."""
        return self._started.is_set()

    def start(self) -> None:
        """Begins to ask."""
        probes: tuple[tuple[ProbeKind, Probe | None], ...] = (
            ("Startup", self._spec.startup_probe),
            ("Liveness", self._spec.liveness_probe),
            ("Readiness", self._spec.readiness_probe),
        )
        for kind, probe in probes:
            if probe is not None:
                name = f"{kind} probe of {self._spec.name}"
                self._tasks.append(asyncio.create_task(self._ask(kind, probe), name=name))

    def stop(self) -> None:
        """Ends; the container has ended or is to end."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self.ready = False

    async def _ask(self, kind: ProbeKind, probe: Probe) -> None:
        if kind != "Startup":
            await self._started.wait()
        counter = Counter(probe, kind == "Liveness")
        if probe.initial_delay_seconds:
            await self._clock.sleep(probe.initial_delay_seconds)
        while True:
            timeout = float(probe.timeout_seconds or 1)
            try:
                await self._actions.any(timeout, probe.exec, probe.http_get, probe.tcp_socket, probe.grpc)
                success = True
            except ActionFailed as error:
                success = False
                self._unhealthy(kind, f"{kind} probe failed: {error}")
            if counter.add(success):
                if kind == "Readiness":
                    if self.ready != counter.verdict:
                        self.ready = counter.verdict
                        self._changed()
                elif not counter.verdict:
                    self._failed(kind, probe)
                    return
                elif kind == "Startup":
                    self._started.set()
                    self._changed()
                    return
            await self._clock.sleep(float(probe.period_seconds or 10))


def has_probes(container: Container) -> bool:
    """Whether there is anything to ask."""
    return any((container.startup_probe, container.liveness_probe, container.readiness_probe))
