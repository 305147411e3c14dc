"""Chains of selections as the counting evaluator sees them: a root, qualifiers, and what each of them costs.

Upstream counterpart: cel-go interpreter/attributes.go and the watchers around it in interpretable.go.
"""

from __future__ import annotations

from collections.abc import Callable

from kubedra.cel import access
from kubedra.cel.errors import CostLimitError, EvaluationError
from kubedra.cel.fused import Frame
from kubedra.cel.library.operators import overload_error
from kubedra.cel.values import NONE, Optional, Value


class Meter:
    """What was spent so far, and the limit."""

    __slots__ = ("cost", "limit")

    def __init__(self, limit: int) -> None:
        self.cost = 0
        self.limit = limit

    def charge(self, amount: int) -> None:
        """Spend; raises CostLimitError beyond the limit."""
        self.cost += amount
        if self.cost > self.limit:
            raise CostLimitError


Step = Callable[[Frame, Meter], Value]


class Qualifier:
    """One ``.b``, ``[k]``, ``.?b`` or ``[?k]``; ``test`` makes it has()."""

    __slots__ = ("attribute", "expression", "key", "optional", "test")

    def __init__(
        self,
        key: Value = None,
        attribute: Attribute | None = None,
        expression: Step | None = None,
        optional: bool = False,
        test: bool = False,
    ) -> None:
        self.key = key
        self.attribute = attribute
        self.expression = expression
        self.optional = optional
        self.test = test

    def _resolve(self, frame: Frame, meter: Meter) -> Value:
        if self.attribute is not None:
            return self.attribute.resolve(frame, meter)
        if self.expression is not None:
            return self.expression(frame, meter)
        return self.key

    def qualify(self, frame: Frame, meter: Meter, container: Value) -> Value:
        key = self._resolve(frame, meter)
        if isinstance(key, EvaluationError):
            result: Value = key
        else:
            try:
                if self.test:
                    result = access.qualify_present(container, key)[1]
                else:
                    result = access.qualify(container, key)
            except EvaluationError as error:
                result = error
        meter.charge(1)
        return result

    def qualify_present(self, frame: Frame, meter: Meter, container: Value) -> tuple[Value, bool]:
        key = self._resolve(frame, meter)
        if isinstance(key, EvaluationError):
            return key, False
        try:
            value, present = access.qualify_present(container, key)
        except CostLimitError:
            raise
        except EvaluationError as error:
            return error, False
        if present:
            meter.charge(1)
        return (True if self.test else value), present


class Attribute:
    """A root with qualifiers; resolving it does not charge for the root."""

    __slots__ = ("qualifiers", "root")

    def __init__(self, root: Step) -> None:
        self.root = root
        self.qualifiers: list[Qualifier] = []

    def add(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)

    def resolve(self, frame: Frame, meter: Meter) -> Value:
        value = self.root(frame, meter)
        if isinstance(value, EvaluationError):
            return value
        qualifiers = self.qualifiers
        if not qualifiers:
            return value
        optional = False
        if value.__class__ is Optional:
            if value is NONE:
                return False if qualifiers[-1].test else NONE
            value, optional = value.value, True
        for qualifier in qualifiers:
            optional = optional or qualifier.optional
            if optional:
                value, present = qualifier.qualify_present(frame, meter, value)
                if isinstance(value, EvaluationError):
                    return value
                if not present:
                    # has() below an optional is a bool; upstream lets an optional slip out of a conditional here.
                    return False if qualifiers[-1].test else NONE
            else:
                value = qualifier.qualify(frame, meter, value)
                if isinstance(value, EvaluationError):
                    return value
        return Optional(value) if optional and not qualifiers[-1].test else value


class Conditional(Attribute):
    """``c ? a : b``; a selection from it is a selection from both."""

    __slots__ = ("condition", "no", "yes")

    def __init__(self, condition: Step, yes: Attribute, no: Attribute) -> None:
        super().__init__(condition)
        self.condition = condition
        self.yes = yes
        self.no = no

    def add(self, qualifier: Qualifier) -> None:
        self.yes.add(qualifier)
        self.no.add(qualifier)

    def resolve(self, frame: Frame, meter: Meter) -> Value:
        value = self.condition(frame, meter)
        if value is True:
            return self.yes.resolve(frame, meter)
        if value is False:
            return self.no.resolve(frame, meter)
        return value if isinstance(value, EvaluationError) else overload_error()
