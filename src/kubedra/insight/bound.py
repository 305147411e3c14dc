"""A pod that has its node and does not run yet: whether its claims are really its own, and what its drivers say.

Which drivers a kubelet knows stands in no API object. What can be seen from outside is what the kubelet reports when
preparing fails, and whether the driver publishes slices for the node (they are wiped when the driver goes away).

Upstream counterpart: the messages of the kubelet's DRA manager (spec/dra-1.37.md, appendix C).
"""

from __future__ import annotations

import re

from kubedra.allocation.reasons import Reason
from kubedra.api import core_v1, resource_v1
from kubedra.insight.relations import claims_of_pod
from kubedra.insight.snapshots import Snapshot

_NOT_REGISTERED = re.compile(r"DRA driver (\S+) is not registered")
_PREFIX = re.compile(r"^(Failed to prepare dynamic resources: |prepare dynamic resources: )+")


def bound_reasons(snapshot: Snapshot, pod: core_v1.Pod) -> list[Reason]:
    """Why a pod that is bound to a node does not run, first things first; empty when nothing is wrong."""
    node = pod.spec.node_name
    reasons: list[Reason] = []
    found = next((n for n in snapshot.nodes if n.metadata.name == node), None)
    if found is None and snapshot.sees("nodes"):
        detail = f"the pod is bound to the node {node}, which does not exist"
        return [Reason("node-missing", f"node {node}", detail, "delete the pod; its owner makes a new one")]
    if found is not None:
        reasons += _not_ready(snapshot, found)
    drivers: dict[str, list[str]] = {}
    for entry, name, claim in claims_of_pod(pod, snapshot.claims):
        if claim is None:
            if name and snapshot.sees("resourceclaims", pod.metadata.namespace):
                detail = f"the pod is on the node {node} and its ResourceClaim {name!r} is gone"
                remedy = "delete the pod and create it again"
                reasons.append(Reason("claim-missing", f"claim {entry!r} of the pod", detail, remedy))
            elif not name:
                reasons += _bypassed(pod, f"claim {entry!r} of the pod", "its ResourceClaim is not created yet")
            continue
        reasons += _own(snapshot, pod, claim)
        for result in _results(claim):
            drivers.setdefault(result.driver, []).append(f"{claim.metadata.namespace}/{claim.metadata.name}")
    reasons += _prepare(snapshot, pod, drivers)
    if not reasons:
        reasons += _containers(pod)
    return reasons


def _results(claim: resource_v1.ResourceClaim) -> tuple[resource_v1.DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation
    return allocation.devices.results if allocation is not None and allocation.devices is not None else ()


def _not_ready(snapshot: Snapshot, node: core_v1.Node) -> list[Reason]:
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if ready is None or ready.status == "True":
        return []
    age = snapshot.age(ready.last_transition_time)
    detail = f"the node is not ready{f' for {age}' if age else ''}: {ready.message or ready.reason}"
    return [Reason("node-not-ready", f"node {node.metadata.name}", detail, "look at the node's kubelet")]


def _own(snapshot: Snapshot, pod: core_v1.Pod, claim: resource_v1.ResourceClaim) -> list[Reason]:
    subject = f"claim {claim.metadata.namespace}/{claim.metadata.name}"
    if claim.metadata.deletion_timestamp:
        age = snapshot.age(claim.metadata.deletion_timestamp)
        return [Reason("claim-deleting", subject, f"it is being deleted since {age}", "create pod and claim again")]
    if any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for):
        return []
    if claim.status.allocation is None:
        return _bypassed(pod, subject, "no devices were allocated for it")
    return _bypassed(pod, subject, "its devices are not reserved for this pod")


