"""The seam to CEL: expressions as the allocator wants them, evaluated by ``kubedra.cel``.

Selectors are compiled as stored expressions, as the scheduler does. Converting a device costs more than evaluating a
selector, so the last converted device is kept: the selectors of a chain are evaluated on one device after the other.
"""

from __future__ import annotations

from typing import TypeVar

from kubedra import cel
from kubedra.allocation.columns import ValueSet
from kubedra.allocation.devices import DeviceView
from kubedra.allocation.features import Features
from kubedra.allocation.selection import Compile, Expression, ReadSet, SelectorFailure
from kubedra.allocation.violations import CheckFeatures
from kubedra.api.resource_v1 import Device
from kubedra.base.semver import Semver

T = TypeVar("T")


class _Gates:
    """The gates that change the language, from the allocator's features."""

    def __init__(self, features: Features) -> None:
        self._on = {
            "DRAConsumableCapacity": features.consumable_capacity,
            "DRAListTypeAttributes": features.list_attributes,
        }

    def enabled(self, gate: str) -> bool:
        """Whether a gate is on."""
        return self._on.get(gate, True)


class _Inputs:
    """Converts devices, and remembers the last one."""

    def __init__(self, features: Features) -> None:
        self._lists = features.list_attributes or features.version >= "1.37"
        self._shared = features.consumable_capacity
        self._device: Device | None = None
        self._input: cel.DeviceInput | None = None

    def of(self, device: Device, driver: str) -> cel.DeviceInput:
        """A device as CEL sees it."""
        if self._input is None or self._device is not device or self._input.driver != driver:
            made = cel.DeviceInput.of(driver, device, lists_supported=self._lists)
            if made.multi and not self._shared:
                # Without the feature nothing can be shared, whatever a slice of a newer driver says.
                made = cel.DeviceInput(driver, made.attributes, made.capacity, False, made.fault)
            self._device, self._input = device, made
        return self._input


class _CelExpression:
    """One compiled expression."""

    __slots__ = ("_attributes", "_capacities", "_compiled", "_hinting", "_inputs", "_known", "reads")

    def __init__(self, compiled: cel.CompiledSelector, inputs: _Inputs, hinting: bool) -> None:
        self._compiled = compiled
        self._hinting = hinting
        self._inputs = inputs
        reads = compiled.read_set
        self.reads = ReadSet(reads.attributes, reads.capacities, reads.multi, not reads.is_exact)
        # Most class selectors look at the driver alone: one answer for each.
        reads_little = reads.is_exact and not reads.attributes and not reads.capacities
        self._known: dict[tuple[str, bool], bool] | None = {} if reads_little else None
        self._attributes = [(domain, name, f"{domain}/{name}") for domain, name in reads.attributes]
        self._capacities = [(domain, name, f"{domain}/{name}") for domain, name in reads.capacities]

    def _input(self, device: DeviceView) -> cel.DeviceInput:
        """The device as this expression needs it: only what it reads is converted.

        That an attribute which it doesn't read is malformed has been found before (``SliceView.bad_devices``).
        """
        raw, driver = device.raw, device.slice.driver
        if self.reads.everything or device.slice.bad:
            return self._inputs.of(raw, driver)
        attributes, capacities = raw.attributes, raw.capacity
        return self._inputs.of(
            Device(
                attributes=_picked(self._attributes, attributes, driver),
                capacity=_picked(self._capacities, capacities, driver),
                allow_multiple_allocations=raw.allow_multiple_allocations,
            ),
            driver,
        )

    def _told(self, error: cel.EvaluationError) -> str:
        return _with_hint(str(error)) if self._hinting else str(error)

    def test(self, device: DeviceView) -> bool:
        """Evaluate a selector; raises SelectorFailure."""
        key = (device.slice.driver, device.multi)
        if self._known is not None and key in self._known and not device.slice.bad:
            return self._known[key]
        try:
            answer = self._compiled.evaluate(self._input(device))
            if self._known is not None and not device.slice.bad and len(self._known) < 1000:
                self._known[key] = answer
            return answer
        except cel.EvaluationError as error:
            raise SelectorFailure(self._told(error)) from None

    def derive(self, device: DeviceView) -> ValueSet:
        """Evaluate a derived attribute; raises SelectorFailure."""
        try:
            value = cel.derived_value(self._compiled, self._input(device))
        except cel.EvaluationError as error:
            raise SelectorFailure(self._told(error)) from None
        return frozenset(map(_tagged, value if isinstance(value, list) else [value]))


def _picked(names: list[tuple[str, str, str]], values: dict[str, T], driver: str) -> dict[str, T]:
    found: dict[str, T] = {}
    for domain, name, full in names:
        value = values.get(full)
        if value is not None:
            found[full] = value
        elif domain == driver:
            value = values.get(name)
            if value is not None:
                found[name] = value
    return found


def cel_engine(features: Features) -> Compile:
    """The compiler of selectors and derived attributes under these features."""
    gates, inputs = _Gates(features), _Inputs(features)
    known: dict[tuple[str, bool], Expression] = {}

    def compile_(text: str, derived: bool = False) -> Expression:
        expression = known.get((text, derived))
        if expression is None:
            make = cel.compile_derived_attribute if derived else cel.compile_selector
            try:
                compiled = make(text, features=gates, version=features.version, stored=True)
            except cel.CompileError as error:
                raise SelectorFailure(str(error)) from None
            if len(known) > 4096:
                known.clear()
            expression = known[(text, derived)] = _CelExpression(compiled, inputs, features.version >= "1.37")
        return expression

    return compile_


def check_features(features: Features) -> CheckFeatures:
    """The features as the independent checker names them."""
    return CheckFeatures(**{name: getattr(features, name) for name in CheckFeatures.__dataclass_fields__})


def cel_matches(features: Features) -> CelMatches:
    """The same language for the independent checker, which works on API objects alone."""
    return CelMatches(features)


class CelMatches:
    """Says whether a device passes an expression; raises ValueError when that can't be said."""

    def __init__(self, features: Features) -> None:
        self._inputs = _Inputs(features)
        self._gates, self._version = _Gates(features), features.version
        self._cache = cel.SelectorCache(self._gates, self._version, stored=True)

    def __call__(self, expression: str, device: Device, driver: str) -> bool:
        try:
            return self._cache.get(expression).evaluate(self._inputs.of(device, driver))
        except cel.CelError as error:
            raise ValueError(str(error)) from None

    def derive(self, expression: str, device: Device, driver: str) -> set[tuple[str, object]]:
        """The value of a derived attribute as a set; raises ValueError when there is none."""
        try:
            compiled = cel.compile_derived_attribute(
                expression, features=self._gates, version=self._version, stored=True
            )
            value = cel.derived_value(compiled, self._inputs.of(device, driver))
        except cel.CelError as error:
            raise ValueError(str(error)) from None
        return set(map(_tagged, value if isinstance(value, list) else [value]))


def _with_hint(text: str) -> str:
    if "no such key:" in text and "orValue" not in text:
        text += (
            ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
            "for optional fields"
        )
    return text


def _tagged(value: object) -> tuple[str, object]:
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int):
        return "int", int(value)
    if isinstance(value, Semver):
        return "version", str(value)
    return "string", str(value)
