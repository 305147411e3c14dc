"""The shell: watches come in, one pod at a time is tried, bindings run beside it.

Watch events are queued and applied between two attempts. An attempt is driven in steps and the loop is given back
after a few milliseconds, so an API server in the same process keeps answering while a hard claim is searched for.

Must never: block the loop, lose a pod because something unforeseen went wrong with another one.

Upstream: pkg/scheduler/scheduler.go and schedule_one.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.checker import Checker
from kubedra.allocation.engine import cel_engine, cel_matches, check_features
from kubedra.allocation.features import Features
from kubedra.allocation.inventory import Inventory
from kubedra.allocation.ledger import Ledger
from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.api.resource_v1 import ResourceClaim
from kubedra.base.clock import Clock, format_time
from kubedra.client.clock import RealClock
from kubedra.client.events import EventRecorder
from kubedra.client.protocol import Client
from kubedra.client.watch_cache import WatchCache
from kubedra.scheduler import conditions
from kubedra.scheduler.audit import audit
from kubedra.scheduler.binding import Binder, PodGone
from kubedra.scheduler.claims import ClaimStore
from kubedra.scheduler.conditions import Outcome
from kubedra.scheduler.cycle import Cycle, NoPlace, Placed
from kubedra.scheduler.dra import DynamicResources
from kubedra.scheduler.extended import ExtendedResources
from kubedra.scheduler.intake import Intake
from kubedra.scheduler.metrics import SchedulerMetrics
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.queue import Place, QueuedPod, SchedulingQueue
from kubedra.scheduler.sentences import Sentences
from kubedra.scheduler.settings import SchedulerSettings
from kubedra.scheduler.view import ClusterView
from kubedra.scheduler.writing import WriteError, Writer

log = logging.getLogger(__name__)
T = TypeVar("T")


class Scheduler:
    """Places the pods that name this scheduler. `run` until cancelled."""

    def __init__(self, client: Client, settings: SchedulerSettings | None = None, clock: Clock | None = None) -> None:
        self.settings = settings or SchedulerSettings()
        self._client = client
        self._clock: Clock = clock or RealClock()
        gates = self.settings.feature_gates
        features = Features.of(gates)
        self.view = ClusterView()
        inventory = Inventory(cel_engine(features), features)
        ledger = Ledger(features.consumable_capacity)
        matches = cel_matches(features)
        self.store = ClaimStore(ledger, Checker(matches, check_features(features), matches.derive))
        self.dra = DynamicResources(
            inventory,
            Allocator(inventory, ledger, new_share_id=lambda: str(uuid.uuid4())),
            self.store,
            ExtendedResources(gates.enabled("DRAExtendedResource")),
            binding_timeout=self.settings.binding_timeout,
            filter_timeout=self.settings.filter_timeout,
            monotonic=self._clock.monotonic,
        )
        self.queue = SchedulingQueue(self._gate, self.settings.queue)
        self.intake = Intake(self.view, self.dra, self.queue, self.settings.scheduler_name)
        self.metrics = SchedulerMetrics(self.settings.scheduler_name)
        self._sentences = Sentences(self.dra)
        self._cycle = Cycle(self.view, self.dra, exhaustive_nodes=self.settings.exhaustive_nodes)
        self._recorder = EventRecorder(client, self.settings.scheduler_name, clock=self._clock)
        self._writer = Writer(client, lambda namespace, name: self.store.get((namespace, name)), self._clock)
        self._binder = Binder(
            self._writer,
            self.store,
            self._recorder,
            self.metrics,
            self.settings,
            self._clock,
            defer=self._defer,
            changed=self._claim_changed,
            is_wanted=lambda uid: self.queue.get(uid) is not None,
        )
        self._inbox: deque[Callable[[], None]] = deque()
        self._busy = False
        self._work = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._saying: dict[str, asyncio.Task[None]] = {}
        self._bindings = asyncio.Semaphore(self.settings.bindings)
        self._reported_gates: dict[str, str] = {}
        self._gates_looked_at = float("-inf")
        self.halted = ""
        """Why nothing is scheduled any more; empty as long as all is well."""

    def __repr__(self) -> str:
        return f"<Scheduler {self.settings.scheduler_name} {self.queue!r} {self.view!r}>"

    # --- life -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until cancelled; writes under way are abandoned, the next start takes up where they ended."""
        caches = self._watch()
        self._recorder.start()
        try:
            await asyncio.gather(*(cache.start() for cache in caches))
            await self._loop()
        finally:
            for task in (*self._tasks, *self._saying.values()):
                task.cancel()
            await asyncio.gather(*self._tasks, *self._saying.values(), return_exceptions=True)
            for cache in caches:
                await cache.stop()
            await self._recorder.stop()

    def _watch(self) -> list[WatchCache[Any]]:
        intake, gates = self.intake, self.settings.feature_gates
        wanted: list[tuple[kinds.Kind[Any], Callable[[Any, Any, float], None]]] = [
            (kinds.NODE, intake.node),
            (kinds.NAMESPACE, intake.namespace),
            (kinds.DEVICE_CLASS, intake.device_class),
            (kinds.RESOURCE_SLICE, intake.resource_slice),
            (kinds.RESOURCE_CLAIM, self._on_claim),
            (kinds.POD, intake.pod),
        ]
        if gates.enabled("DRADeviceTaints") and gates.enabled("DRADeviceTaintRules"):
            wanted.append((kinds.DEVICE_TAINT_RULE, intake.taint_rule))
        caches = []
        for kind, apply in wanted:
            cache: WatchCache[Any] = WatchCache(self._client, kind, clock=self._clock)
            cache.add_handler(self._handler(apply))
            caches.append(cache)
        return caches

    def _handler(self, apply: Callable[[Any, Any, float], None]) -> Callable[[Any, Any], None]:
        def handle(old: Any, new: Any) -> None:
            self._inbox.append(lambda: apply(old, new, self._clock.monotonic()))
            self._work.set()

        return handle

    def _on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None, now: float) -> None:
        self.intake.claim(old, new, now)
        self._binder.claims_moved()

    def _claim_changed(self, before: ResourceClaim | None, after: ResourceClaim) -> None:
        self.intake.claim_changed(before, self.store.get((after.metadata.namespace, after.metadata.name)), self._now())
        self._work.set()

    def _defer(self, change: Callable[[], None]) -> None:
        """Change the scheduler's state now, or after the attempt that is under way."""
        if self._busy or self._inbox:
            self._inbox.append(change)
        else:
            change()
        self._work.set()

    def _now(self) -> float:
        return self._clock.monotonic()

    # --- the loop -------------------------------------------------------------------------------------

    async def _loop(self) -> None:
        audited = self._now()
        while True:
            self._work.clear()
            await self._apply_inbox()
            if self.halted:
                await self._work.wait()
                continue
            self._report_gates()
            if self.settings.audit_seconds and self._now() - audited >= self.settings.audit_seconds:
                await self._audit()
                audited = self._now()
            entry = self.queue.pop(self._now())
            if entry is None:
                await self._sleep_until_work()
                continue
            try:
                await self._attempt(entry)
            except Exception as error:
                # One pod that trips over a bug of ours must not stop all others.
                log.exception("placing pod %s failed", entry.pod.key)
                self._busy = False
                self._error(entry, f"internal error of kubedra's scheduler: {error}", self._now())
            await asyncio.sleep(0)

    async def _apply_inbox(self) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        inbox = self._inbox
        while inbox:
            change = inbox.popleft()
            try:
                change()
            except Exception:
                log.exception("an event could not be applied")
            if loop.time() - started > self.settings.slice_seconds:
                await asyncio.sleep(0)
                started = loop.time()
        self.intake.settle(self._now())

    async def _sleep_until_work(self) -> None:
        if self._inbox or self._work.is_set():
            return
        times = [t for t in (self.queue.next_flush(), self._next_gate_report()) if t is not None]
        if not times:
            await self._work.wait()
            return
        waits = [
            asyncio.ensure_future(self._work.wait()),
            asyncio.ensure_future(self._clock.sleep(max(min(times) - self._now(), 0.001))),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _drive(self, steps: Generator[None, None, T]) -> T:
        """Run steps to their end, giving the loop back in between; nothing else changes our state meanwhile."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        self._busy = True
        try:
            while True:
                try:
                    next(steps)
                except StopIteration as stop:
                    result: T = stop.value
                    return result
                if loop.time() - started > self.settings.slice_seconds:
                    await asyncio.sleep(0)
                    started = loop.time()
        finally:
            self._busy = False

    async def _audit(self) -> None:
        difference = await self._drive(audit(self.store, self.dra.inventory.features.consumable_capacity))
        if difference:
            self.halted = difference
            log.critical("scheduling has stopped: what is taken was not kept right: %s", difference)

    # --- one pod --------------------------------------------------------------------------------------

    async def _attempt(self, entry: QueuedPod) -> None:
        started = self._now()
        pod = entry.pod
        verdict = await self._drive(self._cycle.place(pod, self._clock.now()))
        self.metrics.algorithm.observe(self._now() - started)
        if isinstance(verdict, Placed):
            self._spawn(self._bind(entry, pod, verdict, started))
        elif isinstance(verdict, NoPlace):
            await self._no_place(entry, verdict, started)
        else:
            self._error(entry, verdict.message, started, verdict.ours)

    async def _no_place(self, entry: QueuedPod, verdict: NoPlace, started: float) -> None:
        self.queue.failed(entry, verdict.plugins, self._now())
        self.metrics.attempt("unschedulable", self._now() - started)
        if verdict.rescue is not None:
            self._spawn(self._rescue(verdict))
        sentence = self._sentences.quick(verdict, self._now())
        if sentence is None:
            sentence = await self._slow_sentence(verdict)
        self._say(entry.pod, conditions.UNSCHEDULABLE, verdict.message, sentence)

    async def _slow_sentence(self, verdict: NoPlace) -> str:
        """On a large cluster the explanation takes its time: in a thread, while events wait."""
        if len(verdict.rejections) <= self.settings.exhaustive_nodes:
            return self._sentences.slow(verdict, self._now())
        self._busy = True
        try:
            return await asyncio.to_thread(self._sentences.slow, verdict, self._now())
        finally:
            self._busy = False

    def _error(
        self, entry: QueuedPod, message: str, started: float, ours: str = "", nominated: str | None = None
    ) -> None:
        self.queue.errored(entry, self._now())
        self.metrics.attempt("error", self._now() - started)
        self._say(entry.pod, conditions.SCHEDULER_ERROR, message, ours, nominated)

    async def _rescue(self, verdict: NoPlace) -> None:
        rescue = verdict.rescue
        assert rescue is not None
        try:
            if rescue.delete:
                await self._writer.delete_claim(rescue.claim)
                return
            written = await self._writer.deallocate(rescue.claim)
        except (ApiError, ConnectionError) as error:
            log.warning("claim %s could not be released: %s", rescue.claim.metadata.name, error)
            return
        if written is not None:
            self._defer(lambda: self._assume_written(written))

    def _assume_written(self, claim: ResourceClaim) -> None:
        before = self.store.get((claim.metadata.namespace, claim.metadata.name))
        self.store.assume(claim)
        self._claim_changed(before, claim)

    async def _bind(self, entry: QueuedPod, pod: PodInfo, placed: Placed, started: float) -> None:
        async with self._bindings:
            saying = self._saying.get(pod.uid)
            if saying is not None:
                # What is still being written about an earlier attempt must not arrive after the binding.
                await asyncio.wait({saying})
            try:
                await self._binder.bind(pod, placed)
            except PodGone:
                self._defer(lambda: self._undo_placement(pod, placed))
                return
            except Exception as error:
                if not isinstance(error, WriteError | ApiError | ConnectionError):
                    log.exception("binding pod %s failed", pod.key)
                message = str(error)

                def undo() -> None:
                    self._undo_placement(pod, placed)
                    if self.queue.get(pod.uid) is entry:
                        self._error(entry, message, started, nominated="")

                self._defer(undo)
                return
        now = self._now()
        self.metrics.attempt("scheduled", now - started)
        self.metrics.bound(now - entry.added, entry.attempts)
        self._recorder.event(
            pod.pod, kinds.POD, "Normal", "Scheduled", f"Successfully assigned {pod.key} to {placed.node}", "Binding"
        )

    def _undo_placement(self, pod: PodInfo, placed: Placed) -> None:
        now = self._now()
        if self.view.forget(pod.uid):
            self.intake.pod_left(placed.node, now)
        if placed.reserved:
            self.intake.devices_released()

    # --- saying why -----------------------------------------------------------------------------------

    def _say(self, pod: PodInfo, reason: str, message: str, ours: str, nominated: str | None = None) -> None:
        text = conditions.compose(message, ours)
        self._recorder.event(pod.pod, kinds.POD, "Warning", "FailedScheduling", text, "Scheduling")
        self._write_condition(pod, Outcome(reason, text, nominated))

    def _write_condition(self, pod: PodInfo, outcome: Outcome) -> None:
        entry = self.queue.get(pod.uid)
        if entry is None or not conditions.is_news(entry.pod.pod, outcome):
            return
        before = self._saying.get(pod.uid)
        task = asyncio.create_task(self._patch_condition(pod.uid, outcome, before))
        self._saying[pod.uid] = task

        def done(finished: asyncio.Task[None]) -> None:
            if self._saying.get(pod.uid) is finished:
                del self._saying[pod.uid]

        task.add_done_callback(done)

    async def _patch_condition(self, uid: str, outcome: Outcome, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        entry = self.queue.get(uid)
        if entry is None or (entry.place is Place.IN_FLIGHT and outcome.reason == conditions.SCHEDULING_GATED):
            return
        patch = conditions.patch(entry.pod.pod, outcome, format_time(self._clock.now()))
        try:
            await self._writer.patch_pod_status(entry.pod, patch)
        except (ApiError, ConnectionError) as error:
            log.warning("the condition of pod %s could not be written: %s", entry.pod.key, error)

    # --- gates ----------------------------------------------------------------------------------------

    def _gate(self, pod: PodInfo) -> str | None:
        if pod.spec.scheduling_gates:
            return conditions.GATED_MESSAGE
        return self.dra.gate(pod)

    def _report_gates(self) -> None:
        """Say why pods are held back, once that lasted for a moment; upstream keeps it to itself."""
        now = self._now()
        if now < self._gates_looked_at + self.settings.gate_report_after / 4:
            return
        self._gates_looked_at = now
        until = now - self.settings.gate_report_after
        for entry in self.queue.waiting(Place.GATED):
            uid = entry.pod.uid
            if entry.changed > until or self._reported_gates.get(uid) == entry.gate:
                continue
            self._reported_gates[uid] = entry.gate
            gated = bool(entry.pod.spec.scheduling_gates)
            reason = conditions.SCHEDULING_GATED if gated else conditions.UNSCHEDULABLE
            self._write_condition(entry.pod, Outcome(reason, entry.gate))
        if len(self._reported_gates) > 2 * self.queue.counts()[Place.GATED] + 64:
            self._reported_gates = {
                uid: gate for uid, gate in self._reported_gates.items() if self.queue.get(uid) is not None
            }

    def _next_gate_report(self) -> float | None:
        if not self.queue.counts()[Place.GATED]:
            return None
        unreported = any(
            self._reported_gates.get(entry.pod.uid) != entry.gate for entry in self.queue.waiting(Place.GATED)
        )
        return self._gates_looked_at + self.settings.gate_report_after / 4 if unreported else None

    # --- tasks ----------------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        with contextlib.suppress(asyncio.CancelledError):
            error = task.exception()
            if error is not None:
                log.error("a background task of the scheduler failed", exc_info=error)
