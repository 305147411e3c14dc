"""What a pod waits for before any node is looked at, first things first.

Its claims may not exist, be on their way out or belong to others; nobody may be there to schedule it; it may be held
back by gates or ask for what is switched off. The texts are written for somebody who does not know DRA.

Upstream counterpart: PreEnqueue and PreFilter of the DynamicResources plugin, whose texts say what, not what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from kubedra.allocation.reasons import Reason
from kubedra.api import core_v1, resource_v1
from kubedra.insight.decision import Decision
from kubedra.insight.snapshots import Snapshot
from kubedra.scheduler.dra import DraState, claim_name
from kubedra.scheduler.pods import DEFAULT_SCHEDULER, PodInfo
from kubedra.scheduler.unsupported import unsupported_field
from kubedra.scheduler.verdicts import AttemptError, Refusal

MOST_CONSUMERS = 256
# A scheduler looks at a new pod within moments; after that, silence means that none does.
PATIENCE_SECONDS = 10


def first_things(decision: Decision, pod: PodInfo) -> list[Reason]:
    """Everything that keeps the pod from being looked at, the first to act on first."""
    snapshot = decision.snapshot
    reasons: list[Reason] = []
    if pod.spec.scheduling_gates:
        names = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        reasons.append(
            Reason(
                "pod-gated",
                f"pod {pod.key}",
                f"it is held back by spec.schedulingGates: {names}",
                "whoever set the gate has to remove it (kubectl edit pod), often a queue or quota controller",
            )
        )
    problem = unsupported_field(pod.pod) if snapshot.embedded else None
    if problem is not None:
        field, _, rest = problem.partition(": ")
        reasons.append(Reason("unsupported-field", f"pod {pod.key}, {field}", rest))
    for entry in pod.spec.resource_claims:
        reason = _claim(snapshot, pod, entry)
        if reason is not None:
            reasons.append(reason)
    # A scheduler says nothing about a pod whose claims are not there, so only then its silence means something.
    return reasons or _no_scheduler(snapshot, pod)


def refusal_reason(decision: Decision, state: DraState | Refusal | AttemptError | None, pod: PodInfo) -> Reason | None:
    """What the scheduler finds wrong with the claims themselves, before it looks at nodes."""
    if isinstance(state, Refusal):
        return _refused(decision, state.message, pod)
    if isinstance(state, AttemptError):
        return Reason("claim-invalid", f"pod {pod.key}", state.message, "correct the claim")
    return None


def _no_scheduler(snapshot: Snapshot, pod: PodInfo) -> list[Reason]:
    if not snapshot.live:
        return []
    name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    if any(condition.type == "PodScheduled" for condition in pod.pod.status.conditions):
        return []
    if any(event.involved_object.uid == pod.uid and _reporter(event) == name for event in snapshot.events):
        return []
    created = pod.pod.metadata.creation_timestamp
    if not created or _seconds(snapshot, created) < PATIENCE_SECONDS:
        return []
    known = sorted({_reporter(e) for e in snapshot.events if e.reason in ("Scheduled", "FailedScheduling")} - {""})
    detail = f"no scheduler has looked at it for {snapshot.age(created)}; it asks for the scheduler {name!r}"
    if name not in known and known:
        detail += f", and the schedulers heard of here are {', '.join(known)}"
    remedy = (
        f"start a scheduler named {name!r}"
        if name == DEFAULT_SCHEDULER
        else f"start a scheduler named {name!r}, or create the pod again with another spec.schedulerName"
        f"{did_you_mean(name, known)}"
    )
    return [Reason("no-scheduler", f"pod {pod.key}", detail, remedy)]


def _reporter(event: core_v1.Event) -> str:
    return event.reporting_component or (event.source.component if event.source is not None else "")


def _seconds(snapshot: Snapshot, timestamp: str) -> float:
    from kubedra.base.clock import parse_time

    try:
        return (snapshot.now - parse_time(timestamp)).total_seconds()
    except ValueError:
        return 0.0


# ---- claims ----


def _claim(snapshot: Snapshot, pod: PodInfo, entry: core_v1.PodResourceClaim) -> Reason | None:
    name, generated, problem = claim_name(pod, entry)
    subject = f"claim {entry.name!r} of pod {pod.key}"
    if problem:
        return _not_created(snapshot, pod, entry, subject, problem)
    if not name:
        return None
    claim = snapshot.claims_by_name.get((pod.namespace, name))
    if claim is None:
        if not snapshot.sees("resourceclaims", pod.namespace):
            return None
        known = [other for namespace, other in snapshot.claims_by_name if namespace == pod.namespace]
        if generated:
            detail = f"ResourceClaim {pod.namespace}/{name} was made for this pod and is gone"
            return Reason("claim-missing", subject, detail, "delete the pod and create it again")
        detail = f"there is no ResourceClaim {name!r} in the namespace {pod.namespace}"
        return Reason("claim-missing", subject, detail, f"create it{did_you_mean(name, known)}")
    subject = f"claim {pod.namespace}/{name}"
    if claim.metadata.deletion_timestamp:
        users = _consumers(claim, pod.uid)
        held = f"; it still is used by {users}" if users else ""
        detail = f"it is being deleted since {snapshot.age(claim.metadata.deletion_timestamp)}{held}"
        remedy = f"wait until {users} {'has' if ',' not in users else 'have'} ended, " if users else ""
        return Reason("claim-deleting", subject, detail, f"{remedy}then create the claim again")
    if generated and not any(owner.controller and owner.uid == pod.uid for owner in claim.metadata.owner_references):
        owners = ", ".join(f"{owner.kind.lower()} {owner.name}" for owner in claim.metadata.owner_references)
        detail = f"it was not created for this pod: its owner is {owners or 'nobody'}"
        return Reason("claim-foreign", subject, detail, "delete that claim; a new one is made for this pod")
    reserved = claim.status.reserved_for
    if len(reserved) >= MOST_CONSUMERS and not any(consumer.uid == pod.uid for consumer in reserved):
        detail = f"it has {len(reserved)} consumers, and a claim can have at most {MOST_CONSUMERS} consumers"
        remedy = (
            "wait until one of its pods ends, or make a second claim for further pods"
            " (a ResourceClaimTemplate gives every pod its own)"
        )
        return Reason("claim-full", subject, detail, remedy)
    return None


def _not_created(
    snapshot: Snapshot, pod: PodInfo, entry: core_v1.PodResourceClaim, subject: str, problem: str
) -> Reason:
    template = entry.resource_claim_template_name
    if not template:
        return Reason("claim-reference-empty", subject, problem, "name a claim or a claim template in the pod")
    known = [name for namespace, name in snapshot.templates_by_name if namespace == pod.namespace]
    if (pod.namespace, template) not in snapshot.templates_by_name and snapshot.sees(
        "resourceclaimtemplates", pod.namespace
    ):
        detail = f"there is no ResourceClaimTemplate {template!r} in the namespace {pod.namespace} to make it from"
        return Reason("template-missing", subject, detail, f"create the template{did_you_mean(template, known)}")
    failed = [
        event.message
        for event in snapshot.events
        if event.involved_object.uid == pod.uid and event.reason == "FailedResourceClaimCreation"
    ]
    age = snapshot.age(pod.pod.metadata.creation_timestamp)
    detail = f"its ResourceClaim is not created yet{f' after {age}' if age else ''}"
    if failed:
        return Reason("claim-not-created", subject, f"{detail}: {failed[-1]}", "correct what the message names")
    return Reason(
        "claim-not-created",
        subject,
        f"{detail}; the resourceclaim controller makes it from the template {template!r}",
        "if this lasts, see whether kube-controller-manager (kubedra controllers) runs",
    )


def _refused(decision: Decision, message: str, pod: PodInfo) -> Reason:
    subject = f"pod {pod.key}"
    if "does not exist" in message and "device class " in message:
        wanted = message.partition("device class ")[2].partition(" ")[0]
        known = sorted(decision.inventory.classes)
        request = message.partition("request ")[2].partition(":")[0]
        detail = f"request {request!r} wants a device of the DeviceClass {wanted!r}, and there is no such class"
        remedy = f"use a class that exists{did_you_mean(wanted, known)}"
        if known:
            remedy += f" (there are: {', '.join(known[:8])})"
        else:
            remedy = "install a DRA driver, or create the class: this cluster has no device classes at all"
        return Reason("class-missing", subject, detail, remedy)
    if "feature is disabled" in message:
        gate = next((word for word in message.split() if word.startswith("DRA")), "")
        return Reason("feature-off", subject, message, f"switch the feature gate {gate} on, or ask without it")
    if "in the process of being allocated" in message:
        return Reason("claim-being-allocated", subject, message, "wait a moment")
    return Reason("claim-invalid", subject, message)


def _consumers(claim: resource_v1.ResourceClaim, but: str) -> str:
    return ", ".join(f"{c.resource.rstrip('s')} {c.name}" for c in claim.status.reserved_for if c.uid != but)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint at the nearest name, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near and near[0] != word else ""
