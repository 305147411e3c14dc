"""``why`` never says "fits" of what the scheduler refuses, nor the reverse; and its remedies are remedies.

The scheduler of these tests is fed by events, as the running one is, and shares no state with ``why``.
"""

from __future__ import annotations

import os
import random
from typing import Any

import msgspec
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from kubedra.allocation.allocator import Allocator
from kubedra.allocation.engine import cel_engine
from kubedra.allocation.features import Features
from kubedra.allocation.inventory import Inventory
from kubedra.allocation.ledger import Ledger
from kubedra.cli.output import Refusal
from kubedra.insight.answers import Remedy
from kubedra.insight.snapshots import Snapshot
from kubedra.insight.why import NoSuchObject
from kubedra.scheduler.claims import ClaimStore
from kubedra.scheduler.cycle import Cycle, NoPlace, Placed, Verdict
from kubedra.scheduler.dra import DynamicResources
from kubedra.scheduler.extended import ExtendedResources
from kubedra.scheduler.intake import Intake
from kubedra.scheduler.pods import pod_info
from kubedra.scheduler.queue import SchedulingQueue
from kubedra.scheduler.view import ClusterView
from tests.unit.insight.clusters import (
    NOW,
    ask,
    claim,
    device,
    held,
    node,
    partitioned_card,
    pod,
    request,
    slice_of,
    snapshot,
)

# KUBEDRA_EXAMPLES=5000 for a long run by hand.
EXAMPLES = int(os.environ.get("KUBEDRA_EXAMPLES", "120"))
Tree = dict[str, Any]

MODEL = 'device.attributes["d.example"].model'
SELECTORS = (
    f'{MODEL} == "A"',
    f'{MODEL} == "C"',
    'device.capacity["d.example"].memory.compareTo(quantity("40Gi")) >= 0',
    'device.capacity["d.example"].memory.compareTo(quantity("96Gi")) >= 0',
    'has(device.attributes["d.example"].fast) && device.attributes["d.example"].fast',
)
FAILING = 'device.attributes["d.example"].fast'


@st.composite
def clusters(draw: st.DrawFn) -> list[Tree]:
    """Up to three nodes with devices, some held, and a pod with one or two claims."""
    objects: list[Tree] = []
    free: list[tuple[str, str]] = []
    for number in range(draw(st.integers(1, 3))):
        name = f"n{number}"
        spec: Tree = {}
        if draw(st.integers(0, 5)) == 0:
            spec["unschedulable"] = True
        if draw(st.integers(0, 5)) == 0:
            spec["taints"] = [{"key": "old", "effect": "NoSchedule"}]
        objects.append(node(name, {"zone": draw(st.sampled_from("ab"))}, **spec))
        devices = []
        for index in range(draw(st.integers(0, 4))):
            attributes: Tree = {"model": draw(st.sampled_from("AB")), "numa": draw(st.integers(0, 1))}
            if draw(st.booleans()):
                attributes["fast"] = draw(st.booleans())
            made = device(f"d{index}", attributes, memory=draw(st.sampled_from(("40Gi", "81559Mi"))))
            if draw(st.integers(0, 4)) == 0:
                made["allowMultipleAllocations"] = True
            if draw(st.integers(0, 6)) == 0:
                made["taints"] = [{"key": "sick", "value": "yes", "effect": "NoSchedule"}]
            devices.append(made)
            free.append((name, made["name"]))
        half = draw(st.integers(0, 8)) == 0
        if devices:
            objects.append(slice_of(name, devices, count=2 if half else 1))
    for number, (where, name) in enumerate(free):
        if draw(st.integers(0, 2)) == 0:
            users = [f"q{number}"] if draw(st.booleans()) else []
            objects.append(held(f"h{number}", name, pods=users, node_name=where))
            objects += [pod(u, f"h{number}", node_name=where, phase="Running") for u in users]
    objects += draw(wishes())
    return objects


@st.composite
def wishes(draw: st.DrawFn) -> list[Tree]:
    """The pod and its claims."""
    names = ["x", "y"][: draw(st.integers(1, 2))]
    claims = []
    for name in names:
        requests = []
        for number in range(draw(st.integers(1, 2))):
            selectors = [draw(st.sampled_from(SELECTORS))] if draw(st.booleans()) else []
            if draw(st.integers(0, 11)) == 0:
                selectors = [FAILING]
            more: Tree = {}
            if draw(st.integers(0, 3)) == 0:
                more["tolerations"] = [{"operator": "Exists"}]
            if draw(st.integers(0, 9)) == 0:
                more = {**more, "allocationMode": "All"}
            made = request(f"r{number}", *selectors, count=draw(st.integers(1, 3)), **more)
            if more.get("allocationMode") == "All":
                del made["exactly"]["count"]
            if draw(st.integers(0, 4)) == 0:
                made["exactly"]["capacity"] = {"requests": {"memory": draw(st.sampled_from(("20Gi", "60Gi", "90Gi")))}}
            if draw(st.integers(0, 4)) == 0:
                worse = {**made["exactly"], "selectors": []}
                made = {
                    "name": made["name"],
                    "firstAvailable": [{"name": "best", **made["exactly"]}, {"name": "else", **worse}],
                }
            requests.append(made)
        constraints = []
        if draw(st.integers(0, 2)) == 0:
            kind = draw(st.sampled_from(("matchAttribute", "distinctAttribute")))
            constraints.append({kind: draw(st.sampled_from(("d.example/numa", "d.example/numaNode")))})
        claims.append(claim(name, *requests, constraints=constraints))
    selector: Tree = {"nodeSelector": {"zone": "a"}} if draw(st.integers(0, 3)) == 0 else {}
    return [*claims, pod("p", *names, **selector)]


