"""Writes about claims and pods, each with its preconditions and, where that helps, a second try after a conflict.

The only file of the scheduler that sends requests. What is to be written was decided elsewhere (`claim_writes`,
`conditions`); nothing here changes the scheduler's own state.

Must never: take a write that was not answered for one that was not made. A server that dies between commit and answer
has handed the device out; who then gives it to the next pod hands it out twice. So allocations and bindings are looked
up and repeated until the server says how things are; what was decided stays taken meanwhile.

Upstream gives up and relies on its informer to show the allocation in time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from kubedra.api import core_v1, kinds
from kubedra.api.errors import ApiError
from kubedra.api.resource_v1 import AllocationResult, ResourceClaim
from kubedra.base.clock import Clock
from kubedra.client.clock import RealClock
from kubedra.client.protocol import Client
from kubedra.client.requests import error_from
from kubedra.scheduler import claim_writes
from kubedra.scheduler.pods import PodInfo

CONFLICTS_BORNE = 5
FIRST_REPEAT_SECONDS = 0.05
LAST_REPEAT_SECONDS = 2.0
FIELD_MANAGER = "kube-scheduler"
T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


class WriteError(Exception):
    """A write that makes the placement impossible; the message is upstream's. `gone`: the object is not there."""

    def __init__(self, message: str, *, gone: bool = False) -> None:
        super().__init__(message)
        self.gone = gone


def _is_conflict(error: ApiError) -> bool:
    return error.code == 409 and error.reason == "Conflict"


