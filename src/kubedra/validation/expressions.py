"""The only place where validation meets CEL: selectors and derived attributes must compile and be cheap.

An expression that was stored before is compiled in the permissive environment, so that what an older server
accepted stays acceptable. Compiling is the expensive part of validation; equal expressions are compiled once.

Upstream counterpart: validateCELExpression of pkg/apis/resource/validation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kubedra import cel
from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base.features import FeatureGates
from kubedra.validation.context import Context

Tree = dict[str, Any]

EXPRESSION_MAX = 10 * 1024
COST_MAX = 1_000_000

_TOO_COMPLEX = "too complex, exceeds cost limit"
# The gates that change what an expression may use; others must not split the cache.
_GATES = ("DRAConsumableCapacity", "DRAListTypeAttributes")


def validate_selector(selector: Tree, path: str, context: Context, *, stored: bool = False) -> list[FieldError]:
    """Check one selector of a class or a request."""
    expression = selector.get("cel")
    if expression is None:
        return [fields.required(f"{path}.cel")]
    return validate_expression(expression.get("expression") or "", f"{path}.cel.expression", context, stored=stored)


def validate_expression(expression: str, path: str, context: Context, *, stored: bool = False) -> list[FieldError]:
    """Check one expression: its length, that it compiles to a boolean, and its cost."""
    if len(expression.encode()) > EXPRESSION_MAX:
        return [fields.too_long(path, EXPRESSION_MAX)]
    fault, cost = _compile(expression, context.features.version, _relevant(context.features), stored)
    if fault is not None:
        return [fields.invalid(path, expression, fault)]
    if cost > COST_MAX:
        return [fields.forbidden(path, _TOO_COMPLEX)]
    return []


def _relevant(features: FeatureGates) -> tuple[bool, ...]:
    return tuple(features.enabled(gate) for gate in _GATES)


def validate_derived(expression: str, path: str, context: Context, spent: Budget) -> list[FieldError]:
    """Check the expression of a derived attribute; what it may cost is added to what the claim has spent."""
    if len(expression.encode()) > EXPRESSION_MAX:
        return [fields.too_long(path, EXPRESSION_MAX)]
    features = context.features
    try:
        compiled = cel.compile_derived_attribute(expression, features=features, version=features.version)
    except cel.CompileError as error:
        return [fields.invalid(path, expression, str(error))]
    spent.cost += compiled.estimated_cost
    return [fields.forbidden(path, _TOO_COMPLEX)] if compiled.estimated_cost > COST_MAX else []


@dataclass
class Budget:
    """What the derived attributes of one claim may cost together."""

    cost: int = 0

    @property
    def is_exceeded(self) -> bool:
        """Whether they cost too much."""
        return self.cost > COST_MAX


@lru_cache(maxsize=1024)
def _compile(expression: str, version: str, gates: tuple[bool, ...], stored: bool) -> tuple[str | None, int]:
    """Compile an expression and give the fault, or the estimated cost."""
    features = FeatureGates(version, dict(zip(_GATES, gates, strict=True)))
    try:
        compiled = cel.compile_selector(expression, features=features, version=version, stored=stored)
    except cel.CompileError as error:
        return str(error), 0
    return None, compiled.estimated_cost
