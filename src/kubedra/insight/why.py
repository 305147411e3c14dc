"""Why a pod or a claim waits, and what would help.

First things first: what is wrong before any node is looked at; then the scheduler's own verdict; only if that is "no",
the waterfall of devices, what stops each kind of node, and remedies. The verdict comes from the code that decides
(``decision``), the counts from the masks that it reads (``allocation.waterfall``), so neither can contradict it.

Pure: time comes in as a function, and only to end the search for remedies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kubedra.allocation.reasons import Explanation, Reason, explain
from kubedra.allocation.waterfall import waterfalls
from kubedra.api import core_v1, meta_v1, resource_v1
from kubedra.base.features import VERSIONS, FeatureGates
from kubedra.insight.answers import Answer, State, shortened
from kubedra.insight.bound import bound_reasons
from kubedra.insight.changing import full_name
from kubedra.insight.constraints import constraint_reports
from kubedra.insight.decision import ELSEWHERE, Deadline, Decision, Question
from kubedra.insight.holders import holder_text
from kubedra.insight.node_groups import node_groups, rejections_text
from kubedra.insight.relations import claims_of_pod
from kubedra.insight.remedies import find_remedies, no_help
from kubedra.insight.snapshots import Snapshot
from kubedra.insight.trying import Trying
from kubedra.insight.waiting import did_you_mean, first_things, refusal_reason
from kubedra.insight.wording import attempt_reason, failing_selector, reworded
from kubedra.scheduler.cycle import NoPlace, Placed
from kubedra.scheduler.pods import FINISHED_PHASES, PodInfo, pod_info
from kubedra.scheduler.verdicts import AttemptError

REMEDY_SECONDS = 1.0
MOST_HOLDERS_NAMED = 50


class NoSuchObject(Exception):
    """The pod or claim is not in the snapshot; the text says what is."""


def why_pod(
    snapshot: Snapshot,
    namespace: str,
    name: str,
    monotonic: Callable[[], float],
    remedy_seconds: float = REMEDY_SECONDS,
) -> Answer:
    """Why a pod does not run. Raises NoSuchObject."""
    pod = snapshot.pods_by_name.get((namespace, name))
    if pod is None:
        raise NoSuchObject(_not_there(snapshot, "pod", namespace, name, list(snapshot.pods_by_name)))
    subject = f"pod {namespace}/{name}"
    meta, status = pod.metadata, pod.status
    age = snapshot.age(meta.creation_timestamp)
    if status.phase in FINISHED_PHASES:
        return _simple(snapshot, subject, "done", f"has ended ({status.phase}): there is nothing to wait for")
    if meta.deletion_timestamp:
        since = snapshot.age(meta.deletion_timestamp)
        answer = _simple(snapshot, subject, "waits", f"is being deleted{f' since {since}' if since else ''}")
        held = ", ".join(meta.finalizers)
        remedy = f"finalizers keep it: {held}" if held else "wait until its node says that its containers have ended"
        answer.reasons.append(Reason("pod-deleting", subject, "it is being deleted", remedy))
        return answer
    if pod.spec.node_name:
        return _bound(snapshot, pod, subject)
    decision = Decision(snapshot)
    info = pod_info(pod)
    answer = _why(decision, info, subject, monotonic, remedy_seconds)
    answer.headline += f" (pending for {age})" if age else ""
    return answer


def why_claim(
    snapshot: Snapshot,
    namespace: str,
    name: str,
    monotonic: Callable[[], float],
    remedy_seconds: float = REMEDY_SECONDS,
) -> Answer:
    """Why a claim has no devices. Raises NoSuchObject."""
    claim = snapshot.claims_by_name.get((namespace, name))
    if claim is None:
        raise NoSuchObject(_not_there(snapshot, "claim", namespace, name, list(snapshot.claims_by_name)))
    subject = f"claim {namespace}/{name}"
    if claim.status.allocation is not None:
        return _allocated(snapshot, claim, subject)
    if claim.metadata.deletion_timestamp:
        answer = _simple(snapshot, subject, "waits", "is being deleted")
        answer.reasons.append(Reason("claim-deleting", subject, "it is being deleted", "create it again"))
        return answer
    users = [pod for pod in snapshot.pods if _uses(pod, claim) and pod.status.phase not in FINISHED_PHASES]
    pending = [pod for pod in users if not pod.spec.node_name]
    if pending:
        pod = pending[0]
        answer = why_pod(snapshot, namespace, pod.metadata.name, monotonic, remedy_seconds)
        answer.subject = f"{subject}, used by pod {namespace}/{pod.metadata.name}"
        return answer
    if users:
        answer = _bound(snapshot, users[0], subject)
        answer.headline = f"belongs to the pod {users[0].metadata.name}, which {answer.headline}"
        return answer
    # Nobody uses it: say whether a plain pod that does would fit.
    decision = Decision(snapshot)
    pod = core_v1.Pod(
        metadata=meta_v1.ObjectMeta(name="(any pod)", namespace=namespace, uid="kubedra-why"),
        spec=core_v1.PodSpec(
            resource_claims=(core_v1.PodResourceClaim(name="claim", resource_claim_name=name),),
            containers=(core_v1.Container(name="main"),),
        ),
    )
    answer = _why(decision, pod_info(pod), subject, monotonic, remedy_seconds)
    unused = Reason(
        "claim-unused",
        subject,
        "no pod uses it: devices are allocated when a pod that names the claim is scheduled",
        f"create a pod with resourceClaims: [{{name: …, resourceClaimName: {name}}}]",
    )
    if answer.fits:
        answer.headline = f"waits for a pod that uses it; such a pod {answer.headline}"
        answer.state = "waits"
    answer.reasons.append(unused)
    return answer


# ---- one pod without a node ----


def _why(
    decision: Decision, pod: PodInfo, subject: str, monotonic: Callable[[], float], remedy_seconds: float
) -> Answer:
    snapshot = decision.snapshot
    first = first_things(decision, pod)
    if first:
        return _with_reasons(_simple(snapshot, subject, "waits", ""), first)
    hidden = _hidden(snapshot, pod)
    if hidden is not None:
        answer = _with_reasons(_simple(snapshot, subject, "waits", ""), [hidden])
        answer.headline = "waits, and why can't be seen with your rights"
        return answer
    verdict = decision.place(pod)
    if isinstance(verdict, Placed):
        answer = _simple(snapshot, subject, "would-fit", f"fits on the node {verdict.node}")
        answer.fits = True
        answer.headline += (
            "; the scheduler has only not come to it yet" if snapshot.live else ", as far as these objects tell"
        )
        return answer
    question = replace(decision.question(pod), failed=isinstance(verdict, AttemptError))
    answer = _simple(snapshot, subject, "waits", "")
    refused = refusal_reason(decision, question.refusal, pod)
    if refused is not None:
        return _with_reasons(answer, [refused])
    if not decision.view.nodes:
        return _with_reasons(answer, [Reason("no-nodes", "the cluster", "it has no nodes", "add one")])
    _explain(decision, question, verdict, answer)
    answer.notes += _after_upgrade(snapshot, pod)
    _remedies(decision, question, answer, Deadline(monotonic, remedy_seconds))
    return answer


def _hidden(snapshot: Snapshot, pod: PodInfo) -> Reason | None:
    """Without nodes, slices or classes nothing can be decided; then the scheduler's own words are all there is."""
    needed = ("nodes", "resourceslices", "deviceclasses") if pod.spec.resource_claims else ("nodes",)
    hidden = [plural for plural in needed if not snapshot.sees(plural)]
    claims = [name for _, name, claim in claims_of_pod(pod.pod, snapshot.claims) if name and claim is None]
    if claims and not snapshot.sees("resourceclaims", pod.namespace):
        hidden.append("resourceclaims")
    if not snapshot.live or not hidden:
        return None
    said = next((c.message for c in pod.pod.status.conditions if c.type == "PodScheduled" and c.status == "False"), "")
    detail = f"you may not list {' and '.join(hidden)}, so nothing can be said about devices and nodes"
    detail += f"; the scheduler says: {said}" if said else "; no scheduler has said anything about the pod yet"
    remedy = "ask somebody who may list them to run this command, or for a dump (see kubedra why --help)"
    return Reason("not-visible", f"pod {pod.key}", detail, remedy)


