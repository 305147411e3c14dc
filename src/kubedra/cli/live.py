"""Reads a snapshot from a live cluster: only reading, and as much as the user's rights allow.

Lists over all namespaces that are forbidden are asked for in the one namespace that matters; what is still missing is
named in the snapshot. Older servers' versions of resource.k8s.io are converted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.base.features import VERSIONS, FeatureGates
from kubedra.cli.connect import Target, with_client
from kubedra.cli.sources import NAMESPACED, PLURALS, RESOURCE_KINDS, TYPES, Gathering
from kubedra.client.kubeconfig import Connection
from kubedra.client.requests import error_from
from kubedra.insight.snapshots import Snapshot, Unseen

_KINDS: dict[str, kinds.Kind[Any]] = {
    "Pod": kinds.POD,
    "Node": kinds.NODE,
    "Namespace": kinds.NAMESPACE,
    "Event": kinds.CORE_EVENT,
    "Lease": kinds.LEASE,
    "ResourceClaim": kinds.RESOURCE_CLAIM,
    "ResourceClaimTemplate": kinds.RESOURCE_CLAIM_TEMPLATE,
    "DeviceClass": kinds.DEVICE_CLASS,
    "ResourceSlice": kinds.RESOURCE_SLICE,
    "DeviceTaintRule": kinds.DEVICE_TAINT_RULE,
}
_OLDER = ("v1beta2", "v1beta1", "v1alpha3")
LOG_LINES = 5
# Kinds that an answer can do without; a cluster that does not serve them simply has none.
_OPTIONAL = frozenset(("Event", "Lease", "Namespace", "DeviceTaintRule"))


def read_live(target: Target, namespace: str, pod: str, version: str | None, gates: str) -> Snapshot:
    """Read the target cluster."""

    async def work(client: Any, connection: Connection) -> Snapshot:
        found = await read_cluster(client, namespace, pod, where=connection.context or connection.server)
        known, embedded = await server_version(client)
        found = replace(found, gates=FeatureGates.parse(gates, version or known), embedded=embedded)
        return replace(found, driver_logs=await _driver_logs(client, found, (namespace, pod), target))

    return with_client(target, work)


async def read_cluster(client: Any, namespace: str, pod: str = "", where: str = "") -> Snapshot:
    """Everything that an answer needs and this user may read. ``pod`` is asked for by name if pods can't be listed."""
    gathering = Gathering()
    unseen: list[Unseen] = []

    async def one(kind: str) -> None:
        # Events matter only where the pod is, leases only where schedulers keep theirs.
        wanted = {"Event": namespace, "Lease": "kube-system"}.get(kind, "")
        problem = await _list(client, gathering, kind, wanted)
        if not problem:
            return
        if kind in NAMESPACED and not wanted and not await _list(client, gathering, kind, namespace):
            unseen.append(Unseen(PLURALS[kind], problem, namespace))
        else:
            unseen.append(Unseen(PLURALS[kind], problem))

    await asyncio.gather(*(one(kind) for kind in TYPES))
    if pod and not gathering.objects["pods"]:
        await _one_pod(client, gathering, namespace, pod)
    return gathering.snapshot(where=where, now=datetime.now(UTC), live=True, unseen=tuple(unseen))


async def _list(client: Any, gathering: Gathering, kind: str, namespace: str) -> str:
    """Add the objects of a kind; returns why they could not be read."""
    served = _KINDS[kind]
    try:
        found = await client.list(served, namespace)
    except ApiError as error:
        if error.code == 404 and kind in RESOURCE_KINDS:
            return await _list_older(client, gathering, kind, namespace)
        if error.code not in (401, 403, 404):
            raise
        return "" if error.code == 404 and kind in _OPTIONAL else error.message
    gathering.kinds.add(kind)
    gathering.objects[TYPES[kind][0]].extend(found.items)
    return ""