class Writer:
    """Sends what the scheduler decided."""

    def __init__(
        self, client: Client, newest: Callable[[str, str], ResourceClaim | None], clock: Clock | None = None
    ) -> None:
        self._client = client
        self._newest = newest
        self._clock: Clock = clock or RealClock()

    # --- claims ---------------------------------------------------------------------------------------

    async def bind_claim(
        self, claim: ResourceClaim, pod: PodInfo, allocation: AllocationResult | None, timestamp: str
    ) -> ResourceClaim:
        """Write allocation and reservation of one claim; returns it as written. Raises WriteError."""
        name, namespace, uid = claim.metadata.name, claim.metadata.namespace, claim.metadata.uid
        current = self._newest(namespace, name) or claim
        if claim_writes.version_of(claim) > claim_writes.version_of(current):
            current = claim
        verb = "add allocation and reservation to" if allocation is not None else "add reservation to"
        in_doubt = False
        conflicts, delay = 0, FIRST_REPEAT_SECONDS
        while conflicts < CONFLICTS_BORNE:
            if in_doubt and current.metadata.uid == uid and claim_writes.is_reserved_for(current, pod.uid):
                # Only we reserve for this pod: the attempt that had no answer did it, allocation and all.
                return current
            refused = claim_writes.may_bind(current, uid, allocation)
            if refused is not None:
                raise WriteError(refused.message)
            step = "add finalizer to"
            try:
                protect = claim_writes.protect(current)
                if protect is not None:
                    current = await self._patch_claim(current, protect)
                if claim_writes.is_reserved_for(current, pod.uid) and allocation is None:
                    return current
                step = verb
                consumer = claim_writes.Consumer(pod.name, pod.uid)
                patch = claim_writes.reserve(current, consumer, allocation, timestamp)
                return await self._patch_claim(current, patch, "status")
            except ApiError as error:
                if error.code == 404:
                    raise WriteError(f"claim {namespace}/{name} got deleted in the meantime", gone=True) from error
                if error.code >= 500:
                    found = await self._answered(lambda: self._get_claim(namespace, name))
                    if found.metadata.uid == uid and claim_writes.is_reserved_for(found, pod.uid):
                        return found
                if not _is_conflict(error):
                    raise WriteError(f"{step} claim {namespace}/{name}: {error.message}") from error
                conflict = error
                conflicts += 1
            except ConnectionError:
                in_doubt = True
                await self._clock.sleep(delay)
                delay = min(delay * 2, LAST_REPEAT_SECONDS)
            current = await self._answered(lambda: self._get_claim(namespace, name))
        raise WriteError(f"{verb} claim {namespace}/{name}: {conflict.message}")

    async def _answered(self, read: Callable[[], Awaitable[T]]) -> T:
        """What a read says, as soon as the server answers."""
        delay = FIRST_REPEAT_SECONDS
        while True:
            try:
                return await read()
            except ConnectionError:
                await self._clock.sleep(delay)
                delay = min(delay * 2, LAST_REPEAT_SECONDS)

    async def unreserve(self, claim: ResourceClaim, pod_uid: str) -> ResourceClaim | None:
        """Take a pod's reservation back; None when the claim is gone."""
        patch = claim_writes.unreserve(claim, pod_uid)
        try:
            return await self._patch_claim(claim, patch, "status", "strategic")
        except ApiError as error:
            if error.code in (404, 409):
                return None
            raise

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim | None:
        """Give a claim's devices back; None when it changed or went meanwhile, which is as good."""
        try:
            return await self._patch_claim(claim, claim_writes.deallocate(claim), "status")
        except ApiError as error:
            if error.code in (404, 409):
                return None
            raise

    async def delete_claim(self, claim: ResourceClaim) -> None:
        """Delete a claim that the scheduler made, finalizer first."""
        metadata = claim.metadata
        try:
            release = claim_writes.release(claim)
            if release is not None:
                await self._patch_claim(claim, release)
            await self._client.delete(kinds.RESOURCE_CLAIM, metadata.name, metadata.namespace, uid=metadata.uid)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    async def create_claim(self, tree: dict[str, Any], namespace: str) -> ResourceClaim:
        """Create the claim for a pod's extended resources. Raises WriteError."""
        try:
            return await self._client.create(kinds.RESOURCE_CLAIM, tree, namespace, field_manager=FIELD_MANAGER)
        except ApiError as error:
            raise WriteError(f"create claim for extended resources {namespace}/: {error.message}") from error

    async def _get_claim(self, namespace: str, name: str) -> ResourceClaim:
        try:
            return await self._client.get(kinds.RESOURCE_CLAIM, name, namespace)
        except ApiError as error:
            if error.code == 404:
                raise WriteError(f"claim {namespace}/{name} got deleted in the meantime", gone=True) from error
            raise

    async def _patch_claim(
        self, claim: ResourceClaim, patch: dict[str, Any], subresource: str = "", patch_type: Any = "merge"
    ) -> ResourceClaim:
        return await self._client.patch(
            kinds.RESOURCE_CLAIM,
            claim.metadata.name,
            patch,
            claim.metadata.namespace,
            patch_type=patch_type,
            subresource=subresource,
            field_manager=FIELD_MANAGER,
        )

    # --- pods -----------------------------------------------------------------------------------------

    async def bind_pod(self, pod: PodInfo, node_name: str) -> None:
        """Bind the pod to the node. Raises WriteError."""
        tree = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
        body, delay = _encode(tree), FIRST_REPEAT_SECONDS
        while True:
            try:
                # Answered with a Status, not with a pod: this is a plain request.
                response = await self._client.request(
                    "POST",
                    kinds.POD.path(pod.namespace, pod.name, "binding"),
                    query={"fieldManager": FIELD_MANAGER},
                    body=body,
                    headers={"content-type": "application/json"},
                )
                break
            except ConnectionError:
                await self._clock.sleep(delay)
                delay = min(delay * 2, LAST_REPEAT_SECONDS)
                if await self._answered(lambda: self._is_bound(pod, node_name)):
                    return
        if response.status >= 500 and await self._answered(lambda: self._is_bound(pod, node_name)):
            return
        if response.status >= 300:
            error = error_from(response.status, response.body)
            raise WriteError(f'running Bind plugin "DefaultBinder": {error.message}', gone=error.code == 404)

    async def _is_bound(self, pod: PodInfo, node_name: str) -> bool:
        """Whether the binding was made by a request that had no answer."""
        try:
            found = await self._client.get(kinds.POD, pod.name, pod.namespace)
        except ApiError as error:
            if error.code == 404:
                return False
            raise WriteError(f'running Bind plugin "DefaultBinder": {error.message}') from error
        return found.metadata.uid == pod.uid and found.spec.node_name == node_name

    async def patch_pod_status(self, pod: PodInfo, patch: dict[str, Any]) -> core_v1.Pod | None:
        """Patch a pod's status; None when the pod is gone or another one of the same name."""
        try:
            return await self._client.patch(
                kinds.POD,
                pod.name,
                patch,
                pod.namespace,
                patch_type="strategic",
                subresource="status",
                field_manager=FIELD_MANAGER,
            )
        except ApiError as error:
            if error.code in (404, 409):
                return None
            raise
