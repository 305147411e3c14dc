"""How a pod, its claims, their devices, the node and the drivers hang together.

Pure: from objects to sections of text lines. Used by ``kubedra describe``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubedra.api import core_v1, resource_v1

Claim = resource_v1.ResourceClaim
Slice = resource_v1.ResourceSlice
Pod = core_v1.Pod

EXTENDED_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


@dataclass(frozen=True)
class Cluster:
    """The objects that relations are read from; what may not be read is missing and named in ``unseen``."""

    pods: Sequence[Pod] = ()
    claims: Sequence[Claim] = ()
    slices: Sequence[Slice] = ()
    classes: Sequence[resource_v1.DeviceClass] = ()
    unseen: Sequence[str] = ()


@dataclass
class Section:
    """A heading with ``name: value`` lines, lines, or sections below it."""

    title: str
    lines: list[str] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    def add(self, name: str, value: Any) -> None:
        """Add ``name: value``; empty values are shown as <none>."""
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value) if value else ""
        self.lines.append(f"{name + ':':<13} {text or '<none>'}")

    def render(self, depth: int = 0) -> list[str]:
        """Indented text lines."""
        pad = "  " * depth
        out = [f"{pad}{self.title}"] if self.title else []
        inner = pad + ("  " if self.title else "")
        out += [inner + line for line in self.lines]
        for section in self.sections:
            out += section.render(depth + bool(self.title))
        return out

    def tree(self) -> dict[str, Any]:
        """The section for scripts."""
        return {"title": self.title, "lines": self.lines, "sections": [s.tree() for s in self.sections]}


def claim_state(claim: Claim) -> str:
    """Upstream's State column: ``pending``, ``allocated,reserved``, ``deleted,…``."""
    words = ["deleted"] if claim.metadata.deletion_timestamp else []
    if claim.status.allocation is None:
        words.append("pending")
    else:
        words.append("allocated")
        if claim.status.reserved_for:
            words.append("reserved")
    return ",".join(words)


def device_index(slices: Iterable[Slice]) -> dict[tuple[str, str, str], tuple[Slice, resource_v1.Device]]:
    """Devices by (driver, pool, name), of the newest generation of each pool."""
    newest: dict[tuple[str, str], int] = {}
    slices = tuple(slices)
    for s in slices:
        key = (s.spec.driver, s.spec.pool.name)
        newest[key] = max(newest.get(key, 0), s.spec.pool.generation or 0)
    out: dict[tuple[str, str, str], tuple[Slice, resource_v1.Device]] = {}
    for s in slices:
        if (s.spec.pool.generation or 0) == newest[s.spec.driver, s.spec.pool.name]:
            for device in s.spec.devices:
                out[s.spec.driver, s.spec.pool.name, device.name] = (s, device)
    return out


def attribute_text(attribute: resource_v1.DeviceAttribute) -> str:
    """An attribute's value as people write it."""
    for value in (attribute.string, attribute.version, attribute.int_):
        if value is not None:
            return str(value)
    if attribute.bool_ is not None:
        return "true" if attribute.bool_ else "false"
    return str([*attribute.strings, *attribute.versions, *attribute.ints, *attribute.bools])


def device_section(
    device: resource_v1.Device, driver: str, pool: str, holders: Sequence[str] = (), title: str = ""
) -> Section:
    """One device with what it publishes and who holds it."""
    section = Section(title or f"Device {driver}/{pool}/{device.name}")
    if device.attributes:
        section.add("Attributes", [f"{k}={attribute_text(v)}" for k, v in sorted(device.attributes.items())])
    if device.capacity:
        section.add("Capacity", [f"{k}={v.value}" for k, v in sorted(device.capacity.items())])
    if device.taints:
        section.add("Taints", [f"{t.key}={t.value}:{t.effect}" for t in device.taints])
    section.add("Held by", list(holders) or "nobody")
    return section


def holders_by_device(claims: Iterable[Claim]) -> dict[tuple[str, str, str], list[str]]:
    """Who holds each device: ``namespace/claim (pod …)``."""
    out: dict[tuple[str, str, str], list[str]] = {}
    for claim in claims:
        for result in claim.status.allocation.devices.results if claim.status.allocation is not None else ():
            users = ", ".join(f"{r.resource.rstrip('s')} {r.name}" for r in claim.status.reserved_for)
            text = f"{claim.metadata.namespace}/{claim.metadata.name}" + (f" ({users})" if users else " (no consumer)")
            out.setdefault((result.driver, result.pool, result.device), []).append(text)
    return out


