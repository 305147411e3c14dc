"""Which devices the selectors of a request admit, worked out once per kind of device.

A selector answers from what it reads. Its read set names the attributes and capacities it looks at; devices that agree
in those get one evaluation, over all nodes, pools and pods. ``Selection`` is the chain of a class's and a request's
selectors (and the request's derived attributes); its answers are remembered

* by the values read, over the whole cluster (``_verdicts``), and
* as bit masks for each combination of columns (``Row``), which slices with equal columns share.

Errors are data here. Upstream evaluates lazily: an error exists only for a device that the search gets to. So a row
just records which devices would raise; who visits one turns it into a failure.

Upstream counterpart: isSelectable and selectorsMatch of the allocator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kubedra.allocation.columns import FRAME, Column, Columns, Key, ValueSet
from kubedra.allocation.devices import DeviceView, SliceView
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


# Combinations of columns that are worth going through before slices are looked at one by one.
_MANY_GROUPS = 50_000
YES = Verdict(True)
NO = tuple(Verdict(False, step) for step in range(64))


@dataclass(slots=True)
class Row:
    """The answers for the devices of one slice, or of all slices with the same columns."""

    yes: int = 0
    errors: int = 0
    parts: list[tuple[Verdict, int]] = field(default_factory=list)


class Selection:
    """The selectors of a class followed by those of a request, and the request's derived attributes."""

    __slots__ = ("_keys", "_lists", "_rows", "_verdicts", "classes", "derived", "reads", "steps", "texts")

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
        # The columns that the answers depend on, and the answers for those met so far.
        self._keys: tuple[Key, ...] = (
            FRAME,
            *(("attribute", *name) for name in sorted(reads.attributes)),
            *(("capacity", *name) for name in sorted(reads.capacities)),
        )
        self._rows: dict[tuple[Column | None, ...], Row] = {}

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
        return [(verdict, mask.bit_count()) for verdict, mask in self.row(slice_).parts]

    def row(self, slice_: SliceView) -> Row:
        """The answers for all devices of a slice."""
        if self.reads.everything or slice_.bad_devices(self._lists):
            row = slice_.rows.get(self)
            if row is None:
                slice_.limit_caches()
                row = Row()
                for index in range(len(slice_.devices)):
                    _enter(row, self.verdict(slice_, index), 1 << index)
                slice_.rows[self] = row
            return row  # type: ignore[return-value]
        columns = slice_.columns
        return self._shared_row(tuple([columns.get(key) for key in self._keys]), slice_)

    def live_slices(self, columns: Columns, slice_of: Callable[[int], SliceView]) -> tuple[int, int]:
        """The slices with a device that passes or fails, and those with one that fails, as masks.

        Works combination by combination of columns, not slice by slice, unless there are too many of them.
        """
        if self.reads.everything:
            return columns.slices, columns.slices
        live = failing = columns.bad_slices
        groups: list[tuple[tuple[Column | None, ...], int]] = [((), columns.slices & ~columns.bad_slices)]
        for key in self._keys:
            if len(groups) * columns.count(key) > _MANY_GROUPS:
                return self._live_one_by_one(columns, slice_of)
            split = []
            for chosen, slices in groups:
                for column in columns.of(key):
                    here = slices & column.slices
                    if here:
                        split.append(((*chosen, column), here))
                        slices ^= here
                        if not slices:
                            break
                if slices:
                    split.append(((*chosen, None), slices))
            groups = split
        for chosen, slices in groups:
            row = self._shared_row(chosen, slice_of((slices & -slices).bit_length() - 1))
            if row.errors:
                failing |= slices
            if row.yes or row.errors:
                live |= slices
        return live, failing

    def _live_one_by_one(self, columns: Columns, slice_of: Callable[[int], SliceView]) -> tuple[int, int]:
        live = failing = columns.bad_slices
        rest = columns.slices & ~columns.bad_slices
        while rest:
            low = rest & -rest
            rest ^= low
            row = self.row(slice_of(low.bit_length() - 1))
            if row.errors:
                failing |= low
            if row.yes or row.errors:
                live |= low
        return live, failing

    def _shared_row(self, columns: tuple[Column | None, ...], slice_: SliceView) -> Row:
        row = self._rows.get(columns)
        if row is None:
            row = Row()
            if slice_.devices and all(column is None or column.uniform for column in columns):
                _enter(row, self._known(self._values(slice_, 0), slice_, 0), slice_.all_mask)
            else:
                for values, mask, index in self._partition(slice_):
                    _enter(row, self._known(values, slice_, index), mask)
            if len(self._rows) > 20000:
                self._rows.clear()
            self._rows[columns] = row
        return row

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
        for key in self._keys[1:]:
            column = slice_.columns.get(key)
            values.append(None if column is None else column.values[index])
        if reads.multi:
            values.append(slice_.devices[index].multi)
        return tuple(values)

    def _partition(self, slice_: SliceView) -> Iterable[tuple[tuple[object, ...], int, int]]:
        """Devices of a slice that look alike to this selection: (values, mask, one of them)."""
        reads = self.reads
        count = len(slice_.devices)
        columns: list[Iterable[object]] = [(slice_.driver,) * count]
        for key in self._keys[1:]:
            found = slice_.columns.get(key)
            columns.append((None,) * count if found is None else found.values)
        if reads.multi:
            columns.append([device.multi for device in slice_.devices])
        masks: dict[tuple[object, ...], list[int]] = {}
        for index, values in enumerate(zip(*columns, strict=True)):
            entry = masks.get(values)
            if entry is None:
                masks[values] = [1 << index, index]
            else:
                entry[0] |= 1 << index
        return [(values, mask, index) for values, (mask, index) in masks.items()]

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


def _enter(row: Row, verdict: Verdict, mask: int) -> None:
    row.parts.append((verdict, mask))
    if verdict.error:
        row.errors |= mask
    elif verdict.ok:
        row.yes |= mask


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
