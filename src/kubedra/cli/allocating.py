"""What ``kubedra allocate -f`` works out and prints: one answer for each pod, and for each claim no pod uses."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from kubedra.allocation import AllocationError, Allocator, Features, Inventory, Ledger
from kubedra.allocation.bridge import ResourceNames, bridge_claim, bridged_resources, placeholder_claim, provider
from kubedra.allocation.engine import cel_engine
from kubedra.allocation.finder import Aborted, Finder, Found
from kubedra.allocation.ledger import claim_key
from kubedra.allocation.reasons import explain
from kubedra.api.codec import to_tree
from kubedra.api.core_v1 import Namespace, Node, Pod
from kubedra.api.meta_v1 import ObjectMeta
from kubedra.api.resource_v1 import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from kubedra.base.features import VERSIONS, FeatureGates
from kubedra.base.node_selectors import matches_node_selector
from kubedra.cli.placing import Places, summary
from kubedra.cli.sources import Gathering
from kubedra.insight.snapshots import Snapshot


@dataclass
class Answer:
    """What one pod or claim would get."""

    subject: str
    node: str = ""
    allocations: list[tuple[ResourceClaim, AllocationResult]] = field(default_factory=list)
    problem: str = ""
    # The search was cut off: whether it fits is not known.
    unknown: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def fits(self) -> bool:
        """Whether it would get what it wants."""
        return not self.problem


@dataclass(frozen=True)
class World:
    """A cluster with the objects of the files laid over it, and the pods and claims to answer for."""

    nodes: list[Node]
    classes: list[DeviceClass]
    slices: list[ResourceSlice]
    rules: list[DeviceTaintRule]
    templates: list[ResourceClaimTemplate]
    claims: list[ResourceClaim]
    pods: list[Pod]
    wanted: list[ResourceClaim]
    running: list[Pod]
    namespaces: list[Namespace]

    @classmethod
    def of(cls, cluster: Snapshot, files: Gathering) -> World:
        """Lay the objects of files over those of a cluster."""
        names = ("nodes", "classes", "slices", "rules", "templates", "claims")
        merged = {name: _merged(getattr(cluster, name), files.objects[name]) for name in names}
        pods: list[Pod] = files.objects["pods"]
        asked = {(pod.metadata.namespace, pod.metadata.name) for pod in pods}
        return cls(
            **merged,
            pods=pods,
            wanted=files.objects["claims"],
            running=[p for p in cluster.pods if (p.metadata.namespace, p.metadata.name) not in asked],
            namespaces=list(cluster.namespaces),
        )


class _Cluster:
    def __init__(self, objects: World, gates: FeatureGates) -> None:
        features = Features.of(gates)
        self.objects = objects
        self.inventory = Inventory(cel_engine(features), features)
        self.ledger = Ledger(features.consumable_capacity)
        self.names = ResourceNames(objects.classes)
        self.bridge = gates.enabled("DRAExtendedResource")
        for rule in objects.rules:
            self.inventory.update_taint_rule(rule)
        for node in objects.nodes:
            self.inventory.update_node(node)
        for device_class in objects.classes:
            self.inventory.update_class(device_class)
        for slice_ in objects.slices:
            self.inventory.update_slice(slice_)
        # Whom the ledger's keys mean, for people.
        self.holders: dict[str, str] = {}
        for claim in objects.claims:
            self.ledger.update_claim(claim)
            self.holders[claim_key(claim)] = f"{claim.metadata.namespace}/{claim.metadata.name}"
        self.places = Places(objects.nodes, objects.running, objects.namespaces)
        # The same input gets the same share IDs.
        self._shares = 0
        self.allocator = Allocator(self.inventory, self.ledger, new_share_id=self._share_id)
        self.finder = Finder(self.allocator)

    def _share_id(self) -> str:
        self._shares += 1
        return str(uuid.UUID(hashlib.sha256(f"share {self._shares}".encode()).hexdigest()[:32], version=4))


def _no_fault(kind: str, namespace: str, name: str) -> str:
    return ""


def answer(objects: World, gates: FeatureGates, fault: Callable[[str, str, str], str] = _no_fault) -> list[Answer]:
    """Allocate for every pod of the files, then for every claim that none of them uses.

    ``fault`` says why an API server would refuse an object (kind, namespace, name), or "".
    """
    cluster = _Cluster(objects, gates)
    claims = {(c.metadata.namespace, c.metadata.name): c for c in objects.claims}
    templates = {(t.metadata.namespace, t.metadata.name): t for t in objects.templates}
    used: set[tuple[str, str]] = set()
    answers = []
    for pod in objects.pods:
        mine: list[ResourceClaim] = []
        problem = fault("Pod", pod.metadata.namespace, pod.metadata.name)
        for entry in pod.spec.resource_claims:
            namespace = pod.metadata.namespace
            problem = problem or fault("ResourceClaim", namespace, entry.resource_claim_name or "")
            problem = problem or fault("ResourceClaimTemplate", namespace, entry.resource_claim_template_name or "")
            if entry.resource_claim_name:
                claim = claims.get((namespace, entry.resource_claim_name))
                used.add((namespace, entry.resource_claim_name))
                problem = problem or ("" if claim else f"resourceclaim {entry.resource_claim_name!r} not found")
            else:
                name = entry.resource_claim_template_name or ""
                template = templates.get((namespace, name))
                problem = problem or ("" if template else f"resourceclaimtemplate {name!r} not found")
                claim = None if template is None else _from_template(template, pod, entry.name)
            if claim is not None:
                mine.append(claim)
        subject = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
        answers.append(Answer(subject, problem=problem) if problem else _place(cluster, subject, pod, mine, claims))
    for claim in objects.wanted:
        place = (claim.metadata.namespace, claim.metadata.name)
        if place not in used:
            problem, subject = fault("ResourceClaim", *place), f"claim {'/'.join(place)}"
            answers.append(
                Answer(subject, problem=problem) if problem else _place(cluster, subject, None, [claim], claims)
            )
    return answers


def _from_template(template: ResourceClaimTemplate, pod: Pod, entry: str) -> ResourceClaim:
    namespace, name = pod.metadata.namespace, pod.metadata.name
    metadata = ObjectMeta(name=f"{name}-{entry}", namespace=namespace, uid=f"{namespace}/{name}/{entry}")
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)


def _place(
    cluster: _Cluster,
    subject: str,
    pod: Pod | None,
    claims: list[ResourceClaim],
    known: dict[tuple[str, str], ResourceClaim],
) -> Answer:
    done = [claim for claim in claims if claim.status.allocation is not None]
    new = [claim for claim in claims if claim.status.allocation is None]
    bridged = bridged_resources(pod, cluster.names) if pod is not None and cluster.bridge else {}
    rejected = cluster.places.rejected(pod, frozenset(bridged)) if pod is not None else {}
    nodes = []
    for node in cluster.objects.nodes:
        if node.metadata.name not in rejected and not _reaches(node, done):
            rejected[node.metadata.name] = "an allocated claim is elsewhere"
        if node.metadata.name not in rejected:
            nodes.append(node)
    groups: dict[tuple[str, ...], list[str]] = {}
    for node in nodes:
        allocatable = node.status.allocatable
        served = tuple(sorted(r for r in bridged if provider(r, True, allocatable) == "classes"))
        groups.setdefault(served, []).append(node.metadata.name)
    order = {node.metadata.name: place for place, node in enumerate(nodes)}
    best: tuple[int, Found, list[ResourceClaim]] | None = None
    asked: list[tuple[list[ResourceClaim], list[str]]] = []
    for served, names in groups.items():
        mine = list(new)
        if served and pod is not None:
            bridge = bridge_claim(pod, {resource: bridged[resource] for resource in served})
            mine.append(placeholder_claim(pod, bridge, f"{subject}/extended-resources"))
        asked.append((mine, names))
        finding = cluster.finder.find(mine, names)
        if isinstance(finding, Aborted):
            return Answer(subject, problem=finding.error.message, unknown=finding.error.timed_out)
        if isinstance(finding, Found) and (best is None or order[finding.node] < best[0]):
            best = order[finding.node], finding, mine
    if best is None:
        # Nodes that would get other claims (device plugins of their own) are answered for by the largest group.
        wanted, names = max(asked, key=lambda pair: len(pair[1]), default=(new, []))
        return Answer(subject, problem=_why_not(cluster, wanted, names, rejected))
    _, found, mine = best
    if pod is not None:
        cluster.places.take(pod, found.node)
    allocations = list(zip(mine, found.allocated.allocations, strict=True))
    for claim, allocation in allocations:
        cluster.ledger.assume(claim_key(claim), allocation)
        cluster.holders[claim_key(claim)] = f"{claim.metadata.namespace}/{claim.metadata.name}"
        place = (claim.metadata.namespace, claim.metadata.name)
        if place in known:
            status = type(claim.status)(allocation=allocation)
            known[place] = type(claim)(metadata=claim.metadata, spec=claim.spec, status=status)
    held = [(claim, claim.status.allocation) for claim in done if claim.status.allocation is not None]
    return Answer(subject, found.node, [*held, *allocations])


def _why_not(cluster: _Cluster, claims: Sequence[ResourceClaim], nodes: Sequence[str], rejected: dict[str, str]) -> str:
    if not cluster.objects.nodes:
        return "there are no nodes"
    if not nodes:
        return f"no node can take it: {summary(rejected)}"
    pod = cluster.allocator.prepare(claims)
    for node in nodes:
        outcome = cluster.allocator.allocate(node, pod)
        if isinstance(outcome, AllocationError) and not outcome.node_only:
            return outcome.message
    explanation = explain(cluster.inventory, cluster.ledger, pod, nodes)
    text = explanation.sentence()
    for fall in explanation.waterfalls:
        for uid, _ in fall.holders[:3]:
            text = text.replace(uid, cluster.holders.get(uid, uid))
    return text


def _reaches(node: Node, done: Iterable[ResourceClaim]) -> bool:
    """Whether claims that have their devices already can be used on a node."""
    labels, name = node.metadata.labels, node.metadata.name
    for claim in done:
        selector = claim.status.allocation.node_selector if claim.status.allocation is not None else None
        if selector is not None and not matches_node_selector(selector, labels, name):
            return False
    return True


def _merged(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    found = {(o.metadata.namespace, o.metadata.name): o for o in old}
    found |= {(o.metadata.namespace, o.metadata.name): o for o in new}
    return list(found.values())


def upgrade_changes(
    answers: Sequence[Answer],
    objects: World,
    gates: FeatureGates,
    fault: Callable[[str, str, str], str] = _no_fault,
) -> list[str]:
    """What the newest version would answer otherwise, one line each; nothing when this is the newest."""
    newest = VERSIONS[-1]
    if gates.version == newest:
        return []
    changes = []
    for mine, theirs in zip(answers, answer(objects, FeatureGates(newest, gates.overrides), fault), strict=True):
        if mine.fits != theirs.fits:
            verb = f"would fit on {theirs.node}" if theirs.fits else f"would not fit: {theirs.problem}"
            changes.append(f"with Kubernetes {newest} {mine.subject} {verb}")
        elif (mine.node, [a for _, a in mine.allocations]) != (theirs.node, [a for _, a in theirs.allocations]):
            changes.append(f"with Kubernetes {newest} {mine.subject} would get another allocation")
        elif mine.problem != theirs.problem:
            changes.append(
                f"with Kubernetes {newest} {mine.subject} would not fit for another reason: {theirs.problem}"
            )
    return changes


def as_tree(answers: Sequence[Answer], gates: FeatureGates, changes: Sequence[str] = ()) -> dict[str, Any]:
    """The answers for scripts."""
    return {
        "kubernetesVersion": gates.version,
        "fits": all(item.fits for item in answers),
        "upgradeWouldChange": list(changes),
        "answers": [
            {
                "subject": item.subject,
                "fits": None if item.unknown else item.fits,
                "node": item.node,
                "problem": item.problem,
                "claims": [
                    {"name": f"{c.metadata.namespace}/{c.metadata.name}", "allocation": to_tree(a)}
                    for c, a in item.allocations
                ],
            }
            for item in answers
        ],
    }


def print_answers(answers: Sequence[Answer], gates: FeatureGates, changes: Sequence[str] = ()) -> None:
    """The answers for people."""
    for item in answers:
        if not item.fits:
            verdict = "not known whether it fits" if item.unknown else "does not fit"
            click.echo(f"{item.subject}: {verdict}: {item.problem}")
            continue
        click.echo(f"{item.subject}: {item.node or 'fits'}")
        for claim, allocation in item.allocations:
            click.echo(f"  claim {claim.metadata.name}")
            for result in allocation.devices.results if allocation.devices is not None else ():
                extra = "".join(f", {key} {value}" for key, value in sorted(result.consumed_capacity.items()))
                extra += ", admin access" if result.admin_access else ""
                click.echo(f"    {result.request}: {result.driver}/{result.pool}/{result.device}{extra}")
    if gates.version != VERSIONS[-1]:
        click.echo(f"answered as Kubernetes {gates.version}")
    for change in changes:
        click.echo(change)