def _after_upgrade(snapshot: Snapshot, pod: PodInfo) -> list[str]:
    """What a newer Kubernetes would change, for an answer that is given for an older one."""
    newest = VERSIONS[-1]
    if snapshot.gates.version == newest:
        return []
    newer = replace(snapshot, gates=FeatureGates(newest, snapshot.gates.overrides))
    verdict = Decision(newer).place(pod)
    if not isinstance(verdict, Placed):
        return []
    return [f"This is the answer of Kubernetes {snapshot.gates.version}; with {newest} it would fit on {verdict.node}"]


def _explain(decision: Decision, question: Question, verdict: NoPlace | AttemptError, answer: Answer) -> None:
    """Reasons, waterfalls and nodes of a pod that fits nowhere."""
    snapshot = decision.snapshot
    reasons: list[Reason] = []
    total = len(decision.view.nodes)
    if any(claims for claims, _ in question.groups):
        # Where nodes ask for different claims (a device plugin serves some), the most frequent question is told.
        (claims, nodes), *others = question.groups
        explanation = explain(decision.inventory, decision.ledger, decision.allocator.prepare(claims), nodes)
        answer.requests = list(explanation.waterfalls)
        for more, names in others:
            _add_nodes(answer, explain(decision.inventory, decision.ledger, decision.allocator.prepare(more), names))
        answer.constraints = constraint_reports(decision, question)
        reasons += reworded(decision, question, explanation, answer)
    elif question.claims:
        # No node can run the pod: the devices are followed up to there.
        pod = decision.allocator.prepare(question.claims)
        answer.requests = waterfalls(decision.inventory, decision.ledger, pod, ())
    if isinstance(verdict, AttemptError):
        # An error is not the same as "does not fit": what else was counted says little.
        errors = [r for r in reasons if r.code in ("selector-fails", "claim-invalid")]
        failing = [failing_selector(decision, question, fall) for fall in answer.requests if fall.failing]
        reasons = failing or errors or [attempt_reason(question, verdict.message)]
    if question.rejected and not question.nodes:
        reasons.insert(0, _nodes_reject(decision, question))
    for key in {key for fall in answer.requests for key, _ in fall.holders[:MOST_HOLDERS_NAMED]}:
        answer.holders[key] = holder_text(snapshot, key)
    answer.nodes = node_groups(decision, question, answer.requests)
    if not reasons:
        reasons.append(Reason("no-place", f"pod {question.pod.key}", getattr(verdict, "message", "no node fits")))
    _name_bridged(question, answer, reasons)
    if isinstance(verdict, NoPlace) and verdict.rescue is not None and not verdict.rescue.delete:
        name = verdict.rescue.claim.metadata.name
        answer.notes.append(f"The scheduler gives the devices of claim {name} back, which nobody uses, and tries again")
    where = "the only node" if total == 1 else f"any of the {total} nodes"
    answer.reasons = reasons
    answer.headline = f"does not fit on {where}"


