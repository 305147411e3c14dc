"""Compiled device selectors: the public face of this room.

``compile_selector`` makes one from text for a Kubernetes version and its gates; ``evaluate`` answers for a device.
What an expression reads is known (``read_set``), so that callers can evaluate once per kind of device: two devices
with the same ``key`` get the same answer, error included.

The fast closures run what is certainly cheap: an expression whose estimate stays far below the limit, or one without
loops and without functions that build larger values. Everything else is counted and stopped at the limit.

Upstream counterpart: k8s.io/dynamic-resource-allocation/cel/compile.go, cache.go.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, Protocol

from kubedra.cel import estimate
from kubedra.cel.ast import Call, Comprehension, Node, walk
from kubedra.cel.attributes import Meter
from kubedra.cel.checker import check, homogeneity_issues
from kubedra.cel.closures import compile_closure
from kubedra.cel.device import DeviceInput, attribute_type, device_environment
from kubedra.cel.environment import Environment
from kubedra.cel.errors import CompileError, EvaluationError, compile_error
from kubedra.cel.library.formatting import format_issues
from kubedra.cel.limits import RECURSION_MESSAGE
from kubedra.cel.literal_checks import literal_issues
from kubedra.cel.metering import compile_metered
from kubedra.cel.parser import parse
from kubedra.cel.program import Constants, Layout
from kubedra.cel.read_sets import ReadSet, read_set_of
from kubedra.cel.types import BOOL, Type
from kubedra.cel.values import Value, go_name, type_of

COST_LIMIT: Final = 1_000_000
MAX_EXPRESSION_BYTES: Final = 10 * 1024
_CERTAINLY_CHEAP: Final = 100_000
_SHORT: Final = 2048
# Functions whose results can be larger than what they get: repeated use grows exponentially.
_GROWING: Final = frozenset(("_+_", "replace", "join", "format", "lists.range", "flatten", "strings.quote", "findAll"))


class Features(Protocol):
    """What is asked of feature gates (base.features.FeatureGates fits)."""

    def enabled(self, gate: str) -> bool:
        """Whether a gate is on."""
        ...


class Program:
    """A checked expression of any environment with both its evaluators, made when first needed."""

    __slots__ = ("_closure", "_constants", "_environment", "_fast", "_layout", "_step", "expression", "room", "root")

    def __init__(self, expression: str, root: Node, environment: Environment) -> None:
        self.expression = expression
        self.root = root
        self._environment = environment
        self._layout = Layout(environment)
        self._constants = Constants(root, environment)
        self._closure: Any = None
        self._step: Any = None
        self.room = 0

    @property
    def output_type(self) -> Type:
        """Static type of the result."""
        assert self.root.type is not None
        return self.root.type

    def closure(self) -> Any:
        """The fast evaluator; ``room`` is how many slots a frame needs beyond the variables."""
        if self._closure is None:
            self._closure, slots = compile_closure(self.root, self._environment, self._layout, self._constants)
            self.room = slots - self._layout.size
        return self._closure

    def frame(self, variables: dict[str, Value]) -> list[Value]:
        """A frame for these variables."""
        return self._layout.frame(variables)

    def measure(self, frame: list[Value], limit: int = COST_LIMIT) -> tuple[Value, int]:
        """Value and actual cost; an error comes as the value (an EvaluationError)."""
        if self._step is None:
            self._step = compile_metered(self.root, self._environment, self._layout, self._constants)
        step, slots = self._step
        meter = Meter(limit)
        try:
            value = step([*frame, *[None] * (slots - len(frame))], meter)
        except EvaluationError as error:
            value = error
        except RecursionError:
            value = EvaluationError("value is nested too deeply")
        return value, meter.cost

    def estimated_cost(self) -> int:
        """The dearest that it can be."""
        return estimate.estimate(self.root, self._environment)[1]


def sanitize(text: str) -> str:
    """Lone surrogates cannot come from JSON of a Go client; they become the replacement character as there."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def compile_program(expression: str, environment: Environment) -> Program:
    """Parse, check and plan an expression in any environment; raises CompileError."""
    expression = sanitize(expression)
    try:
        root = parse(expression, environment.macros, escaped_identifiers=environment.escaped_identifiers)
        root, issues = check(root, environment)
        if not issues and environment.literal_validation:
            issues = [*literal_issues(root), *homogeneity_issues(root), *format_issues(root)]
        if issues:
            raise compile_error(expression, issues)
        return Program(expression, root, environment)
    except RecursionError:
        raise CompileError(f"compilation failed: ERROR: <input>:-1:0: {RECURSION_MESSAGE}", RECURSION_MESSAGE) from None


