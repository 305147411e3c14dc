"""Which devices the selectors of a request admit, worked out once per kind of device.

A selector answers from what it reads. Its read set names the attributes and capacities it looks at; devices that agree
in those get one evaluation, over all nodes, pools and pods. ``Selection`` is the chain of a class's and a request's
selectors (and the request's derived attributes); its answers are remembered

* by the values read, over the whole cluster (``_verdicts``), and
* as bit masks for each slice (``Row``), which live as long as that version of the slice.

Errors are data here. Upstream evaluates lazily: an error exists only for a device that the search gets to. So a row
just records which devices would raise; who visits one turns it into a failure.

Upstream counterpart: isSelectable and selectorsMatch of the allocator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kubedra.allocation.devices import DeviceView, SliceView, ValueSet
from kubedra.allocation.features import Features


class SelectorFailure(Exception):
    """A selector that does not compile or raises; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What an expression looks at. ``everything``: it can't be told, each device is of its own kind."""

    attributes: frozenset[tuple[str, str]] = frozenset()
    capacities: frozenset[tuple[str, str]] = frozenset()
    multi: bool = False
    everything: bool = False

    def union(self, other: ReadSet) -> ReadSet:
        """What two expressions look at together."""
        return ReadSet(
            self.attributes | other.attributes,
            self.capacities | other.capacities,
            self.multi or other.multi,
            self.everything or other.everything,
        )


class Expression(Protocol):
    """A compiled CEL expression over one device."""

    @property
    def reads(self) -> ReadSet: ...

    def test(self, device: DeviceView) -> bool:
        """Evaluate a selector; raises SelectorFailure."""
        ...

    def derive(self, device: DeviceView) -> ValueSet:
        """Evaluate a derived attribute; raises SelectorFailure."""
        ...


