"""The single slips that can be seen in a selector beside a fleet; each with the edits that repair it, if certain.

Upstream has no counterpart.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kubedra.base import names
from kubedra.base.quantity import Quantity, QuantityError
from kubedra.base.semver import Semver, SemverError, normalise
from kubedra.cel.ast import Call, Ident, ListLiteral, Literal, Node, Select, walk
from kubedra.cel.device import DeviceInput
from kubedra.cel.errors import CelError, EvaluationError
from kubedra.cel.fleet import ATTRIBUTES, CAPACITY, Fleet, show
from kubedra.cel.judging import Part, Verdict
from kubedra.cel.repairs import compared
from kubedra.cel.selector import CompiledSelector
from kubedra.cel.spans import Edit, Spans
from kubedra.cel.values import DefaultMap, Value

_MAX_ID: Final = 32
_MAX_DOMAIN: Final = 63
_ORDERING: Final = frozenset(("_<_", "_<=_", "_>_", "_>=_"))
_COMPARING: Final = _ORDERING | {"_==_", "_!=_"}
_NEAR: Final = 0.1
_HAIR: Final = 0.02
_ACCESSORS: Final = frozenset(("string", "int", "bool", "version", "value"))
_FLIPPED: Final = {"_<_": "_>_", "_>_": "_<_", "_<=_": "_>=_", "_>=_": "_<=_", "_==_": "_==_", "_!=_": "_!=_"}


@dataclass(frozen=True, slots=True)
class Slip:
    """A finding before it has a line: code, offset (-1: the whole), message, repairing edits."""

    code: str
    offset: int
    message: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """One read of an attribute or capacity by literal names."""

    kind: str
    domain: str
    id: str
    node: Node
    domain_literal: Literal
    base: Select
    guarded: bool

    @property
    def shown(self) -> str:
        """As a person writes it."""
        return f'device.{self.kind}["{self.domain}"].{self.id}'


def accesses(root: Node) -> list[Access]:
    """All reads by literal names."""
    found: list[Access] = []
    for node in walk(root):
        inner, id_, guarded = _last_step(node)
        if inner is None or not isinstance(inner, Call) or inner.function not in ("_[_]", "_[?_]"):
            continue
        base, literal = inner.args
        if not (isinstance(base, Select) and base.field in (ATTRIBUTES, CAPACITY) and isinstance(literal, Literal)):
            continue
        if isinstance(base.operand, Ident) and base.operand.name == "device" and isinstance(literal.value, str):
            found.append(Access(base.field, literal.value, id_, node, literal, base, guarded))
    return found


def _last_step(node: Node) -> tuple[Node | None, str, bool]:
    if isinstance(node, Select):
        return node.operand, node.field, node.test_only
    if isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?._"):
        key = node.args[1]
        if isinstance(key, Literal) and isinstance(key.value, str):
            return node.args[0], key.value, node.function != "_[_]"
    if isinstance(node, Call) and node.function == "@in":
        key = node.args[0]
        if isinstance(key, Literal) and isinstance(key.value, str):
            return node.args[1], key.value, True
    return None, "", False


def find_slips(
    selector: CompiledSelector, fleet: Fleet, verdict: Verdict, compile_: Callable[[str], CompiledSelector]
) -> list[Slip]:
    """Everything that looks wrong, in the order of the text, each place once per code."""
    finder = _Finder(selector, fleet, verdict, compile_)
    unique: dict[tuple[str, int], Slip] = {}
    for slip in finder.all():
        unique.setdefault((slip.code, slip.offset), slip)
    return sorted(unique.values(), key=lambda slip: slip.offset)


class _Finder:
    def __init__(
        self, selector: CompiledSelector, fleet: Fleet, verdict: Verdict, compile_: Callable[[str], CompiledSelector]
    ) -> None:
        self._compile = compile_
        self.root = selector.root
        self.fleet = fleet
        self.verdict = verdict
        self.spans = Spans(selector.expression)
        self.reads = accesses(self.root)

    def all(self) -> Iterator[Slip]:
        yield from self._impossible()
        yield from self._constant_terms()
        if self.fleet.devices:
            yield from self._unknown()
            yield from self._drivers()
            yield from self._unguarded()
            yield from self._near_misses()
            yield from self._same_everywhere()
        yield from self._kinds()

    # Names

    def _impossible(self) -> Iterator[Slip]:
        for read in self.reads:
            if "/" in read.domain:
                yield Slip(
                    "qualified-name-as-domain",
                    read.domain_literal.offset,
                    f'"{read.domain}" is a qualified name, not a domain: write '
                    f'device.{read.kind}["{read.domain.partition("/")[0]}"].{read.domain.partition("/")[2]}',
                )
            elif len(read.domain) > _MAX_DOMAIN or names.dns_subdomain(read.domain):
                yield Slip(
                    "impossible-domain",
                    read.domain_literal.offset,
                    f'no driver can publish the domain "{read.domain}": domains are lower-case DNS names of at most '
                    f"{_MAX_DOMAIN} characters",
                )
            if len(read.id) > _MAX_ID or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", read.id):
                yield Slip(
                    "impossible-name",
                    read.node.offset,
                    f'no driver can publish the name "{read.id}": names are C identifiers of at most {_MAX_ID} '
                    "characters",
                )

    def _constant_terms(self) -> Iterator[Slip]:
        """Terms of a chain that do not look at the device."""
        for node in walk(self.root):
            if not (isinstance(node, Call) and node.function in ("_&&_", "_||_")):
                continue
            for term in node.args:
                text = self.spans.text(term)
                value = _constant_value(term, self._compile, text)
                if value is not None:
                    offset = self.spans.extent(term)[0]
                    yield Slip(f"always-{value}", offset, f"{text} is always {value}")

    def _unknown(self) -> Iterator[Slip]:
        for read in self.reads:
            known = self.fleet.names[read.kind]
            if (read.domain, read.id) in known:
                continue
            other = CAPACITY if read.kind == ATTRIBUTES else ATTRIBUTES
            if (read.domain, read.id) in self.fleet.names[other]:
                noun, owner = ("a capacity", "an attribute") if other == CAPACITY else ("an attribute", "a capacity")
                token = self.spans.after(read.base.offset)
                edits = () if token is None else (Edit(token.offset, token.offset + len(token.text), other),)
                yield Slip(
                    f"{other}-as-{read.kind}",
                    read.base.offset,
                    f'{read.id} of "{read.domain}" is {noun}, not {owner}: '
                    f'write device.{other}["{read.domain}"].{read.id}',
                    edits,
                )
            elif read.domain in self.fleet.domains(read.kind):
                yield self._unknown_id(read)
            else:
                yield self._unknown_domain(read)

    def _unknown_id(self, read: Access) -> Slip:
        here = [id_ for domain, id_ in self.fleet.names[read.kind] if domain == read.domain]
        near = _nearest(read.id, here)
        elsewhere = sorted(domain for domain, id_ in self.fleet.names[read.kind] if id_ == read.id)
        message = f'no device has {read.kind}["{read.domain}"].{read.id}'
        edits: tuple[Edit, ...] = ()
        if near:
            message += f"; the nearest name is {near}"
            edits = self._rename(read, near)
        elif elsewhere:
            message += f'; it exists under "{elsewhere[0]}"'
            edits = (self._quoted(read.domain_literal, elsewhere[0]),)
        else:
            message += f"; there are {', '.join(sorted(here)[:8])}"
        return Slip(f"unknown-{_noun(read.kind)}", read.node.offset, message, edits)

    def _unknown_domain(self, read: Access) -> Slip:
        domains = self.fleet.domains(read.kind)
        with_id = sorted(domain for domain, id_ in self.fleet.names[read.kind] if id_ == read.id)
        near = _nearest(read.domain, with_id) or _nearest(read.domain, sorted(domains))
        if not near and len(with_id) == 1:
            near = with_id[0]
        message = f'no device has the domain "{read.domain}" among its {_plural(read.kind)}'
        edits: tuple[Edit, ...] = ()
        named = sorted(
            (domain, kind)
            for kind in (ATTRIBUTES, CAPACITY)
            for domain, id_ in self.fleet.names[kind]
            if id_ == read.domain
        )
        if named:
            domain, kind = named[0]
            text = f'device.{kind}["{domain}"].{read.domain}'
            message += f": that is the name of {'an attribute' if kind == ATTRIBUTES else 'a capacity'}, write {text}"
            if len(named) == 1 and read.id in _ACCESSORS and not read.guarded:
                edits = (Edit(*self.spans.extent(read.node), text),)
            return Slip("name-as-domain", read.domain_literal.offset, message, edits)
        if near:
            message += f'; the nearest is "{near}"'
            edits = (self._quoted(read.domain_literal, near),)
        elif domains:
            message += f"; there are {', '.join(sorted(domains)[:8])}"
        return Slip("unknown-domain", read.domain_literal.offset, message, edits)

    def _quoted(self, literal: Literal, text: str) -> Edit:
        start, end = self.spans.extent(literal)
        return Edit(start, end, f'"{text}"')

    def _rename(self, read: Access, name: str) -> tuple[Edit, ...]:
        node = read.node
        if isinstance(node, Call) and isinstance(node.args[-1 if node.function != "@in" else 0], Literal):
            literal = node.args[1] if node.function != "@in" else node.args[0]
            token = self.spans.token_at(literal.offset)
            if token is None:
                return ()
            text = f'"{name}"' if token.kind == "STRING" else name
            return (Edit(token.offset, token.offset + len(token.text), text),)
        if isinstance(node, Select):
            dot = node.offset
            if node.test_only:
                closing = self.spans.extent(node.operand)[1]
                dot = closing
            token = self.spans.after(dot)
            if token is not None and token.text == read.id:
                return (Edit(token.offset, token.offset + len(token.text), name),)
        return ()

    def _drivers(self) -> Iterator[Slip]:
        known = {item.device.driver for item in self.fleet.devices}
        for node in walk(self.root):
            if not (isinstance(node, Call) and node.function == "_==_"):
                continue
            left, right = node.args
            if isinstance(left, Literal):
                left, right = right, left
            if (
                isinstance(left, Select)
                and left.field == "driver"
                and isinstance(right, Literal)
                and isinstance(right.value, str)
                and right.value not in known
            ):
                near = _nearest(right.value, sorted(known)) or (next(iter(known)) if len(known) == 1 else None)
                if len(right.value) > _MAX_DOMAIN or names.dns_subdomain(right.value):
                    yield Slip(
                        "impossible-driver",
                        right.offset,
                        f'no driver can be called "{right.value}": names of drivers are lower-case DNS names of at '
                        f"most {_MAX_DOMAIN} characters",
                    )
                hint = f'; the nearest is "{near}"' if near else f"; there are {', '.join(sorted(known)[:8])}"
                edits = (self._quoted(right, near),) if near else ()
                yield Slip("unknown-driver", right.offset, f'no device is of the driver "{right.value}"{hint}', edits)

    # Guards

    def _unguarded(self) -> Iterator[Slip]:
        guarded = {(read.kind, read.domain, read.id) for read in self.reads if read.guarded}
        missing: dict[str, int] = {}
        for group in self.verdict.failed:
            if group.message.startswith("no such key: "):
                name = group.message.removeprefix("no such key: ")
                missing[name] = missing.get(name, 0) + group.count
        guards: dict[Part, list[Access]] = {}
        for read in self.reads:
            if read.id not in missing or (read.kind, read.domain, read.id) in guarded:
                continue
            if (read.domain, read.id) not in self.fleet.names[read.kind]:
                continue
            part = next((part for part in self.verdict.parts if part.start <= read.node.offset < part.end), None)
            if part is not None and all(other.shown != read.shown for other in guards.get(part, [])):
                guards.setdefault(part, []).append(read)
        for part, reads in guards.items():
            tests = " && ".join(f"has({read.shown})" for read in reads)
            loose = re.search(r"\|\||\?(?![.\w])", part.text) is not None
            text = self.spans.source[part.start : part.end]
            edit = Edit(part.start, part.end, f"{tests} && ({text})" if loose else f"{tests} && {text}")
            for index, read in enumerate(reads):
                yield Slip(
                    f"unguarded-{_noun(read.kind)}",
                    read.node.offset,
                    f"{_devices(missing[read.id])} no {read.shown}: looking at one of them fails and stops the "
                    "scheduling of the pod on all nodes; guard it with has() or .?",
                    (edit,) if index == 0 else (),
                )

    # Kinds of values

    def _read_of(self, node: Node) -> Access | None:
        return next((read for read in self.reads if read.node is node and not read.guarded), None)

    def _read_through(self, node: Node) -> Access | None:
        """The read behind ``x``, ``.?x.orValue(…)`` and ``.?x.value()``."""
        if isinstance(node, Call) and node.function in ("orValue", "value") and node.target is not None:
            node = node.target
        return next((read for read in self.reads if read.node is node and not _is_test(node)), None)

    def _kinds(self) -> Iterator[Slip]:
        for node in walk(self.root):
            if not (isinstance(node, Call) and node.function in _COMPARING):
                continue
            left, right, operator = node.args[0], node.args[1], node.function
            if self._read_of(left) is None and self._read_of(right) is not None:
                left, right, operator = right, left, _FLIPPED[operator]
            read = self._read_of(left)
            if read is None:
                continue
            if read.kind == CAPACITY:
                yield from self._unequal_quantity(node, left, right, operator)
            elif isinstance(right, Literal):
                yield from self._literal_kind(node, read, left, right, operator)

    def _unequal_quantity(self, node: Call, left: Node, right: Node, operator: str) -> Iterator[Slip]:
        if operator == "_!=_" and isinstance(right, Call):
            start, end = self.spans.bare(node)
            text = compared(self.spans.text(left), operator, self.spans.text(right))
            yield Slip(
                "unbounded-cost",
                node.offset,
                f"admission takes != between quantities for unboundedly expensive and refuses it: write {text}",
                (Edit(start, end, text),),
            )

    def _literal_kind(self, node: Call, read: Access, left: Node, right: Literal, operator: str) -> Iterator[Slip]:
        values = self.fleet.values(ATTRIBUTES, read.domain, read.id)
        if not values:
            return
        kinds = {value.__class__ for value in values}
        start, end = self.spans.bare(node)
        reading = self.spans.text(left)
        wanted = right.value
        if kinds == {Semver} and isinstance(wanted, str):
            text = compared(reading, operator, _semver_text(wanted))
            yield Slip(
                "version-as-string",
                node.offset,
                f"{read.shown} is a version, not a text: comparing it with {show(wanted)} fails; write {text}",
                (Edit(start, end, text),),
            )
        elif kinds == {str} and isinstance(wanted, str) and operator in _ORDERING:
            yield from self._ordered_text(node, read, reading, wanted, operator, values)
        elif kinds == {int} and isinstance(wanted, str):
            edits = (Edit(*self.spans.extent(right), wanted),) if re.fullmatch(r"-?[0-9]{1,18}", wanted) else ()
            yield self._never(node, read, "a number", wanted, operator, edits)
        elif kinds == {bool} and isinstance(wanted, str):
            edits = (Edit(*self.spans.extent(right), wanted),) if wanted in ("true", "false") else ()
            yield self._never(node, read, "true or false", wanted, operator, edits)
        elif kinds == {str} and isinstance(wanted, (int, float)):
            literal = f'"{self.spans.text(right)}"'
            yield self._never(node, read, "a text", wanted, operator, (Edit(*self.spans.extent(right), literal),))

    def _never(self, node: Call, read: Access, kind: str, wanted: Any, operator: str, edits: tuple[Edit, ...]) -> Slip:
        if operator in _ORDERING:
            effect = "comparing them fails"
        else:
            effect = f"this is always {'false' if operator == '_==_' else 'true'}"
        return Slip("different-kinds", node.offset, f"{read.shown} is {kind}, {show(wanted)} is not: {effect}", edits)

    def _ordered_text(
        self, node: Call, read: Access, reading: str, wanted: str, operator: str, values: list[Value]
    ) -> Iterator[Slip]:
        start, end = self.spans.bare(node)
        if all(_is_quantity(value) for value in [*values, wanted]):
            text = compared(f"quantity({reading})", operator, f'quantity("{wanted}")')
            kind = "quantities"
        elif all(_is_loose_semver(value) for value in [*values, wanted]):
            text = compared(f"semver({reading}, true)", operator, f'semver("{wanted}", true)')
            kind = "versions"
        else:
            return
        yield Slip(
            f"{kind}-as-strings",
            node.offset,
            f"{read.shown} holds {kind} as text, and texts are compared letter by letter; write {text}",
            (Edit(start, end, text),),
        )

    # Values

    def _same_everywhere(self) -> Iterator[Slip]:
        if len(self.fleet.devices) < 2 or len(self.verdict.parts) < 2:
            return
        for part in self.verdict.parts:
            if part.selector is None or part.selector.read_set.is_empty:
                continue
            outcomes = {_outcome(part.selector, item.device) for item in self.fleet.devices}
            if outcomes == {True}:
                yield Slip("true-everywhere", part.start, f"{part.text} is true for every device of the fleet")
            elif outcomes == {False}:
                yield Slip("false-everywhere", part.start, f"{part.text} is false for every device of the fleet")

    def _near_misses(self) -> Iterator[Slip]:
        for part in self.verdict.parts:
            if part.selector is None:
                continue
            found = any(_outcome(part.selector, item.device) is True for item in self.fleet.devices)
            for node in walk(self.root):
                if isinstance(node, Call) and part.start <= node.offset < part.end:
                    yield from self._just_below(node) if found else self._near_miss(node)

    def _just_below(self, node: Call) -> Iterator[Slip]:
        """Some devices match, others miss by a hair: a card sold as 80 GB that reports less than 80Gi."""
        operands = node.operands()
        if len(operands) != 2 or node.function in ("isLessThan", "_!=_"):
            return
        read, right = self._read_through(operands[0]), operands[1]
        if read is None or not (isinstance(right, Call) and right.function == "quantity" and right.args):
            return
        literal = right.args[0]
        if not isinstance(literal, Literal) or not isinstance(literal.value, str):
            return
        try:
            target = Quantity.parse(literal.value)
        except QuantityError:
            return
        for value in self.fleet.values(read.kind, read.domain, read.id):
            if isinstance(value, Quantity) and 0 < target.nano - value.nano <= _HAIR * target.nano:
                short = Quantity.parse(str(target - value))
                message = f"devices with {read.id} {value} miss {literal.value} by {short}"
                # Others pass this part, but not the whole: the ones that miss by a hair may be those that are meant.
                edits = () if self.verdict.matched else (self._quoted(literal, str(value)),)
                yield Slip("just-below", literal.offset, message, edits)

    def _near_miss(self, node: Call) -> Iterator[Slip]:
        operands = node.operands()
        if len(operands) != 2:
            return
        left, right = operands
        read = self._read_through(left)
        if read is None:
            left, right = right, left
            read = self._read_through(left)
        if read is None:
            return
        if isinstance(right, Literal) and isinstance(right.value, str) and node.function == "_==_":
            yield from self._near_text(read, right)
        elif isinstance(right, ListLiteral) and node.function == "@in":
            for element in right.elements:
                if isinstance(element, Literal) and isinstance(element.value, str):
                    yield from self._near_text(read, element)
        elif isinstance(right, Call) and right.function in ("quantity", "semver") and right.args:
            literal = right.args[0]
            if isinstance(literal, Literal) and isinstance(literal.value, str):
                yield from self._near_amount(node, read, literal, right.function)

    def _near_text(self, read: Access, literal: Literal) -> Iterator[Slip]:
        wanted = str(literal.value)
        values = [value for value in self.fleet.values(read.kind, read.domain, read.id) if value.__class__ is str]
        if not values or wanted in values:
            return
        inside = [value for value in values if wanted.lower() in value.lower() or value.lower() in wanted.lower()]
        near = next((value for value in values if value.lower() == wanted.lower()), None)
        near = near or (inside[0] if inside else _nearest(wanted, values))
        if near:
            yield Slip(
                "near-miss",
                literal.offset,
                f"wanted {read.id} {show(wanted)}, the fleet has {show(near)}",
                (self._quoted(literal, near),),
            )

    def _near_amount(self, node: Call, read: Access, literal: Literal, kind: str) -> Iterator[Slip]:
        wanted = str(literal.value)
        if kind == "quantity":
            near = _near_quantity(wanted, self.fleet.values(read.kind, read.domain, read.id))
        else:
            near = _near_version(wanted, self.fleet.values(read.kind, read.domain, read.id))
        if near is None or near == wanted:
            return
        yield Slip(
            "near-miss",
            literal.offset,
            f"wanted {read.id} {wanted}, the fleet has {near}",
            (self._quoted(literal, near),) if node.function != "isGreaterThan" else (),
        )


def _constant_value(term: Node, compile_: Callable[[str], CompiledSelector], text: str) -> str | None:
    if any(isinstance(node, Ident) and not node.is_constant for node in walk(term)):
        return None
    try:
        value = compile_(text).evaluate(DeviceInput("", DefaultMap(), DefaultMap()))
    except CelError:
        return None
    return "true" if value else "false"


def _outcome(selector: CompiledSelector, device: Any) -> bool | None:
    try:
        return selector.evaluate(device)
    except EvaluationError:
        return None


def _is_test(node: Node) -> bool:
    return (isinstance(node, Select) and node.test_only) or (isinstance(node, Call) and node.function == "@in")


def _devices(count: int) -> str:
    return "1 device has" if count == 1 else f"{count} devices have"


def _noun(kind: str) -> str:
    return "attribute" if kind == ATTRIBUTES else "capacity"


def _plural(kind: str) -> str:
    return "attributes" if kind == ATTRIBUTES else "capacities"


def _nearest(word: str, known: list[str]) -> str | None:
    for candidate in known:
        if candidate.lower() == word.lower():
            return candidate
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return found[0] if found else None


def _is_quantity(value: Value) -> bool:
    try:
        Quantity.parse(value)
    except QuantityError:
        return False
    return bool(value[:1].isdigit())


def _is_loose_semver(value: Value) -> bool:
    try:
        Semver.parse(normalise(value))
    except SemverError:
        return False
    return "." in value


def _semver_text(text: str) -> str:
    try:
        Semver.parse(text)
        return f'semver("{text}")'
    except SemverError:
        return f'semver("{text}", true)'


def _near_quantity(wanted: str, values: list[Value]) -> str | None:
    try:
        target = Quantity.parse(wanted)
    except QuantityError:
        return None
    amounts = [value for value in values if isinstance(value, Quantity)]
    if not amounts or not target.nano:
        return None
    nearest = min(amounts, key=lambda amount: abs(amount.nano - target.nano))
    if abs(nearest.nano - target.nano) <= _NEAR * abs(target.nano):
        return str(nearest)
    return None


def _near_version(wanted: str, values: list[Value]) -> str | None:
    try:
        target = Semver.parse(normalise(wanted))
    except SemverError:
        return None
    versions = sorted(value for value in values if value.__class__ is Semver)
    below = [version for version in versions if version < target]
    same = [version for version in below if version.major == target.major]
    return str(same[-1]) if same else None
