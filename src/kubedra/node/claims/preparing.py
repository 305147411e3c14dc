"""The shell around the claim cache: asks the API, writes the checkpoint, calls drivers.

One lock per claim keeps calls about a claim one after another (a pod that starts waits for the one that lets go);
claims are locked in the order of their uids, so two pods can't wait for each other. Upstream counterpart:
PrepareResources and UnprepareResources of pkg/kubelet/cm/dra/manager.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Protocol

from kubedra.api import kinds
from kubedra.api.core_v1 import Container, Pod
from kubedra.api.errors import ApiError
from kubedra.api.resource_v1 import ResourceClaim
from kubedra.client.protocol import Client
from kubedra.node.claims.cache import Call, ClaimCache, ClaimState, Instructions, UnprepareIncomplete
from kubedra.node.claims.checkpoint import ClaimCheckpoint
from kubedra.node.claims.resolving import PrepareError, claim_names, container_devices, wanted_claims
from kubedra.node.metrics import NodeMetrics
from kubedra.wire.dra import Claim, Device, PrepareResult, Version, service_name
from kubedra.wire.transport import CallError


class Driver(Protocol):
    """What a driver is asked: DraClient has this shape."""

    version: Version

    async def prepare(self, claims: tuple[Claim, ...], *, timeout: float) -> Mapping[str, PrepareResult]: ...

    async def unprepare(self, claims: tuple[Claim, ...], *, timeout: float) -> Mapping[str, str]: ...


class Drivers(Protocol):
    """Where drivers are found by name."""

    def find(self, name: str) -> Driver | None: ...


class ClaimPreparation:
    """Prepares and unprepares the claims of this node's pods."""

    def __init__(
        self,
        client: Client,
        drivers: Drivers,
        checkpoint: ClaimCheckpoint,
        *,
        prepare_timeout: float = 45.0,
        unprepare_timeout: float = 45.0,
        optional_operations: bool = False,
        metrics: NodeMetrics | None = None,
    ) -> None:
        self._client = client
        self._drivers = drivers
        self._checkpoint = checkpoint
        self._prepare_timeout = prepare_timeout
        self._unprepare_timeout = unprepare_timeout
        self._optional_operations = optional_operations
        self._metrics = metrics
        self._cache = ClaimCache(checkpoint.load())
        self._locks: dict[str, asyncio.Lock] = {}
        self._saving = asyncio.Lock()

    @property
    def states(self) -> tuple[ClaimState, ...]:
        """All claims on this node."""
        return self._cache.states

    def pods(self) -> frozenset[str]:
        """The pods that hold claims here, also those that are gone from the API."""
        return self._cache.pods()

    def holds(self, pod_uid: str) -> bool:
        """Whether a pod must be unprepared before it may become terminal."""
        return bool(self._cache.held_by(pod_uid))

    def adopt(self, pod_uid: str) -> None:
        """The pod's containers run on after a restart of the agent."""
        self._cache.adopt(pod_uid)

    def devices(self, pod: Pod, container: Container) -> tuple[tuple[str, Device], ...]:
        """The prepared devices that a container gets, with their drivers."""
        namespace = pod.metadata.namespace
        return container_devices(pod, container, lambda name: self._cache.devices(namespace, name))

    async def prepare(self, pod: Pod) -> None:
        """Prepares all claims of a pod that is about to start; raises PrepareError. Idempotent."""
        if not pod.spec.resource_claims and pod.status.extended_resource_claim_status is None:
            return
        with self._timed("PrepareResources"):
            await self._prepare_pod(pod)

    async def _prepare_pod(self, pod: Pod) -> None:
        claims = await self._fetch(pod)
        wanted = wanted_claims(
            pod,
            claims,
            lambda name: self._drivers.find(name) is not None,
            optional_operations=self._optional_operations,
        )
        async with self._locked(claim.uid for claim in wanted):
            instructions = self._cache.prepare(pod.metadata.uid, wanted)
            await self._follow(instructions, self._prepare)
            await self._follow(self._cache.prepared(wanted), self._prepare)

    async def unprepare(self, pod_uid: str) -> None:
        """Lets go of all claims of a pod whose containers have ended; raises PrepareError. Idempotent."""
        if not self.holds(pod_uid):
            return
        with self._timed("UnprepareResources"):
            async with self._locked(state.uid for state in self._cache.held_by(pod_uid)):
                await self._follow(self._cache.unprepare(pod_uid), self._unprepare)

    async def _fetch(self, pod: Pod) -> dict[str, ResourceClaim | None]:
        claims: dict[str, ResourceClaim | None] = {}
        for name in dict.fromkeys(claim_names(pod).values()):
            try:
                claim = await self._client.get(kinds.RESOURCE_CLAIM, name, pod.metadata.namespace)
                claims[name] = claim
            except ApiError as error:
                if error.code != 404:
                    raise PrepareError(f"fetch ResourceClaim {name}: {error.message}") from error
                claims[name] = None
            except ConnectionError as error:
                raise PrepareError(f"fetch ResourceClaim {name}: {error}") from error
        return claims

    @contextlib.asynccontextmanager
    async def _locked(self, uids: Iterable[str]) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for uid in sorted(set(uids)):
                await stack.enter_async_context(self._locks.setdefault(uid, asyncio.Lock()))
            yield
        known = {state.uid for state in self._cache.states}
        for uid in [uid for uid, lock in self._locks.items() if not lock.locked() and uid not in known]:
            del self._locks[uid]

    async def _follow(self, instructions: Instructions, make: Callable[[Call], Awaitable[None]]) -> None:
        if instructions.save:
            await self._save()
        for call in instructions.calls:
            await make(call)

    async def _save(self) -> None:
        # One writer at a time, and each writes what is true when its turn comes.
        async with self._saving:
            states = self._cache.states
            try:
                await asyncio.get_running_loop().run_in_executor(None, self._checkpoint.save, states)
            except OSError as error:
                # Nobody is called whose call is not written down.
                raise PrepareError(f"the claim checkpoint can't be written: {error}") from error

    async def _prepare(self, call: Call) -> None:
        driver = self._drivers.find(call.driver)
        if driver is None:
            raise PrepareError(f"DRA driver {call.driver} is not registered")
        try:
            with self._timed_call(call.driver, driver.version, "NodePrepareResources"):
                answer = await driver.prepare(call.claims, timeout=self._prepare_timeout)
        except CallError as error:
            raise PrepareError(f"NodePrepareResources: {error}") from error
        self._cache.prepare_answered(call, answer)

    async def _unprepare(self, call: Call) -> None:
        driver = self._drivers.find(call.driver)
        if driver is None:
            raise PrepareError(f"DRA driver {call.driver} is not registered")
        try:
            with self._timed_call(call.driver, driver.version, "NodeUnprepareResources"):
                answer = await driver.unprepare(call.claims, timeout=self._unprepare_timeout)
        except CallError as error:
            raise PrepareError(f"NodeUnprepareResources: {error}") from error
        try:
            instructions = self._cache.unprepare_answered(call, answer)
        except UnprepareIncomplete as error:
            if error.changed:
                await self._save()
            raise
        if instructions.save:
            await self._save()

    # ---- metrics ----

    @contextlib.contextmanager
    def _timed(self, operation: str) -> Iterator[None]:
        begin, failed = time.perf_counter(), "true"
        try:
            yield
            failed = "false"
        finally:
            if self._metrics is not None:
                self._metrics.operations.labels(operation, failed).observe(time.perf_counter() - begin)

    @contextlib.contextmanager
    def _timed_call(self, driver: str, version: Version, method: str) -> Iterator[None]:
        begin, code = time.perf_counter(), "OK"
        try:
            yield
        except CallError as error:
            code = error.code
            raise
        finally:
            if self._metrics is not None:
                labels = (driver, f"/{service_name(version)}/{method}", code)
                self._metrics.calls.labels(*labels).observe(time.perf_counter() - begin)