def _add_nodes(answer: Answer, explanation: Explanation) -> None:
    """Take over what other nodes answer to the same requests."""
    known = {(fall.claim, fall.request): fall for fall in answer.requests}
    for fall in explanation.waterfalls:
        mine = known.get((fall.claim, fall.request))
        if mine is not None:
            mine.nodes.update(fall.nodes)


def _name_bridged(question: Question, answer: Answer, reasons: list[Reason]) -> None:
    """Call the requests that stand for extended resources by what the pod's author wrote."""
    extended = question.state.extended if question.state is not None else None
    for claim, bridge in extended.made.values() if extended is not None else ():
        for mapping in bridge.mappings:
            key = (full_name(claim), mapping.request_name)
            answer.names[key] = f"{mapping.resource_name} of container {mapping.container_name}"
    for place, reason in enumerate(reasons):
        for (claim_name, request), text in answer.names.items():
            if reason.subject == f"claim {claim_name}, request {request}":
                reasons[place] = replace(reason, subject=text)


def _nodes_reject(decision: Decision, question: Question) -> Reason:
    detail = f"no node can run it: {rejections_text(decision, question)}"
    remedy = "change what keeps the pod from the nodes"
    elsewhere = [rejected for rejected in question.rejected.values() if rejected.plugin == ELSEWHERE]
    if elsewhere:
        remedy = "wait until the node with the claim's devices has room, or use a claim of its own for this pod"
    return Reason("nodes-reject", f"pod {question.pod.key}", detail, remedy)


def _remedies(decision: Decision, question: Question, answer: Answer, deadline: Deadline) -> None:
    answer.remedies = find_remedies(Trying(decision, question, answer.requests, deadline))
    answer.remedies_cut = deadline.cut
    if any(r.code in _CLAIM_CHANGES for r in answer.remedies):
        answer.notes += _where_to_change(question)
    answer.no_help = no_help(decision, question, answer.remedies, deadline.cut)


_CLAIM_CHANGES = frozenset(
    (
        "relax-selector",
        "correct-name",
        "guard-attribute",
        "repair-selector",
        "drop-selector",
        "drop-constraint",
        "add-toleration",
        "lower-count",
        "lower-capacity",
    )
)


def _where_to_change(question: Question) -> list[str]:
    """A claim's spec can't be changed: what to edit instead."""
    spec = question.pod.spec
    templates = [e.resource_claim_template_name for e in spec.resource_claims if e.resource_claim_template_name]
    direct = [e.resource_claim_name for e in spec.resource_claims if e.resource_claim_name]
    places = [f"the ResourceClaimTemplate {name}" for name in templates]
    places += [f"the ResourceClaim {name} (delete it, create it anew)" for name in direct]
    if not places:
        return []
    return [f"A claim can't be changed in place: change {shortened(places)}, then create the pod again"]


def _with_reasons(answer: Answer, reasons: list[Reason]) -> Answer:
    """The answer with these reasons, the first of them as its headline."""
    answer.reasons = reasons
    answer.headline = "waits before any node is looked at"
    return answer