def scheduler_says(
    found: Snapshot, order: random.Random, changed: Remedy | None = None, freed: frozenset[str] = frozenset()
) -> Verdict:
    """The verdict of a scheduler that learns the cluster from events in any order."""
    features = Features.of(found.gates)
    inventory, ledger, view = Inventory(cel_engine(features), features), Ledger(), ClusterView()
    store = ClaimStore(ledger)
    extended = ExtendedResources()
    dra = DynamicResources(inventory, Allocator(inventory, ledger), store, extended, filter_timeout=0)
    intake = Intake(view, dra, SchedulingQueue(lambda _: None), "default-scheduler")
    replaced = {c.metadata.uid: c for c in changed.claims} if changed is not None else {}
    gone = freed | set(changed.freed if changed is not None else ())
    events: list[Any] = [lambda o=o: intake.node(None, o, 0) for o in found.nodes]
    events += [lambda o=o: intake.device_class(None, o, 0) for o in found.classes]
    events += [lambda o=o: intake.resource_slice(None, o, 0) for o in found.slices]
    for item in found.claims:
        if item.metadata.uid not in gone:
            item = replaced.get(item.metadata.uid, item)
            events.append(lambda o=item: intake.claim(None, o, 0))
    events += [lambda o=o: intake.pod(None, o, 0) for o in found.pods if o.metadata.name != "p"]
    order.shuffle(events)
    for happen in events:
        happen()
    steps = Cycle(view, dra).place(pod_info(found.pods_by_name["default", "p"]), NOW)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            verdict: Verdict = stop.value
            return verdict


def copied(tree: Tree) -> Tree:
    """A node or slice again, under another name."""
    again: Tree = msgspec.json.decode(msgspec.json.encode(tree))
    again["metadata"]["name"] += "-again"
    if tree["kind"] == "ResourceSlice":
        again["spec"]["nodeName"] += "-again"
        again["spec"]["pool"]["name"] += "-again"
    return again


NONSENSE: tuple[Any, ...] = (None, "", -1, 0, 10**30, "abc", [], {}, True, "1e99", "\0", [None], {"x": 1}, 3.5)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every member of a tree: (container, key)."""
    found: list[tuple[Any, Any]] = []
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        found.append((tree, key))
        found += places(value)
    return found


@settings(max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(clusters(), st.integers(0, 10**6))
def test_broken_objects_are_answered_or_refused_in_a_sentence(objects: list[Tree], seed: int) -> None:
    broken: list[Tree] = msgspec.json.decode(msgspec.json.encode([*objects, *partitioned_card("n9")]))
    order = random.Random(seed)
    for _ in range(order.randint(1, 3)):
        container, key = order.choice(places(order.choice(broken)))
        if key not in ("kind", "apiVersion"):
            container[key] = order.choice(NONSENSE)
    try:
        answer, text = ask(snapshot(*broken), seconds=0.05)
    except (Refusal, NoSuchObject):
        return
    assert answer.fits or answer.reasons
    assert text


@settings(max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(clusters(), st.integers(0, 1000))
def test_why_says_what_the_scheduler_decides_and_its_remedies_work(objects: list[Tree], seed: int) -> None:
    found = snapshot(*objects)
    answer, _ = ask(found, seconds=10**6)
    verdict = scheduler_says(found, random.Random(seed))
    event("fits" if answer.fits else answer.reasons[0].code)
    if isinstance(verdict, Placed):
        # A selector that fails on some device: whether the scheduler gets to it depends on where it starts.
        assert answer.fits or answer.reasons[0].code == "selector-fails"
    elif isinstance(verdict, NoPlace):
        assert not answer.fits
    else:
        assert not answer.fits or FAILING in msgspec.json.encode(objects).decode().replace('\\"', '"')
    for remedy in answer.remedies:
        event(f"remedy {remedy.code}")
        if remedy.claims or remedy.freed:
            after = scheduler_says(found, random.Random(seed), remedy)
            assert isinstance(after, Placed), remedy
    for reason in answer.no_help:
        event(f"no help {reason.code}")
        everything = frozenset(c.metadata.uid for c in found.claims if c.status.allocation is not None)
        if reason.code == "freeing":
            assert not isinstance(scheduler_says(found, random.Random(seed), freed=everything), Placed)
        if reason.code == "adding-nodes":
            more = snapshot(*objects, *(copied(tree) for tree in objects if tree["kind"] in ("Node", "ResourceSlice")))
            assert not isinstance(scheduler_says(more, random.Random(seed)), Placed)