class CompiledSelector:
    """A selector that is ready to run; immutable, free to share."""

    __slots__ = (
        "_closure",
        "_cost",
        "_fast",
        "_program",
        "_room",
        "expression",
        "output_type",
        "read_set",
        "result_kinds",
    )

    def __init__(self, program: Program, result_kinds: frozenset[str]) -> None:
        self._program = program
        self.expression = program.expression
        self.output_type = program.output_type
        self.result_kinds = result_kinds
        self.read_set: ReadSet = read_set_of(program.root)
        self._cost: int | None = None
        self._fast: bool | None = None
        self._closure: Any = None
        self._room = 0

    @property
    def estimated_cost(self) -> int:
        """Worst-case cost as admission computes it."""
        if self._cost is None:
            self._cost = self._program.estimated_cost()
        return self._cost

    @property
    def root(self) -> Node:
        """The checked tree (for analysis; not to be changed)."""
        return self._program.root

    @property
    def program(self) -> Program:
        """The program behind it."""
        return self._program

    def key(self, device: DeviceInput) -> object:
        """What the answer depends on; equal keys mean equal answers."""
        return self.read_set.key(device)

    def _prepare(self) -> None:
        self._fast = self._certainly_cheap()
        if self._fast:
            self._closure = self._program.closure()
            self._room = self._program.room

    def _certainly_cheap(self) -> bool:
        if self.estimated_cost <= _CERTAINLY_CHEAP:
            return True
        if len(self.expression) > _SHORT:
            return False
        return not any(
            isinstance(node, Comprehension) or (isinstance(node, Call) and node.function in _GROWING)
            for node in walk(self.root)
        )

    def value(self, device: DeviceInput) -> Value:
        """The result for a device, whatever its kind; raises EvaluationError."""
        if device.fault is not None:
            raise device.fault
        if self._fast is None:
            self._prepare()
        if self._fast:
            if self._room:
                return self._closure(device.frame + [None] * self._room)
            return self._closure(device.frame)
        value, _ = self._program.measure(device.frame)
        if isinstance(value, EvaluationError):
            raise value
        return value

    def evaluate(self, device: DeviceInput) -> bool:
        """Whether the device matches; raises EvaluationError (CostLimitError when stopped at the limit)."""
        value = self.value(device)
        if value is True:
            return True
        if value is False:
            return False
        raise not_bool(value)

    def measure(self, device: DeviceInput, limit: int = COST_LIMIT) -> tuple[bool | EvaluationError, int | None]:
        """Outcome and actual cost (None where the device cannot be looked at)."""
        if device.fault is not None:
            return device.fault, None
        value, cost = self._program.measure(device.frame, limit)
        if isinstance(value, (bool, EvaluationError)):
            return value, cost
        return not_bool(value), cost

    def __repr__(self) -> str:
        return f"CompiledSelector({self.expression!r})"


_CONVERSIONS: Final = {
    "types.String": "unsupported native conversion from string to 'bool'",
    "types.Int": "unsupported type conversion from 'int' to bool",
    "types.Uint": "unsupported type conversion from 'uint' to bool",
    "types.Double": "type conversion error from 'double' to 'bool'",
    "types.Bytes": "type conversion error from Bytes to 'bool'",
    "types.Null": "type conversion error from 'null_type' to 'bool'",
    "cel.Semver": "type conversion error from 'Semver' to 'bool'",
    "cel.Quantity": "type conversion error from 'Quantity' to 'bool'",
    "*types.baseList": "type conversion error from list to 'bool'",
    "*types.baseMap": "type conversion error from map to 'bool'",
    "cel.mapper": "type conversion error from map to 'bool'",
    "types.Duration": "type conversion error from 'Duration' to 'bool'",
    "types.Timestamp": "type conversion error from 'Timestamp' to 'bool'",
}


