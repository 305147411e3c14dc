"""Looks after a pod's running containers: hooks, probes, their end, and stopping them with grace.

Upstream counterpart: pkg/kubelet/prober/prober_manager.go, the lifecycle hooks in startContainer and killContainer of
pkg/kubelet/kuberuntime.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from kubedra.api.core_v1 import Pod, Probe
from kubedra.node.pods.books import ContainerBook
from kubedra.node.pods.handlers import ActionFailed, Actions
from kubedra.node.pods.probing import ProbeKind, Probing, has_probes
from kubedra.node.pods.services import NodeServices
from kubedra.node.pods.starting import termination_message
from kubedra.node.pods.stopping import grace_seconds, stop_containers
from kubedra.node.runtime.contract import Container

# How long a postStart hook may take; upstream sets no limit, and a container behind it would wait for ever.
HOOK_SECONDS = 120.0


class Attendant:
    """For one pod. ``event`` takes type, reason and sentence; ``changed`` is called when the pod must be looked at."""

    def __init__(
        self,
        services: NodeServices,
        pod: Callable[[], Pod],
        event: Callable[[str, str, str], None],
        changed: Callable[[], None],
    ) -> None:
        self._services = services
        self._pod = pod
        self._event = event
        self._changed = changed
        self._tasks: set[asyncio.Task[None]] = set()

    def leave(self, books: Iterable[ContainerBook]) -> None:
        """Stops looking; the containers run on."""
        for book in books:
            if book.probing is not None:
                book.probing.stop()
        for task in self._tasks:
            task.cancel()

    def watch(self, book: ContainerBook, container: Container) -> None:
        """Waits for the end of a run in the background, and asks its probes meanwhile."""

        def settle() -> None:
            if book.handle is container and book.running and container.exit is not None:
                book.ended(container.exit)
                book.termination_message = termination_message(book.spec, container.config, container.exit.code)

        async def wait() -> None:
            await container.wait()
            settle()
            self._changed()

        if container.exit is not None:
            settle()
            return
        if has_probes(book.spec):
            self._probe(book, container)
        self._spawn(wait(), f"end of {container!r}")

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _actions(self, book: ContainerBook, handle: Container) -> Actions:
        return Actions(self._services.runtime, book.spec, handle, self._services.settings.address)

    async def post_start(self, book: ContainerBook, handle: Container) -> None:
        """Runs the hook of a container that was just started; one that fails ends the container."""
        hook = book.spec.lifecycle.post_start if book.spec.lifecycle is not None else None
        if hook is None:
            return
        try:
            await self._actions(book, handle).hook(hook, HOOK_SECONDS, self._services.clock)
        except ActionFailed as error:
            self._event("Warning", "FailedPostStartHook", f"PostStartHook failed: {error}")
            handle.kill()

    def _probe(self, book: ContainerBook, handle: Container) -> None:
        name, clock = book.spec.name, self._services.clock

        def unhealthy(kind: ProbeKind, text: str) -> None:
            self._event("Warning", "Unhealthy", text)

        def failed(kind: ProbeKind, probe: Probe) -> None:
            self._event("Normal", "Killing", f"Container {name} failed {kind.lower()} probe, will be restarted")
            seconds = probe.termination_grace_period_seconds
            grace = grace_seconds(self._pod()) if seconds is None else float(seconds)
            self._spawn(stop_containers([handle], grace, clock), f"stop {name}")

        actions = self._actions(book, handle)
        book.probing = Probing(book.spec, actions, clock, changed=self._changed, unhealthy=unhealthy, failed=failed)
        book.probing.start()

    async def stop(self, book: ContainerBook, grace: float) -> None:
        """Runs the preStop hook, then stops the container; all within the grace period."""
        clock, handle = self._services.clock, book.handle
        assert handle is not None
        if book.probing is not None:
            book.probing.stop()
        hook = book.spec.lifecycle.pre_stop if book.spec.lifecycle is not None else None
        if hook is not None:
            begin = clock.monotonic()
            try:
                await self._actions(book, handle).hook(hook, grace, clock)
            except ActionFailed as error:
                self._event("Warning", "FailedPreStopHook", f"PreStopHook failed: {error}")
            # Upstream: a hook that used up the grace period leaves the container two seconds.
            grace = max(grace - (clock.monotonic() - begin), 2.0)
        await stop_containers([handle], grace, clock)