# ---- pods with a node, claims with devices ----


def _bound(snapshot: Snapshot, pod: core_v1.Pod, subject: str) -> Answer:
    node = pod.spec.node_name
    reasons = bound_reasons(snapshot, pod)
    running = [s for s in pod.status.container_statuses if s.state is not None and s.state.running is not None]
    if running and len(running) == len(pod.spec.containers) and not any(r.code == "node-not-ready" for r in reasons):
        answer = _simple(snapshot, subject, "runs", f"runs on the node {node}")
        answer.fits = True
        return answer
    if not reasons:
        answer = _simple(snapshot, subject, "prepares", f"has its place on the node {node} and is being started")
        answer.fits = True
        return answer
    answer = _simple(snapshot, subject, "waits", "")
    answer.reasons = reasons
    answer.headline = f"is bound to the node {node} and does not run"
    return answer


def _allocated(snapshot: Snapshot, claim: resource_v1.ResourceClaim, subject: str) -> Answer:
    allocation = claim.status.allocation
    assert allocation is not None
    devices = [
        f"{r.driver}/{r.pool}/{r.device}"
        for r in (allocation.devices.results if allocation.devices is not None else ())
    ]
    users = [f"{c.resource.rstrip('s')} {c.name}" for c in claim.status.reserved_for]
    used = f"used by {shortened(users)}" if users else "used by nobody"
    answer = _simple(snapshot, subject, "runs", f"has its devices ({shortened(devices)}), {used}")
    answer.fits = True
    for consumer in claim.status.reserved_for:
        pod = snapshot.pods_by_uid.get(consumer.uid)
        if pod is not None and pod.spec.node_name and pod.status.phase in ("", "Pending"):
            inner = _bound(snapshot, pod, subject)
            if inner.reasons:
                inner.headline = f"has its devices, but its pod {consumer.name} does not run"
                return inner
    return answer


def _uses(pod: core_v1.Pod, claim: resource_v1.ResourceClaim) -> bool:
    if pod.metadata.namespace != claim.metadata.namespace:
        return False
    name = claim.metadata.name
    return any(entry.resource_claim_name == name for entry in pod.spec.resource_claims) or any(
        status.resource_claim_name == name for status in pod.status.resource_claim_statuses
    )


# ---- common ----


def _simple(snapshot: Snapshot, subject: str, state: State, headline: str) -> Answer:
    answer = Answer(
        subject,
        snapshot.where,
        state,
        headline,
        fits=state in ("done", "runs", "prepares", "would-fit"),
        version=snapshot.gates.version,
    )
    answer.unseen = unseen_notes(snapshot)
    return answer


_UNSEEN = {
    "resourceslices": "the published devices, so nothing can be said about devices at all",
    "resourceclaims": "claims of other namespaces, so devices they hold count as free here",
    "pods": "pods of other namespaces, so room they take on nodes counts as free here",
    "nodes": "nodes, so nothing can be said about where the pod may run",
    "deviceclasses": "device classes, so every class looks as if it did not exist",
    "devicetaintrules": "DeviceTaintRules, so devices tainted by them look untainted",
    "resourceclaimtemplates": "claim templates, so a missing one is not noticed",
    "events": "events, so what the kubelet and the controllers reported is missing",
    "leases": "leases",
    "namespaces": "labels of namespaces, which only pod affinity across namespaces reads",
}
_QUIET = frozenset(("leases", "namespaces"))


def unseen_notes(snapshot: Snapshot) -> list[str]:
    """What could not be read and how far the answer holds, in sentences."""
    notes = []
    for unseen in snapshot.unseen:
        if unseen.plural in _QUIET:
            continue
        what = _UNSEEN.get(unseen.plural, unseen.plural)
        only = f" (only those of the namespace {unseen.namespace} were read)" if unseen.namespace else ""
        notes.append(f"{what}{only}: {unseen.why}")
    return notes


def _not_there(snapshot: Snapshot, what: str, namespace: str, name: str, known: list[tuple[str, str]]) -> str:
    kind = "pods" if what == "pod" else "resourceclaims"
    hidden = next((u for u in snapshot.unseen if u.plural == kind and u.namespace != namespace), None)
    if hidden is not None:
        return f"the {what} {name!r} can't be seen: {hidden.why}"
    here = [n for ns, n in known if ns == namespace]
    elsewhere = sorted(ns for ns, n in known if n == name and ns != namespace)
    text = f"there is no {what} {name!r} in the namespace {namespace} of {snapshot.where or 'the cluster'}"
    if elsewhere:
        return f"{text}; there is one in the namespace {shortened(elsewhere)} (-n {elsewhere[0]})"
    return text + did_you_mean(name, here)
