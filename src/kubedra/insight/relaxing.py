"""Changes to one selector that may make it match: a literal replaced by a value that devices really have, a name by one
that exists, an attribute guarded that some devices lack.

Only proposes; whoever asks verifies each proposal by evaluating it and running the allocator. Therefore it may guess:
which literal belongs to which attribute is told by their order in the text.

Upstream has no counterpart.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kubedra.allocation.devices import SliceView
from kubedra.api.resource_v1 import DeviceAttribute
from kubedra.base.quantity import Quantity, QuantityError
from kubedra.base.semver import Semver, SemverError
from kubedra.cel.device import DeviceInput
from kubedra.cel.fleet import FleetDevice
from kubedra.cel.lexer import Token, tokenize
from kubedra.insight.devices import counted, model

MOST_VALUES = 4


@dataclass(frozen=True, slots=True)
class Access:
    """``device.attributes["domain"].name`` in a selector; ``capacity``: a capacity, ``tested``: inside has()."""

    capacity: bool
    domain: str
    name: str
    start: int
    end: int
    name_start: int
    name_end: int
    optional: bool
    tested: bool

    @property
    def full_name(self) -> str:
        """``domain/name``."""
        return f"{self.domain}/{self.name}"


@dataclass(frozen=True, slots=True)
class Edit:
    """A changed selector and what the change is, in words."""

    code: str
    expression: str
    text: str


@dataclass(frozen=True, slots=True)
class Nearest:
    """A published value near the one asked for."""

    name: str
    value: str
    owners: str
    miss: str


class Published:
    """What the devices of a class publish, looked up by name. ``masks``: the class's devices of each slice."""

    def __init__(self, slices: Iterable[tuple[SliceView, int]]) -> None:
        self._slices = list(slices)
        self._values: dict[tuple[bool, str, str], dict[object, Counter[str]]] = {}
        self._names: tuple[set[str], set[str]] | None = None
        self.devices = sum(mask.bit_count() for _, mask in self._slices)

    def values(self, access: Access) -> dict[object, Counter[str]]:
        """The distinct values (DeviceAttribute or quantity text) with the models that have them."""
        key = (access.capacity, access.domain, access.name)
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = {}
            for slice_, mask in self._slices:
                column: Sequence[object]
                if access.capacity:
                    column = slice_.capacity_column(access.domain, access.name)
                else:
                    column = slice_.column(access.domain, access.name)
                for index, value in enumerate(column):
                    if value is not None and mask >> index & 1:
                        device = slice_.devices[index].raw
                        found.setdefault(value, Counter())[model(device, slice_.driver)] += 1
        return found

    def sample(self, most: int) -> list[FleetDevice]:
        """Devices of as many slices as possible, for what looks at single devices."""
        found: list[FleetDevice] = []
        step = max(len(self._slices) // most, 1)
        for slice_, mask in self._slices[::step]:
            for index in range(len(slice_.devices)):
                if mask >> index & 1 and len(found) < most:
                    device = slice_.devices[index]
                    found.append(FleetDevice(str(device), DeviceInput.of(slice_.driver, device.raw)))
        return found

    def having(self, access: Access) -> int:
        """How many devices have it."""
        return sum(sum(models.values()) for models in self.values(access).values())

    def names(self, capacity: bool) -> set[str]:
        """All qualified names of attributes or capacities that occur."""
        if self._names is None:
            attributes: set[str] = set()
            capacities: set[str] = set()
            for slice_, mask in self._slices:
                for index, device in enumerate(slice_.devices):
                    if mask >> index & 1:
                        attributes.update(_qualified(name, slice_.driver) for name in device.raw.attributes)
                        capacities.update(_qualified(name, slice_.driver) for name in device.raw.capacity)
            self._names = attributes, capacities
        return self._names[1 if capacity else 0]


def _qualified(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


# ---- reading a selector ----


def accesses(expression: str) -> list[Access]:
    """The attributes and capacities that a selector names."""
    tokens, _ = tokenize(expression)
    found = []
    for place, token in enumerate(tokens):
        if token.kind != "IDENT" or token.text != "device":
            continue
        access = _access(tokens, place)
        if access is not None:
            found.append(access)
    return found


def _access(tokens: Sequence[Token], place: int) -> Access | None:
    texts = [t.text for t in tokens[place : place + 9]]
    kinds = [t.kind for t in tokens[place : place + 9]]
    if len(texts) < 8 or texts[1] != "." or texts[2] not in ("attributes", "capacity") or texts[3] != "[":
        return None
    if kinds[4] != "STRING" or texts[5] != "]":
        return None
    at = 6
    bracket = texts[at] == "["
    if texts[at] not in (".", "["):
        return None
    at += 1
    optional = texts[at] == "?"
    at += optional
    if at >= len(texts) or kinds[at] not in ("IDENT", "STRING"):
        return None
    name = tokens[place + at]
    last = tokens[place + at + 1] if bracket else name
    tested = place >= 2 and tokens[place - 1].text == "(" and tokens[place - 2].text == "has"
    return Access(
        texts[2] == "capacity",
        unquoted(tokens[place + 4].text),
        unquoted(name.text),
        tokens[place].offset,
        last.offset + len(last.text),
        name.offset,
        name.offset + len(name.text),
        optional,
        tested,
    )


def unquoted(text: str) -> str:
    """A string literal's value (plain literals only; good enough for names and amounts)."""
    return text[1:-1] if len(text) >= 2 and text[0] in "\"'" else text


@dataclass(frozen=True, slots=True)
class _Literal:
    kind: str  # quantity, semver, string, int
    value: str
    start: int
    end: int


def _literals(expression: str, found: Sequence[Access]) -> list[_Literal]:
    tokens, _ = tokenize(expression)
    inside = [(a.start, a.end) for a in found]
    literals = []
    for place, token in enumerate(tokens):
        if token.kind not in ("STRING", "INT") or any(start <= token.offset < end for start, end in inside):
            continue
        before = tokens[place - 2].text if place >= 2 and tokens[place - 1].text == "(" else ""
        if token.kind == "INT":
            # compareTo(...) >= 0: the zero is no value of a device.
            if place >= 2 and tokens[place - 2].text == ")" and token.text in ("0", "1"):
                continue
            kind = "int"
        else:
            kind = before if before in ("quantity", "semver") else "string"
        literals.append(_Literal(kind, unquoted(token.text), token.offset, token.offset + len(token.text)))
    return literals


def _owner(literal: _Literal, found: Sequence[Access]) -> Access | None:
    before = [a for a in found if a.end <= literal.start and a.capacity == (literal.kind == "quantity")]
    if before:
        return before[-1]
    after = [a for a in found if a.start >= literal.end and a.capacity == (literal.kind == "quantity")]
    return after[0] if after else None


# ---- proposing ----


def nearest_values(expression: str, published: Published) -> list[Nearest]:
    """The published values nearest to the amounts and names that a selector wants."""
    found = accesses(expression)
    out: list[Nearest] = []
    for literal in _literals(expression, found):
        access = _owner(literal, found)
        if access is None:
            continue
        values = published.values(access)
        ordered = _by_distance(literal, values)[:MOST_VALUES]
        previous: str | None = None
        for text, key in ordered:
            models = values[key]
            miss = _miss(literal, text, previous) if text != literal.value else "exactly that, and not more"
            if text == literal.value and ".is" not in expression:
                continue
            out.append(Nearest(access.name, text, owners(models, text), miss))
            previous = text
    return out


def edits(expression: str, published: Published, failing: bool = False) -> Iterator[Edit]:
    """Changed selectors, the mildest first."""
    found = accesses(expression)
    if failing:
        yield from _guards(expression, found, published)
    yield from _names(expression, found, published)
    for literal in _literals(expression, found):
        access = _owner(literal, found)
        if access is None:
            continue
        values = published.values(access)
        for text, key in _by_distance(literal, values)[:MOST_VALUES]:
            if text == literal.value:
                yield from _or_equal(expression, literal, access)
                continue
            quoted = text if literal.kind == "int" else f'"{text}"'
            changed = expression[: literal.start] + quoted + expression[literal.end :]
            models = values[key]
            miss = _miss(literal, text, None)
            what = f"{access.name} {text}" + (f" instead of {literal.value}" if literal.value else "")
            yield Edit(
                "relax-selector", changed, f"ask for {what} ({owners(models, text)}{f'; {miss}' if miss else ''})"
            )


def _or_equal(expression: str, literal: _Literal, access: Access) -> Iterator[Edit]:
    """A strict comparison with a value that devices have, made to include it."""
    for strict, sign, word in (("isGreaterThan", ">=", "at least"), ("isLessThan", "<=", "at most")):
        call = f'.{strict}({literal.kind}("{literal.value}"))'
        if call in expression:
            changed = expression.replace(call, f'.compareTo({literal.kind}("{literal.value}")) {sign} 0')
            yield Edit("relax-selector", changed, f"ask for {word} {access.name} {literal.value}")
    for strict in (">", "<"):
        before = expression[: literal.start].rstrip()
        if literal.kind == "int" and before.endswith(strict):
            changed = f"{before}= {expression[literal.start :]}"
            word = "at least" if strict == ">" else "at most"
            yield Edit("relax-selector", changed, f"ask for {word} {access.name} {literal.value}")


def _by_distance(literal: _Literal, values: dict[object, Counter[str]]) -> list[tuple[str, object]]:
    if literal.kind == "quantity":
        try:
            wanted = Quantity.parse(literal.value)
        except QuantityError:
            return []
        amounts = []
        for value in values:
            try:
                amounts.append((abs(Quantity.parse(str(value)).nano - wanted.nano), str(value), value))
            except QuantityError:
                continue
        return [(shown_amount(text), key) for _, text, key in sorted(amounts, key=lambda item: item[:2])]
    found: list[tuple[float, str, object]] = []
    for value in values:
        if not isinstance(value, DeviceAttribute):
            continue
        if literal.kind == "int" and value.int_ is not None:
            found.append((abs(value.int_ - int(literal.value, 0)), str(value.int_), value))
        elif literal.kind == "semver" and value.version is not None:
            found.append((_version_distance(literal.value, value.version), value.version, value))
        elif literal.kind == "string" and value.string is not None:
            likeness = difflib.SequenceMatcher(None, literal.value.lower(), value.string.lower()).ratio()
            found.append((1 - likeness, value.string, value))
    return [(text, key) for _, text, key in sorted(found, key=lambda item: item[:2])]


def owners(models: Counter[str], value: str) -> str:
    """Which devices have a value: "8 devices: NVIDIA A30"."""
    total = sum(models.values())
    count = "1 device" if total == 1 else f"{total} devices"
    if len(models) == 1:
        (name,) = models
        return count if name == value or name.startswith("device of ") else f"{count}: {name}"
    return f"{count}: {counted(models, 2)}"


def shown_amount(text: str) -> str:
    """An amount in its largest whole unit: 80Gi for 81920Mi. 81559Mi stays what it is."""
    quantity = Quantity.parse(text)
    if quantity.is_whole and text.endswith("i"):
        amount = quantity.value()
        for unit, size in (("Ti", 1 << 40), ("Gi", 1 << 30)):
            if amount and amount % size == 0:
                return f"{amount // size}{unit}"
    return text


def _version_distance(wanted: str, text: str) -> float:
    try:
        mine, other = Semver.parse(wanted), Semver.parse(text)
    except SemverError:
        return 1e18
    return sum(
        abs(a - b) * scale
        for a, b, scale in (
            (mine.major, other.major, 1e10),
            (mine.minor, other.minor, 1e5),
            (mine.patch, other.patch, 1),
        )
    )


def _miss(literal: _Literal, text: str, previous: str | None) -> str:
    """By how much an amount misses what is wanted, or the nearer value before it when that is close."""
    if literal.kind != "quantity":
        return ""
    wanted, have = Quantity.parse(literal.value), Quantity.parse(text)
    if have >= wanted:
        return f"{have - wanted} more"
    short = f"{wanted - have} short"
    if previous is not None:
        other = Quantity.parse(previous)
        if other > have and (other.nano - have.nano) * 20 < other.nano:
            return f"{short}, and {other - have} less than {previous}"
    return short


def _names(expression: str, found: Sequence[Access], published: Published) -> Iterator[Edit]:
    seen: set[tuple[bool, str, str]] = set()
    for access in found:
        key = (access.capacity, access.domain, access.name)
        if key in seen or published.values(access):
            continue
        seen.add(key)
        word = "capacity" if access.capacity else "attribute"
        for capacity, name in similar_names(access, published):
            domain, _, short = name.rpartition("/")
            changed = _renamed(expression, found, access, capacity, domain, short)
            text = (
                f"the {word} {access.full_name} exists on 0 of {published.devices} devices: "
                f"write {'capacity' if capacity else 'attribute'} {name}"
            )
            yield Edit("correct-name", changed, text)


def similar_names(access: Access, published: Published) -> list[tuple[bool, str]]:
    """Names that exist and may be meant: (whether a capacity, domain/name)."""
    out: list[tuple[bool, str]] = []
    for capacity in (access.capacity, not access.capacity):
        names = sorted(published.names(capacity))
        same_domain = [n for n in names if n.rpartition("/")[0] == access.domain]
        short = {n.rpartition("/")[2]: n for n in same_domain}
        if capacity != access.capacity and access.full_name in same_domain:
            out.append((capacity, access.full_name))
        for near in difflib.get_close_matches(access.name, short, n=2, cutoff=0.6):
            out.append((capacity, short[near]))
        out += [(capacity, n) for n in names if n.rpartition("/")[2].lower() == access.name.lower()]
    return list(dict.fromkeys(out))[:3]


def _renamed(expression: str, found: Sequence[Access], wrong: Access, capacity: bool, domain: str, name: str) -> str:
    out, at = [], 0
    for access in found:
        if (access.capacity, access.domain, access.name) != (wrong.capacity, wrong.domain, wrong.name):
            continue
        kind = "capacity" if capacity else "attributes"
        dot = ".?" if access.optional else "."
        out += [expression[at : access.start], f'device.{kind}["{domain}"]{dot}{name}']
        at = access.end
    return "".join(out) + expression[at:]


def _guards(expression: str, found: Sequence[Access], published: Published) -> Iterator[Edit]:
    for access in found:
        have = published.having(access)
        if access.optional or access.tested or have == published.devices:
            continue
        lack = published.devices - have
        who = f"{lack} of {published.devices} devices lack{'s' if lack == 1 else ''} {access.full_name}"
        bare = all(isinstance(v, DeviceAttribute) and v.bool_ is not None for v in published.values(access))
        if bare and have:
            place = expression[access.name_start : access.name_end]
            changed = (
                expression[: access.name_start] + f"?{place}.orValue(false)" + expression[access.end :]
                if expression[access.name_start - 1] == "."
                else ""
            )
            if changed:
                yield Edit("guard-attribute", changed, f"{who}: guard it")
        map_ = expression[access.start : access.name_start - 1]
        yield Edit("guard-attribute", f'"{access.name}" in {map_} && ({expression})', f"{who}: guard it")
