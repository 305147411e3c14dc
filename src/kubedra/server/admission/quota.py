"""ResourceQuota: refuses what would exceed one, and keeps `status.used` current.

Usage is added up from the store at the moment of the question, so it can neither leak nor lag; the status is written
for people and for upstream's tools. Upstream counterpart: apiserver/pkg/admission/plugin/resourcequota.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kubedra.api import errors
from kubedra.base.quantity import Quantity, QuantityError
from kubedra.server.admission.base import Plugin
from kubedra.server.admission.usage import COMPUTE, Usage, pod_amounts, usage
from kubedra.server.calls import Call
from kubedra.server.state import ServerState
from kubedra.server.store import Event, Key, Record, StoreError
from kubedra.server.verbs.storing import encoder

Tree = dict[str, Any]
QUOTAS, CLASSES = "resourcequotas", "deviceclasses.resource.k8s.io"
BRIDGE_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
SETTLE_SECONDS = 0.2
_ZERO = Quantity.of(0)


class Quota(Plugin):
    """Checks creates against the quotas of the namespace."""

    def __init__(self) -> None:
        self._watching = False
        self._dirty: set[str] = set()

    def create(self, call: Call, tree: Tree) -> None:
        """403 when a quota would be exceeded."""
        store = call.state.store
        if not self._watching:
            self._watching = True
            store.on_commit(lambda event: self._committed(call.state, event))
        if not call.namespace or not store.count(QUOTAS):
            return
        quotas = store.listing(QUOTAS, call.namespace)
        if not quotas:
            return
        storage = call.served.storage
        wanted = _net_usage(call.state, storage, call.namespace, tree, extended_names(call.state))
        for record in quotas:
            quota = record.shared_tree()
            if not _in_scope(quota, storage, tree):
                continue
            hard = _amounts((quota.get("status") or {}).get("hard") or (quota.get("spec") or {}).get("hard") or {})
            concerned = sorted(key for key in wanted if key in hard and wanted[key] > _ZERO)
            self._must_specify(call, record, hard, tree)
            if not concerned:
                continue
            used = used_in(call.state, call.namespace, quota)
            over = [key for key in concerned if used.get(key, _ZERO) + wanted[key] > hard[key]]
            if over:
                why = (
                    f"exceeded quota: {record.key.name}, requested: {_shown(over, wanted)}, "
                    f"used: {_shown(over, used)}, limited: {_shown(over, hard)}"
                )
                raise errors.forbidden(call.served.kind, tree["metadata"].get("name", ""), why)

    @staticmethod
    def _must_specify(call: Call, record: Record, hard: Usage, tree: Tree) -> None:
        if call.served.storage != "pods":
            return
        spec = tree.get("spec") or {}
        requests, limits = pod_amounts(spec, "requests"), pod_amounts(spec, "limits")
        missing = sorted(
            key
            for key in hard
            if (key in COMPUTE and key not in requests)
            or (key.removeprefix("requests.") in COMPUTE and key.startswith("requests.") and key[9:] not in requests)
            or (key.removeprefix("limits.") in COMPUTE and key.startswith("limits.") and key[7:] not in limits)
        )
        if missing:
            names = ",".join(c.get("name", "") for c in spec.get("containers") or ())
            listed = "; ".join(f"{key} for: {names}" for key in missing)
            why = f"failed quota: {record.key.name}: must specify {listed}"
            raise errors.forbidden(call.served.kind, tree["metadata"].get("name", ""), why)

    def _committed(self, state: ServerState, event: Event) -> None:
        key = event.record.key
        if not key.namespace or not state.store.count(QUOTAS) or key.namespace in self._dirty:
            return
        if key.resource != QUOTAS and event.type == "MODIFIED" and key.resource != "pods":
            return
        if not state.store.listing(QUOTAS, key.namespace):
            return
        self._dirty.add(key.namespace)
        asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._settle, state, key.namespace)

    def _settle(self, state: ServerState, namespace: str) -> None:
        """Writes the status of the quotas of a namespace where it has changed."""
        self._dirty.discard(namespace)
        served = state.catalogue.stored[QUOTAS]
        for listed in state.store.listing(QUOTAS, namespace):
            record = state.store.latest(listed.key)
            if record is None:
                continue
            tree = record.tree()
            hard = (tree.get("spec") or {}).get("hard") or {}
            found = used_in(state, namespace, tree)
            status = {"hard": dict(hard), "used": {key: str(found.get(key, _ZERO)) for key in hard}}
            if tree.get("status") == status or "deletionTimestamp" in tree["metadata"]:
                continue
            tree["status"] = status
            try:
                future = state.store.submit_put(record.key, encoder(served, tree), expect=record.revision)
            except StoreError:
                return
            # Nobody waits for it: the next change tries again.
            future.add_done_callback(lambda done: done.exception())


def used_in(state: ServerState, namespace: str, quota: Tree) -> Usage:
    """What the objects of a namespace use, for the keys of one quota."""
    hard = (quota.get("status") or {}).get("hard") or (quota.get("spec") or {}).get("hard") or {}
    resources = {key.removeprefix("count/") for key in hard}
    total: Usage = {}
    extended = extended_names(state)
    for resource in state.store.resources():
        counts_pods = resource == "pods" and any("/" not in key or key.startswith("requests.") for key in hard)
        counts_claims = resource.startswith("resourceclaims.")
        if resource not in resources and not counts_pods and not counts_claims:
            continue
        for listed in state.store.listing(resource, namespace):
            tree = listed.shared_tree()
            if not _in_scope(quota, resource, tree):
                continue
            for key, amount in _net_usage(state, resource, namespace, tree, extended).items():
                if key in hard:
                    total[key] = total[key] + amount if key in total else amount
    return total


def _net_usage(state: ServerState, resource: str, namespace: str, tree: Tree, extended: Mapping[str, str]) -> Usage:
    """What one object uses; a claim of the extended-resource bridge without what its pod is charged for already.

    KEP-5004, "Resource Quota": the claim must be verified as owned by that pod.
    """
    found = usage(resource, tree, extended)
    metadata = tree["metadata"]
    if (metadata.get("annotations") or {}).get(BRIDGE_ANNOTATION) != "true" or not resource.startswith(
        "resourceclaims."
    ):
        return found
    for owner in metadata.get("ownerReferences") or ():
        if not owner.get("controller") or owner.get("kind") != "Pod":
            continue
        record = state.store.latest(Key("pods", namespace, owner.get("name", "")))
        pod = record.shared_tree() if record is not None else None
        if pod is None or pod["metadata"].get("uid") != owner.get("uid"):
            continue
        charged = usage("pods", pod, extended)
        for key in found.keys() & charged.keys():
            if key.startswith("requests."):
                found[key] = found[key] - min(found[key], charged[key])
    return found


def extended_names(state: ServerState) -> Mapping[str, str]:
    """Explicit extended resource of each device class that has one."""
    found: dict[str, str] = {}
    for record in state.store.listing(CLASSES):
        name = (record.shared_tree().get("spec") or {}).get("extendedResourceName")
        if name:
            found[record.key.name] = name
    return found


def _in_scope(quota: Tree, storage: str, tree: Tree) -> bool:
    spec = quota.get("spec") or {}
    scopes = spec.get("scopes") or ()
    selectors = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if not scopes and not selectors:
        return True
    if storage != "pods":
        return False
    pod = tree.get("spec") or {}
    terminating = pod.get("activeDeadlineSeconds") is not None
    best_effort = not any(c.get("resources") for c in pod.get("containers") or ())
    holds = {
        "Terminating": terminating,
        "NotTerminating": not terminating,
        "BestEffort": best_effort,
        "NotBestEffort": not best_effort,
    }
    if not all(holds.get(scope, True) for scope in scopes):
        return False
    for selector in selectors:
        name, operator = selector.get("scopeName", ""), selector.get("operator", "")
        if name == "PriorityClass":
            value = pod.get("priorityClassName", "")
            given = selector.get("values") or ()
            matched = {"In": value in given, "NotIn": value not in given, "Exists": bool(value)}.get(
                operator, not value
            )
            if not matched:
                return False
        elif not holds.get(name, True):
            return False
    return True


def _amounts(hard: Tree) -> Usage:
    found: Usage = {}
    for key, value in hard.items():
        try:
            found[key] = Quantity.parse(value)
        except QuantityError:
            continue
    return found


def _shown(keys: list[str], amounts: Usage) -> str:
    return ",".join(f"{key}={amounts.get(key, _ZERO)}" for key in keys)