def describe_claim(claim: Claim, cluster: Cluster) -> Section:
    """A claim: its requests, its devices, its pods, its node and its owner."""
    section = Section(f"ResourceClaim {claim.metadata.namespace}/{claim.metadata.name}")
    section.add("State", claim_state(claim))
    owner = next((o for o in claim.metadata.owner_references if o.controller), None)
    section.add("Made for", f"{owner.kind.lower()} {owner.name}" if owner is not None else "")
    classes = {c.metadata.name: c for c in cluster.classes}
    for request in claim.spec.devices.requests:
        section.sections.append(_request(request, classes))
    for constraint in claim.spec.devices.constraints:
        what = f"same {constraint.match_attribute}" if constraint.match_attribute else ""
        what = what or f"distinct {constraint.distinct_attribute}"
        section.sections.append(Section(f"Constraint {what} for {', '.join(constraint.requests) or 'all requests'}"))
    allocation = claim.status.allocation
    if allocation is not None:
        devices = device_index(cluster.slices)
        nodes = _nodes_of(allocation)
        section.add("Node", nodes)
        for result in allocation.devices.results:
            key = (result.driver, result.pool, result.device)
            title = f"Device {'/'.join(key)} for request {result.request}"
            found = devices.get(key)
            if found is None:
                inner = Section(title, ["(no longer published)"])
            else:
                holders = holders_by_device(cluster.claims).get(key, [])
                inner = device_section(found[1], result.driver, result.pool, holders, title)
            if result.consumed_capacity:
                inner.add("Consumes", [f"{k}={v}" for k, v in sorted(result.consumed_capacity.items())])
            section.sections.append(inner)
    for status in claim.status.devices:
        for condition in status.conditions:
            text = f"{status.driver}/{status.pool}/{status.device}: {condition.type}={condition.status}"
            section.lines.append(f"{'Driver says:':<14}{text} {condition.reason} {condition.message}".rstrip())
    pods = {p.metadata.uid: p for p in cluster.pods}
    for consumer in claim.status.reserved_for:
        pod = pods.get(consumer.uid)
        text = f"{consumer.resource.rstrip('s')} {consumer.name}"
        if pod is not None:
            text += f" on {pod.spec.node_name or 'no node'}, {pod.status.phase or 'Pending'}"
        section.lines.append(f"{'Used by:':<14}{text}")
    return _with_unseen(section, cluster)


def _request(request: resource_v1.DeviceRequest, classes: Mapping[str, Any]) -> Section:
    section = Section(f"Request {request.name}")
    options: Sequence[Any] = request.first_available or ((request.exactly,) if request.exactly is not None else ())
    for option in options:
        inner = section if request.exactly is not None else Section(f"or {option.name}")
        count = "all" if option.allocation_mode == "All" else str(option.count or 1)
        there = "" if not classes or option.device_class_name in classes else " (there is no such class)"
        inner.add("Wants", f"{count} of class {option.device_class_name}{there}")
        for selector in option.selectors:
            inner.add("Selector", selector.cel.expression if selector.cel is not None else "")
        if inner is not section:
            section.sections.append(inner)
    return section


def _nodes_of(allocation: resource_v1.AllocationResult) -> str:
    if allocation.node_selector is None:
        return "any"
    names = []
    for term in allocation.node_selector.node_selector_terms:
        parts = [f"{r.key} {r.operator} {'|'.join(r.values)}" for r in (*term.match_fields, *term.match_expressions)]
        single = len(term.match_fields) == 1 and not term.match_expressions
        if single and term.match_fields[0].key == "metadata.name" and len(term.match_fields[0].values) == 1:
            parts = [term.match_fields[0].values[0]]
        names.append(" and ".join(parts))
    return " or ".join(names)