def _bypassed(pod: core_v1.Pod, subject: str, what: str) -> list[Reason]:
    detail = (
        f"scheduler bypassed: the pod was created with spec.nodeName {pod.spec.node_name}, so no scheduler looked at "
        f"it, and {what}; the kubelet refuses such a pod (it is not allowed to use the claim)"
    )
    remedy = (
        "create the pod without spec.nodeName; to ask for that node, use "
        f"nodeSelector: {{kubernetes.io/hostname: {pod.spec.node_name}}}"
    )
    return [Reason("scheduler-bypassed", subject, detail, remedy)]


def _prepare(snapshot: Snapshot, pod: core_v1.Pod, drivers: dict[str, list[str]]) -> list[Reason]:
    node = pod.spec.node_name
    failures = [
        event
        for event in snapshot.events
        if event.involved_object.uid == pod.metadata.uid and event.reason == "FailedPrepareDynamicResources"
    ]
    reasons: list[Reason] = []
    told: set[str] = set()
    for event in sorted(failures, key=_last, reverse=True):
        text = _PREFIX.sub("", event.message)
        missing = _NOT_REGISTERED.search(text)
        driver = missing.group(1) if missing else next((name for name in drivers if name in text), "")
        if not driver and len(drivers) == 1:
            (driver,) = drivers
        if (driver or text) in told:
            continue
        told.add(driver or text)
        since = snapshot.age(event.first_timestamp or event.event_time)
        times = event.series.count if event.series is not None and event.series.count else event.count
        often = f", {times} times" if times and times > 1 else ""
        log = snapshot.driver_logs.get((node, driver), ())
        said = f"; its last log lines: {' | '.join(log)}" if log else ""
        if missing:
            detail = (
                f"the DRA driver {driver} is not registered on the node {node}, since {since or 'some time'}{often}"
                f"{_slices_say(snapshot, driver, node)}{said}"
            )
            remedy = f"start the driver's pod on {node}, or see why it does not run; the kubelet tries again by itself"
            reasons.append(Reason("driver-not-registered", f"driver {driver} on {node}", detail, remedy))
        else:
            detail = f"preparing the devices failed {since or 'a moment'} ago{often}: {text}{said}"
            subject = f"driver {driver} on {node}" if driver else f"node {node}"
            reasons.append(
                Reason("prepare-failed", subject, detail, "correct what the driver names; the kubelet tries again")
            )
    if reasons or not snapshot.live:
        return reasons
    for driver in drivers:
        if snapshot.sees("resourceslices") and not _publishes(snapshot, driver, node) and _starting(pod):
            detail = (
                f"the driver {driver} publishes nothing for the node {node} any more, so it may not be running there"
            )
            remedy = f"see whether the driver's pod runs on {node}"
            reasons.append(Reason("driver-gone", f"driver {driver} on {node}", detail, remedy))
    return reasons


def _last(event: core_v1.Event) -> str:
    series = event.series.last_observed_time if event.series is not None else ""
    return series or event.last_timestamp or event.event_time


def _publishes(snapshot: Snapshot, driver: str, node: str) -> bool:
    return any(s.spec.driver == driver and (s.spec.node_name or node) == node for s in snapshot.slices)


def _slices_say(snapshot: Snapshot, driver: str, node: str) -> str:
    if not snapshot.sees("resourceslices") or _publishes(snapshot, driver, node):
        return ""
    elsewhere = len({s.spec.node_name for s in snapshot.slices if s.spec.driver == driver and s.spec.node_name})
    if elsewhere:
        return f" (it publishes devices of {elsewhere} other nodes, none of this one)"
    return " (it publishes devices of no node at all)"


def _starting(pod: core_v1.Pod) -> bool:
    return not any(s.state is not None and s.state.running is not None for s in pod.status.container_statuses)


def _containers(pod: core_v1.Pod) -> list[Reason]:
    reasons = []
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting if status.state is not None else None
        if waiting is None or waiting.reason in ("", "ContainerCreating", "PodInitializing"):
            continue
        detail = f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason
        reasons.append(Reason("container-waits", f"container {status.name}", detail, "this is no matter of devices"))
    return reasons
