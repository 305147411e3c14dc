"""Rules of a capacity's request policy: which amounts of a shared device may be asked for.

Amounts are compared exactly; multiples of a step are counted in whole units (fractions round up), or in thousandths
where fractional ranges are enabled and one of the amounts is a fraction.

Upstream counterpart: validateRequestPolicy of pkg/apis/resource/validation. A step of zero crashes 1.36.2; here it
is a fault like any other.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError
from kubedra.base.quantity import Quantity, QuantityError
from kubedra.validation.context import Context
from kubedra.validation.lists import check_set

Tree = dict[str, Any]

VALUES_MAX = 10
_TWO_POLICIES = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'


def validate_policy(policy: Tree, capacity: Any, path: str, context: Context) -> list[FieldError]:
    """Check the policy of one capacity of a device that can be shared."""
    values, allowed = policy.get("validValues") or [], policy.get("validRange")
    if values and allowed is not None:
        return [fields.forbidden(path, _TWO_POLICIES)]
    if not values and allowed is None:
        return []
    default = _quantity(policy.get("default"))
    if default is None:
        name = "validValues" if values else "validRange"
        return [fields.required(f"{path}.default", f"required when {name} is defined")]
    whole = _quantity(capacity) or Quantity.parse("0")
    if values:
        return _validate_values(values, default, whole, f"{path}.validValues", context)
    return _validate_range(allowed or {}, default, whole, f"{path}.validRange", context)


def _validate_values(
    values: list[Any], default: Quantity, capacity: Quantity, path: str, context: Context
) -> list[FieldError]:
    amounts = [_quantity(value) or Quantity.parse("0") for value in values]
    errors = [
        fields.invalid(f"{path}[{index + 1}]", str(after), "values must be sorted in ascending order")
        for index, (before, after) in enumerate(pairwise(amounts))
        if before > after
    ]

    def check(amount: Quantity, at: str) -> list[FieldError]:
        if amount > capacity:
            return [fields.invalid(at, str(amount), f"option is larger than capacity value: {capacity}")]
        return []

    exact = context.enabled("DRAFractionalCapacityRange")
    errors.extend(
        check_set(
            amounts,
            VALUES_MAX,
            check,
            path,
            key=lambda amount: amount if exact else amount.value(),
            shown=lambda amount: str(amount.value()),
        )
    )
    if len(amounts) > VALUES_MAX or default not in amounts:
        text = "default value is not valid according to the requestPolicy"
        errors.append(fields.invalid(path, str(default), text))
    return errors


def _validate_range(
    allowed: Tree, default: Quantity, capacity: Quantity, path: str, context: Context
) -> list[FieldError]:
    low, high, step = (_quantity(allowed.get(name)) for name in ("min", "max", "step"))
    if low is None:
        return [fields.required(f"{path}.min", "required when validRange is defined")]
    errors: list[FieldError] = []
    if low > capacity:
        errors.append(fields.invalid(f"{path}.min", str(low), f"min is larger than capacity value: {capacity}"))
    if default < low:
        errors.append(fields.invalid(f"{path}.min", str(default), f"default is less than min: {low}"))
    if high is not None:
        if low > high:
            errors.append(fields.invalid(f"{path}.max", str(low), f"min is larger than max: {high}"))
        if high > capacity:
            errors.append(fields.invalid(f"{path}.max", str(high), f"max is larger than capacity value: {capacity}"))
        if default > high:
            errors.append(fields.invalid(f"{path}.max", str(default), f"default is more than max: {high}"))
    if step is not None:
        errors.extend(_validate_step(step, low, high, default, capacity, path, context))
    return errors


def _validate_step(
    step: Quantity,
    low: Quantity,
    high: Quantity | None,
    default: Quantity,
    capacity: Quantity,
    path: str,
    context: Context,
) -> list[FieldError]:
    at = f"{path}.step"
    if step.sign <= 0:
        return [fields.invalid(at, str(step), "must be greater than zero")]
    errors: list[FieldError] = []
    first = low + step
    if first > capacity:
        text = f"one step {first} is larger than capacity value: {capacity}"
        errors.append(fields.invalid(at, str(step), text))
    amounts = [low, step, default, *(() if high is None else (high,))]
    thousandths = context.enabled("DRAFractionalCapacityRange") and any(not amount.is_whole for amount in amounts)

    def units(amount: Quantity) -> int:
        return amount.milli_value() if thousandths else amount.value()

    for amount in (default, *(() if high is None else (high,))):
        if (units(amount) - units(low)) % units(step):
            text = f"value is not a multiple of a given step ({step}) from ({low})"
            errors.append(fields.invalid(at, str(amount), text))
    return errors


def _quantity(value: Any) -> Quantity | None:
    if value is None:
        return None
    try:
        return Quantity.parse(value)
    except QuantityError:
        return None