async def _one_pod(client: Any, gathering: Gathering, namespace: str, name: str) -> None:
    """A pod and its claims by name, for users who may get but not list."""
    try:
        pod = await client.get(kinds.POD, name, namespace)
    except ApiError:
        return
    gathering.objects["pods"].append(pod)
    names = {entry.resource_claim_name for entry in pod.spec.resource_claims if entry.resource_claim_name}
    names |= {status.resource_claim_name for status in pod.status.resource_claim_statuses if status.resource_claim_name}
    known = {claim.metadata.name for claim in gathering.objects["claims"]}
    for claim in sorted(names - known):
        with contextlib.suppress(ApiError):
            gathering.objects["claims"].append(await client.get(kinds.RESOURCE_CLAIM, claim, namespace))


async def _list_older(client: Any, gathering: Gathering, kind: str, namespace: str) -> str:
    problem = ""
    for version in _OLDER:
        place = f"/namespaces/{namespace}" if namespace else ""
        answer = await client.request("GET", f"/apis/resource.k8s.io/{version}{place}/{PLURALS[kind]}")
        if answer.status < 300:
            gathering.add_tree(msgspec.json.decode(answer.body), f"resource.k8s.io/{version} {PLURALS[kind]}")
            return ""
        if answer.status in (401, 403):
            return error_from(answer.status, answer.body).message
        problem = "the cluster does not serve resource.k8s.io, so it can't hand out devices by claim"
    return "" if kind in _OPTIONAL else problem


async def server_version(client: Any) -> tuple[str, bool]:
    """The cluster's version, as near as we know it, and whether it is one of kubedra's own."""
    answer = await client.request("GET", "/version")
    tree = msgspec.json.decode(answer.body) if answer.status < 300 else {}
    version = f"{tree.get('major', '1')}.{str(tree.get('minor', '')).rstrip('+')}"
    return version if version in VERSIONS else VERSIONS[-1], "+kubedra" in str(tree.get("gitVersion", ""))


# ---- logs of drivers ----


async def _driver_logs(
    client: Any, snapshot: Snapshot, name: tuple[str, str], target: Target
) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Logs of the drivers of a pod that is bound and does not run."""
    pod = snapshot.pods_by_name.get(name)
    if pod is None or not pod.spec.node_name or pod.status.phase not in ("", "Pending"):
        return {}
    drivers = {
        result.driver
        for claim in snapshot.claims
        if any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for)
        if claim.status.allocation is not None and claim.status.allocation.devices is not None
        for result in claim.status.allocation.devices.results
    }
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for driver in sorted(drivers):
        lines = _embedded_log(target, pod.spec.node_name) or await _pod_log(
            client, snapshot, pod.spec.node_name, driver
        )
        if lines:
            found[pod.spec.node_name, driver] = lines
    return found


def _embedded_log(target: Target, node: str) -> tuple[str, ...]:
    files, _ = target._files()
    if not files or not (files[0].parent / "cluster.json").exists():
        return ()
    lines: list[str] = []
    for path in sorted((files[0].parent / "logs").glob("driver*.log")):
        lines += _tail(path, node)
    return tuple(lines[-LOG_LINES:])


def _tail(path: Path, node: str) -> list[str]:
    try:
        with path.open("rb") as handle:
            handle.seek(0, os.SEEK_END)
            handle.seek(max(handle.tell() - 256 * 1024, 0))
            text = handle.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if f"{node}:" in line or f" {node} " in line][-LOG_LINES:]


async def _pod_log(client: Any, snapshot: Snapshot, node: str, driver: str) -> tuple[str, ...]:
    """The log of the pod on the node that mounts the driver's plugin folder."""
    for pod in snapshot.pods:
        if pod.spec.node_name != node:
            continue
        paths = [volume.host_path.path for volume in pod.spec.volumes if volume.host_path is not None]
        if not any(path.rstrip("/").endswith(f"/plugins/{driver}") for path in paths):
            continue
        meta = pod.metadata
        answer = await client.request(
            "GET",
            f"/api/v1/namespaces/{meta.namespace}/pods/{meta.name}/log",
            query={"tailLines": str(LOG_LINES), "container": pod.spec.containers[0].name},
        )
        if answer.status < 300:
            return tuple(answer.body.decode("utf-8", "replace").splitlines())
    return ()
