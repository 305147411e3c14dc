"""Runs a selector over a fleet and tells, in groups, why devices do not match.

The reason is the first part of the ``&&`` chain that is not true, with the values it read. Devices of one kind (equal
by what the selector reads) are evaluated once.

Upstream has no counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubedra.cel.errors import CelError, CompileError, EvaluationError
from kubedra.cel.fleet import FleetDevice, show
from kubedra.cel.selector import CompiledSelector, Features, compile_selector
from kubedra.cel.spans import Spans


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the ``&&`` chain: its place, its text and, if it stands alone, its program."""

    start: int
    end: int
    text: str
    selector: CompiledSelector | None


@dataclass(slots=True)
class Group:
    """Devices with the same fate: the part that decided, what it read, how many, examples."""

    part: str
    seen: tuple[str, ...]
    message: str = ""
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, place: str) -> None:
        """Count one more device."""
        self.count += 1
        if len(self.examples) < 3:
            self.examples.append(place)


@dataclass(slots=True)
class Verdict:
    """What a selector makes of a fleet."""

    matched: list[str]
    unmatched: list[Group]
    failed: list[Group]
    parts: list[Part]


def split_parts(expression: str, *, features: Features, version: str) -> list[Part]:
    """The parts of the top-level ``&&`` chain; nested chains in parentheses are taken apart, too."""
    parts: list[Part] = []
    pending = Spans(expression).terms()
    while pending:
        start, end = pending.pop(0)
        text = expression[start:end]
        inner = Spans(text).terms()
        if len(inner) > 1:
            pending = [(start + one, start + two) for one, two in inner] + pending
            continue
        try:
            selector: CompiledSelector | None = compile_selector(text, features=features, version=version, stored=True)
        except CompileError:
            selector = None
        parts.append(Part(start, end, " ".join(text.split()), selector))
    return parts


def judge(selector: CompiledSelector, devices: list[FleetDevice], parts: list[Part]) -> Verdict:
    """Evaluate the selector on every device."""
    matched: list[str] = []
    unmatched: dict[tuple[str, tuple[str, ...]], Group] = {}
    failed: dict[tuple[str, str], Group] = {}
    known: dict[object, tuple[str, str, tuple[str, ...], str]] = {}
    for item in devices:
        key = selector.key(item.device)
        fate = known.get(key)
        if fate is None:
            fate = known[key] = _fate(selector, item, parts)
        outcome, part, seen, message = fate
        if outcome == "match":
            matched.append(item.place)
        elif outcome == "miss":
            unmatched.setdefault((part, seen), Group(part, seen)).add(item.place)
        else:
            failed.setdefault((part, message), Group(part, seen, message)).add(item.place)
    return Verdict(
        matched,
        sorted(unmatched.values(), key=lambda group: -group.count),
        sorted(failed.values(), key=lambda group: -group.count),
        parts,
    )


def _fate(selector: CompiledSelector, item: FleetDevice, parts: list[Part]) -> tuple[str, str, tuple[str, ...], str]:
    try:
        if selector.evaluate(item.device):
            return "match", "", (), ""
        wanted_error = ""
    except EvaluationError as error:
        if item.device.fault is not None:
            return "error", "", (), str(error)
        wanted_error = str(error)
    for part in parts:
        if part.selector is None:
            continue
        try:
            value: object = part.selector.evaluate(item.device)
        except CelError as error:
            value = str(error)
        if wanted_error and value == wanted_error:
            return "error", part.text, readings(part.selector, item), wanted_error
        if not wanted_error and value is False:
            return "miss", part.text, readings(part.selector, item), ""
    whole = " ".join(selector.expression.split())
    return ("error" if wanted_error else "miss"), whole, readings(selector, item), wanted_error


def readings(selector: CompiledSelector, item: FleetDevice) -> tuple[str, ...]:
    """What the selector reads of a device, as ``name = value``."""
    reads, device = selector.read_set, item.device
    lines: list[str] = []
    for kind, names, maps in (
        ("attributes", reads.attributes, device.attributes),
        ("capacity", reads.capacities, device.capacity),
    ):
        for domain, id_ in sorted(names):
            inner = maps.get(domain)
            if inner is None:
                lines.append(f'{kind}["{domain}"] is empty')
            elif id_ not in inner:
                lines.append(f'{kind}["{domain}"].{id_} is missing')
            else:
                lines.append(f'{kind}["{domain}"].{id_} = {show(inner[id_])}')
    if reads.driver:
        lines.append(f'driver = "{device.driver}"')
    if reads.multi:
        lines.append(f"allowMultipleAllocations = {show(device.multi)}")
    return tuple(lines)
