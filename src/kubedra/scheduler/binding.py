"""What happens after a node was chosen: claims first, then the pod; and everything undone when a step fails.

Runs as a background task for each pod, beside the attempts for the next ones. It reads the scheduler's state freely
but changes it only through `defer`, so that an attempt that is under way sees one picture.

Must never: bind a pod whose claims are not allocated and reserved for it; leave devices taken in the ledger for a pod
that was not bound.

Upstream: PreBind, bindClaim and Unreserve of dynamicresources.go; bindingCycle in schedule_one.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from kubedra.api import kinds
from kubedra.api.codec import to_tree
from kubedra.api.errors import ApiError
from kubedra.api.resource_v1 import ResourceClaim
from kubedra.base.clock import Clock, format_time
from kubedra.client.events import EventRecorder
from kubedra.scheduler import binding_conditions, claim_writes
from kubedra.scheduler.claims import ClaimStore
from kubedra.scheduler.cycle import Placed
from kubedra.scheduler.dra import Reserved
from kubedra.scheduler.extended import creation_tree
from kubedra.scheduler.metrics import SchedulerMetrics
from kubedra.scheduler.pods import PodInfo
from kubedra.scheduler.settings import SchedulerSettings
from kubedra.scheduler.writing import WriteError, Writer

log = logging.getLogger(__name__)

PRE_BIND = 'running PreBind plugin "DynamicResources": '


class PodGone(Exception):
    """The pod was deleted while it was being bound: nobody is to be told."""


class Binder:
    """Carries out placements."""

    def __init__(
        self,
        writer: Writer,
        store: ClaimStore,
        recorder: EventRecorder,
        metrics: SchedulerMetrics,
        settings: SchedulerSettings,
        clock: Clock,
        *,
        defer: Callable[[Callable[[], None]], None],
        changed: Callable[[ResourceClaim | None, ResourceClaim], None],
        is_wanted: Callable[[str], bool],
    ) -> None:
        self._writer = writer
        self._store = store
        self._recorder = recorder
        self._metrics = metrics
        self._settings = settings
        self._clock = clock
        self._defer = defer
        self._changed = changed
        self._is_wanted = is_wanted
        gates = settings.feature_gates
        self._timestamps = gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")
        self._claims_moved = asyncio.Event()

    def claims_moved(self) -> None:
        """Some claim changed: those who wait for binding conditions look again."""
        if self._claims_moved.is_set():
            return
        self._claims_moved.set()

    async def bind(self, pod: PodInfo, placed: Placed) -> bool:
        """Write claims, wait for devices, bind. Raises WriteError after having undone what was done.

        Says whether status.nominatedNodeName was set on the way.
        """
        written: list[ResourceClaim] = []
        nominated = False
        try:
            try:
                for reserved in placed.reserved:
                    written.append(await self._bind_claim(pod, reserved))
                if any(binding_conditions.has_conditions(claim) for claim in written):
                    nominated = await self._await_devices(pod, placed.node, written)
            except WriteError as error:
                raise WriteError(PRE_BIND + str(error), gone=error.gone) from error
            if not self._is_wanted(pod.uid):
                raise PodGone
            await self._writer.bind_pod(pod, placed.node)
        except BaseException as error:
            self._give_up(placed)
            if not isinstance(error, asyncio.CancelledError):
                await self._undo(pod, placed, written)
            raise
        return nominated

    # --- claims ---------------------------------------------------------------------------------------

    async def _bind_claim(self, pod: PodInfo, reserved: Reserved) -> ResourceClaim:
        claim = reserved.claim
        if reserved.extended:
            claim = await self._create(pod, reserved)
        allocation = reserved.allocation
        timestamp = format_time(self._clock.now()) if self._timestamps else ""
        try:
            result = await self._writer.bind_claim(claim, pod, allocation, timestamp)
            self._adopt(result, reserved.claim.metadata.uid)
            if reserved.extended:
                await self._announce(pod, reserved, result)
        except Exception:
            if reserved.extended:
                await self._writer.delete_claim(self._store.get((pod.namespace, claim.metadata.name)) or claim)
            raise
        return result

    async def _create(self, pod: PodInfo, reserved: Reserved) -> ResourceClaim:
        try:
            claim = await self._writer.create_claim(creation_tree(reserved.claim), pod.namespace)
        except WriteError:
            self._metrics.claims_created[False].inc()
            raise
        self._metrics.claims_created[True].inc()
        return claim

    async def _announce(self, pod: PodInfo, reserved: Reserved, claim: ResourceClaim) -> None:
        """Tell the kubelet which claim serves the pod's extended resources."""
        status = {
            "extendedResourceClaimStatus": {
                "resourceClaimName": claim.metadata.name,
                "requestMappings": [to_tree(mapping) for mapping in reserved.mappings],
            }
        }
        try:
            done = await self._writer.patch_pod_status(pod, {"metadata": {"uid": pod.uid}, "status": status})
        except ApiError as error:
            raise WriteError(f"update pod {pod.key} ExtendedResourceClaimStatus: {error.message}") from error
        if done is None:
            raise PodGone

    def _adopt(self, claim: ResourceClaim, pending_uid: str) -> None:
        """The claim is written: the store shows it, the decision is not pending any more."""

        def adopt() -> None:
            before = self._store.get((claim.metadata.namespace, claim.metadata.name))
            self._store.assume(claim)
            self._store.drop_pending(
                pending_uid,
                self._store.get((claim.metadata.namespace, claim.metadata.name))
                if pending_uid == claim.metadata.uid
                else None,
            )
            self._changed(before, claim)

        self._defer(adopt)

    # --- waiting for devices --------------------------------------------------------------------------

    async def _await_devices(self, pod: PodInfo, node_name: str, claims: list[ResourceClaim]) -> bool:
        self._recorder.event(
            pod.pod,
            kinds.POD,
            "Normal",
            "BindingConditionsPending",
            f"waiting for binding conditions for device on node {node_name}",
            "Scheduling",
        )
        patch = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node_name}}
        with contextlib.suppress(ApiError):
            await self._writer.patch_pod_status(pod, patch)
        drivers = {
            result.driver
            for claim in claims
            for result in binding_conditions.results(claim)
            if result.binding_conditions
        }
        seen: set[str] = set()
        started = self._clock.monotonic()
        status = "error"
        try:
            while True:
                state = self._state(pod, claims, seen)
                if state is True:
                    status = "success"
                    return True
                if isinstance(state, binding_conditions.Failed):
                    status = "failure"
                    raise WriteError(state.message)
                left = self._settings.binding_timeout - (self._clock.monotonic() - started)
                timeout, now = self._settings.binding_timeout, self._clock.now()
                late = [claim for claim in claims if binding_conditions.timed_out(claim, now, timeout)]
                if left <= 0 or late:
                    status = "timeout"
                    raise WriteError(f"device binding timeout: claim={(late or claims)[0].metadata.name}")
                await self._pause(min(self._settings.binding_poll, left))
        finally:
            self._metrics.waited(drivers, status, self._clock.monotonic() - started)

    def _state(self, pod: PodInfo, claims: list[ResourceClaim], seen: set[str]) -> bool | binding_conditions.Failed:
        if not self._is_wanted(pod.uid):
            raise PodGone
        ready = True
        for index, claim in enumerate(claims):
            name = f"{claim.metadata.namespace}/{claim.metadata.name}"
            newest = self._store.get((claim.metadata.namespace, claim.metadata.name))
            if newest is not None:
                seen.add(claim.metadata.uid)
            elif claim.metadata.uid in seen:
                raise WriteError(f"claim {name} got deleted in the meantime")
            if newest is None or claim_writes.version_of(newest) < claim_writes.version_of(claim):
                newest = claim
            if newest.metadata.uid != claim.metadata.uid:
                raise WriteError(f"claim {name} got deleted in the meantime")
            if newest.status.allocation is None:
                raise WriteError(f"claim {name} got deallocated elsewhere in the meantime")
            claims[index] = newest
            state = binding_conditions.check(newest)
            if isinstance(state, binding_conditions.Failed):
                return state
            ready = ready and state
        return ready

    async def _pause(self, seconds: float) -> None:
        """Until a claim changes, or so long."""
        self._claims_moved.clear()
        waits = [
            asyncio.ensure_future(self._claims_moved.wait()),
            asyncio.ensure_future(self._clock.sleep(seconds)),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    # --- undoing --------------------------------------------------------------------------------------

    def _give_up(self, placed: Placed) -> None:
        """Devices that were decided on and not written are free again."""

        def give_up() -> None:
            for reserved in placed.reserved:
                if reserved.allocation is not None:
                    claim = reserved.claim
                    newest = self._store.get((claim.metadata.namespace, claim.metadata.name))
                    same = newest is not None and newest.metadata.uid == claim.metadata.uid
                    self._store.drop_pending(claim.metadata.uid, newest if same else None)

        self._defer(give_up)

    async def _undo(self, pod: PodInfo, placed: Placed, written: list[ResourceClaim]) -> None:
        """Take reservations back; the allocation stays, another pod or the next attempt may use or clear it."""
        known = {claim.metadata.uid: claim for claim in written}
        for reserved in placed.reserved:
            known.setdefault(reserved.claim.metadata.uid, reserved.claim)
        extended = {
            claim.metadata.uid for claim, reserved in zip(written, placed.reserved, strict=False) if reserved.extended
        }
        for uid, claim in known.items():
            newest = self._store.get((claim.metadata.namespace, claim.metadata.name))
            if newest is None or claim_writes.version_of(newest) < claim_writes.version_of(claim):
                newest = claim
            try:
                if uid in extended:
                    await self._writer.delete_claim(newest)
                elif claim_writes.is_reserved_for(newest, pod.uid):
                    result = await self._writer.unreserve(newest, pod.uid)
                    if result is not None:
                        self._adopt(result, uid)
            except (ApiError, ConnectionError) as error:
                name = claim.metadata.name
                log.warning("reservation of claim %s for pod %s could not be taken back: %s", name, pod.key, error)