def claims_of_pod(pod: Pod, claims: Iterable[Claim]) -> list[tuple[str, str, Claim | None]]:
    """A pod's entries: (entry, claim name or "", claim or None); the extended-resource claim last."""
    by_name = {c.metadata.name: c for c in claims if c.metadata.namespace == pod.metadata.namespace}
    recorded = {s.name: s.resource_claim_name or "" for s in pod.status.resource_claim_statuses}
    out = []
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or recorded.get(entry.name, "")
        out.append((entry.name, name, by_name.get(name)))
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        out.append(("extended resources", extended.resource_claim_name, by_name.get(extended.resource_claim_name)))
    return out


def describe_pod(pod: Pod, cluster: Cluster) -> Section:
    """A pod: where it is, what it waits for, its claims and their devices."""
    section = Section(f"Pod {pod.metadata.namespace}/{pod.metadata.name}")
    section.add("Phase", pod.status.phase or "Pending")
    section.add("Node", pod.spec.node_name)
    for condition in pod.status.conditions:
        if condition.status != "True" and condition.message:
            section.add(condition.type, f"{condition.reason}: {condition.message}")
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        state = status.state
        text = "waiting"
        if state is not None and state.running is not None:
            text = f"running since {state.running.started_at}"
        elif state is not None and state.terminated is not None:
            text = f"ended with {state.terminated.exit_code} ({state.terminated.reason})"
        elif state is not None and state.waiting is not None:
            text = f"waiting: {state.waiting.reason} {state.waiting.message}".rstrip()
        section.add(f"Container {status.name}", f"{text}, {status.restart_count} restarts")
    for entry, name, claim in claims_of_pod(pod, cluster.claims):
        if claim is None:
            section.sections.append(Section(f"Claim {entry}", [f"{name or 'not created yet'}"]))
        else:
            inner = describe_claim(claim, Cluster(cluster.pods, cluster.claims, cluster.slices, cluster.classes))
            inner.title = f"Claim {entry}: {claim.metadata.name}"
            section.sections.append(inner)
    return _with_unseen(section, cluster)


def describe_slice(slice_: Slice, cluster: Cluster) -> Section:
    """A slice: its pool, its devices and who holds them."""
    spec = slice_.spec
    section = Section(f"ResourceSlice {slice_.metadata.name}")
    section.add("Driver", spec.driver)
    count = spec.pool.resource_slice_count
    section.add("Pool", f"{spec.pool.name}, generation {spec.pool.generation}, {count} slice(s) make it complete")
    where = spec.node_name or ("all nodes" if spec.all_nodes else "by node selector")
    section.add("Node", "per device" if spec.per_device_node_selection else where)
    newest = max(
        (
            s.spec.pool.generation or 0
            for s in cluster.slices
            if (s.spec.driver, s.spec.pool.name) == (spec.driver, spec.pool.name)
        ),
        default=spec.pool.generation or 0,
    )
    if newest > (spec.pool.generation or 0):
        section.add("Note", f"out of date: the pool is at generation {newest}")
    holders = holders_by_device(cluster.claims)
    for counters in spec.shared_counters:
        values = [f"{k}={v.value}" for k, v in sorted(counters.counters.items())]
        section.add(f"Counters {counters.name}", values)
    for device in spec.devices:
        key = (spec.driver, spec.pool.name, device.name)
        section.sections.append(
            device_section(device, spec.driver, spec.pool.name, holders.get(key, []), f"Device {device.name}")
        )
    return _with_unseen(section, cluster)


def describe_class(device_class: resource_v1.DeviceClass, cluster: Cluster) -> Section:
    """A class: its selectors, and the claims that name it."""
    name = device_class.metadata.name
    section = Section(f"DeviceClass {name}")
    for selector in device_class.spec.selectors:
        section.add("Selector", selector.cel.expression if selector.cel is not None else "")
    section.add("Extended", device_class.spec.extended_resource_name)
    for claim in cluster.claims:
        for request in claim.spec.devices.requests:
            options: Sequence[Any] = request.first_available or (
                (request.exactly,) if request.exactly is not None else ()
            )
            if any(o.device_class_name == name for o in options):
                text = f"claim {claim.metadata.namespace}/{claim.metadata.name} ({claim_state(claim)})"
                section.lines.append(f"{'Named by:':<14}{text}")
                break
    return _with_unseen(section, cluster)


def _with_unseen(section: Section, cluster: Cluster) -> Section:
    for what in cluster.unseen:
        section.lines.append(f"{'Not seen:':<14}{what} (no right to list them)")
    return section