class Compile(Protocol):
    """Compiles a selector or (``derived``) a derived attribute; raises SelectorFailure."""

    def __call__(self, text: str, derived: bool = False) -> Expression: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one kind of device. ``step`` says which selector raised ``error``."""

    ok: bool
    step: int = -1
    error: str = ""
    compile_error: bool = False
    derived: tuple[tuple[str, ValueSet], ...] = ()


YES = Verdict(True)
NO = tuple(Verdict(False, step) for step in range(64))


@dataclass(slots=True)
class Row:
    """The answers for the devices of one slice."""

    yes: int = 0
    errors: int = 0
    derived: dict[str, dict[ValueSet, int]] = field(default_factory=dict)


class Selection:
    """The selectors of a class followed by those of a request, and the request's derived attributes."""

    __slots__ = ("_lists", "_verdicts", "classes", "derived", "reads", "steps", "texts")

    def __init__(
        self,
        class_selectors: tuple[str, ...],
        request_selectors: tuple[str, ...],
        derived: tuple[tuple[str, str], ...],
        compile_: Compile,
        features: Features,
    ) -> None:
        self.classes = len(class_selectors)
        self.texts = (*class_selectors, *request_selectors)
        self.steps = [_compiled(text, compile_) for text in (*class_selectors, *request_selectors)]
        self.derived = [(name, _compiled(text, compile_, True)) for name, text in derived]
        reads = ReadSet()
        for step in (*self.steps, *(step for _, step in self.derived)):
            if not isinstance(step, str):
                reads = reads.union(step.reads)
        self.reads = reads
        # Since 1.37 lists are converted whatever the gate says.
        self._lists = features.list_attributes or features.version >= "1.37"
        self._verdicts: dict[tuple[object, ...], Verdict] = {}

    def verdict(self, slice_: SliceView, index: int) -> Verdict:
        """The answer for one device."""
        bad = slice_.bad_devices(self._lists).get(index)
        if bad is not None:
            return self._bad(bad)
        reads = self.reads
        if reads.everything:
            known = slice_.single_verdicts.get((self, index))
            if known is None:
                known = slice_.single_verdicts[(self, index)] = self._evaluate(slice_.devices[index])
            return known  # type: ignore[return-value]
        return self._known(self._values(slice_, index), slice_, index)

    def verdict_counts(self, slice_: SliceView) -> list[tuple[Verdict, int]]:
        """The answers for the devices of a slice, each with how many devices get it."""
        if self.reads.everything or slice_.bad_devices(self._lists):
            return [(self.verdict(slice_, index), 1) for index in range(len(slice_.devices))]
        return [
            (self._known(values, slice_, index), mask.bit_count()) for values, mask, index in self._partition(slice_)
        ]

    def row(self, slice_: SliceView) -> Row:
        """The answers for all devices of a slice."""
        row = slice_.rows.get(self)
        if row is None:
            slice_.limit_caches()
            row = slice_.rows[self] = self._row(slice_)
        return row  # type: ignore[return-value]

    def _row(self, slice_: SliceView) -> Row:
        row = Row()
        bad = slice_.bad_devices(self._lists)
        if self.reads.everything:
            for index in range(len(slice_.devices)):
                self._enter(row, self.verdict(slice_, index), 1 << index)
            return row
        if bad and (self.steps or self.derived):
            clean = slice_.all_mask
            for index in bad:
                clean &= ~(1 << index)
                self._enter(row, self._bad(bad[index]), 1 << index)
        else:
            clean = slice_.all_mask
        for values, mask, index in self._partition(slice_):
            here = mask & clean
            if here:
                if index in bad:
                    index = (here & -here).bit_length() - 1
                self._enter(row, self._known(values, slice_, index), here)
        return row

    def _enter(self, row: Row, verdict: Verdict, mask: int) -> None:
        if verdict.error:
            row.errors |= mask
        elif verdict.ok:
            row.yes |= mask
            for name, values in verdict.derived:
                masks = row.derived.setdefault(name, {})
                masks[values] = masks.get(values, 0) | mask

    def _known(self, values: tuple[object, ...], slice_: SliceView, index: int) -> Verdict:
        verdict = self._verdicts.get(values)
        if verdict is None:
            if len(self._verdicts) > 50000:
                self._verdicts.clear()
            verdict = self._verdicts[values] = self._evaluate(slice_.devices[index])
        return verdict

    def _values(self, slice_: SliceView, index: int) -> tuple[object, ...]:
        reads = self.reads
        values: list[object] = [slice_.driver]
        values += [slice_.column(*name)[index] for name in reads.attributes]
        values += [slice_.capacity_column(*name)[index] for name in reads.capacities]
        if reads.multi:
            values.append(slice_.devices[index].multi)
        return tuple(values)

    def _partition(self, slice_: SliceView) -> Iterable[tuple[tuple[object, ...], int, int]]:
        """Devices of a slice that look alike to this selection: (values, mask, one of them)."""
        reads = self.reads
        known = slice_.partitions.get(reads)
        if known is not None:
            return known
        count = len(slice_.devices)
        columns: list[Iterable[object]] = [(slice_.driver,) * count]
        columns += [slice_.column(*name) for name in reads.attributes]
        columns += [slice_.capacity_column(*name) for name in reads.capacities]
        if reads.multi:
            columns.append([device.multi for device in slice_.devices])
        masks: dict[tuple[object, ...], list[int]] = {}
        for index, values in enumerate(zip(*columns, strict=True)):
            entry = masks.get(values)
            if entry is None:
                masks[values] = [1 << index, index]
            else:
                entry[0] |= 1 << index
        known = tuple((values, mask, index) for values, (mask, index) in masks.items())
        slice_.partitions[reads] = known
        return known

    def _bad(self, text: str) -> Verdict:
        if not self.steps:
            if not self.derived:
                return YES
            return Verdict(False, 0, text)
        first = self.steps[0]
        return Verdict(False, 0, first, True) if isinstance(first, str) else Verdict(False, 0, text)

    def _evaluate(self, device: DeviceView) -> Verdict:
        for number, step in enumerate(self.steps):
            if isinstance(step, str):
                return Verdict(False, number, step, True)
            try:
                if not step.test(device):
                    return NO[number] if number < len(NO) else Verdict(False, number)
            except SelectorFailure as error:
                return Verdict(False, number, str(error))
        if not self.derived:
            return YES
        found = []
        for number, (name, step) in enumerate(self.derived, len(self.steps)):
            if isinstance(step, str):
                return Verdict(False, number, step, True)
            try:
                found.append((name, step.derive(device)))
            except SelectorFailure as error:
                return Verdict(False, number, str(error))
        return Verdict(True, derived=tuple(found))

    def describe_error(self, verdict: Verdict, class_name: str, claim: str, request: str, device: DeviceView) -> str:
        """An error in upstream's words."""
        if verdict.step < self.classes:
            where = f"class {class_name}: selector #{verdict.step}"
        elif verdict.step < len(self.steps):
            where = f"claim {claim}: selector #{verdict.step - self.classes}"
        else:
            name = self.derived[verdict.step - len(self.steps)][0]
            where = f"claim {claim}, request {request}: derived attribute {name}"
        if verdict.compile_error:
            return f"{where}: CEL compile error: {verdict.error}"
        return f"{where} on device {device}: CEL runtime error: {verdict.error}"


def _compiled(text: str, compile_: Compile, derived: bool = False) -> Expression | str:
    try:
        return compile_(text, derived)
    except SelectorFailure as error:
        return str(error)


class Selections:
    """All selections in use, so that equal requests of different pods share one."""

    def __init__(self, compile_: Compile, features: Features, limit: int = 2048) -> None:
        self._compile = compile_
        self._features = features
        self._limit = limit
        self._known: dict[tuple[object, ...], Selection] = {}

    def of(
        self,
        class_selectors: tuple[str, ...],
        request_selectors: tuple[str, ...],
        derived: tuple[tuple[str, str], ...] = (),
    ) -> Selection:
        """The selection of these expressions."""
        key = (class_selectors, request_selectors, derived)
        selection = self._known.pop(key, None)
        if selection is None:
            selection = Selection(class_selectors, request_selectors, derived, self._compile, self._features)
        # Re-inserted at the end: the one that was not used longest goes first.
        self._known[key] = selection
        if len(self._known) > self._limit:
            del self._known[next(iter(self._known))]
        return selection