def not_bool(value: Value) -> EvaluationError:
    """The result is no bool."""
    name = go_name(value)
    reason = _CONVERSIONS.get(name, f"type conversion error from '{type_of(value)}' to 'bool'")
    return EvaluationError(f"CEL result of type {type_of(value)} could not be converted to bool: {reason}")


def environment_for(features: Features, version: str, stored: bool) -> Environment:
    """The device environment under these gates."""
    return device_environment(
        version, stored, features.enabled("DRAConsumableCapacity"), features.enabled("DRAListTypeAttributes")
    )


def compile_selector(expression: str, *, features: Features, version: str, stored: bool = False) -> CompiledSelector:
    """Compile a selector; ``stored`` for what is persisted already and for the scheduler. Raises CompileError."""
    environment = environment_for(features, version, stored)
    program = compile_program(expression, environment)
    expected = attribute_type(environment)
    if program.output_type != BOOL and program.output_type != expected:
        message = f"must evaluate to bool or the unknown type, not {program.output_type}"
        raise CompileError(message, message)
    return CompiledSelector(program, frozenset(("bool",)))


_DERIVED_KINDS: Final = frozenset(("string", "int", "bool", "kubernetes.Semver"))


def compile_derived_attribute(
    expression: str, *, features: Features, version: str, stored: bool = False
) -> CompiledSelector:
    """Compile a derived attribute: a string, int, bool, version or a list of those. Raises CompileError."""
    environment = environment_for(features, version, stored)
    program = compile_program(expression, environment)
    type_ = program.output_type
    if type_.kind == "list":
        type_ = type_.params[0]
    if type_.name not in _DERIVED_KINDS and type_.kind not in ("any", "dyn"):
        message = f"must evaluate to string, int, bool, version or a list of those, not {program.output_type}"
        raise CompileError(message, message)
    return CompiledSelector(program, _DERIVED_KINDS)


def derived_value(selector: CompiledSelector, device: DeviceInput) -> Value:
    """The value of a derived attribute for a device; raises EvaluationError, also for a result of another type."""
    value = selector.value(device)
    items = value if value.__class__ is list else [value]
    kinds = {type_of(item).name for item in items}
    if not kinds <= _DERIVED_KINDS or len(kinds) > 1:
        raise EvaluationError(
            f"CEL result of type {type_of(value)} is not a string, int, bool, version or a list of one of those"
        )
    return value


def check_selector_for_admission(
    expression: str, *, features: Features, version: str, stored: bool = False
) -> list[tuple[str, str]]:
    """What admission holds against a selector: (kind, detail), kind one of "too-long", "invalid", "too-complex".

    A selector that an update leaves unchanged is checked as ``stored``.
    """
    if len(expression.encode("utf-8", "surrogatepass")) > MAX_EXPRESSION_BYTES:
        return [("too-long", f"may not be more than {MAX_EXPRESSION_BYTES} bytes")]
    try:
        selector = compile_selector(expression, features=features, version=version, stored=stored)
    except CompileError as error:
        return [("invalid", str(error))]
    if selector.estimated_cost > COST_LIMIT:
        return [("too-complex", "too complex, exceeds cost limit")]
    return []


class SelectorCache:
    """Compiled selectors by text for one version and its gates; failures are not kept, as upstream."""

    __slots__ = ("_features", "_kept", "_limit", "_stored", "_version")

    def __init__(self, features: Features, version: str, *, stored: bool = True, limit: int = 1024) -> None:
        self._features = features
        self._version = version
        self._stored = stored
        self._limit = limit
        self._kept: OrderedDict[str, CompiledSelector] = OrderedDict()

    def get(self, expression: str) -> CompiledSelector:
        """The compiled selector; raises CompileError."""
        found = self._kept.get(expression)
        if found is not None:
            self._kept.move_to_end(expression)
            return found
        made = compile_selector(expression, features=self._features, version=self._version, stored=self._stored)
        self._kept[expression] = made
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        return made

    def __len__(self) -> int:
        return len(self._kept)
