"""Small rules about numbers and choices that many kinds share, with upstream's sentences.

Upstream counterpart: apimachinery pkg/api/validation/generic.go and field.NotSupported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubedra.api import fields
from kubedra.api.fields import FieldError

NEGATIVE = "must be greater than or equal to 0"


def not_negative(value: Any, path: str) -> list[FieldError]:
    """Check that a number is not below zero; a missing one is fine."""
    if isinstance(value, int) and value < 0:
        return [fields.invalid(path, value, NEGATIVE)]
    return []


def positive(value: Any, path: str) -> list[FieldError]:
    """Check that a number is above zero; a missing one is fine."""
    if isinstance(value, int) and value <= 0:
        return [fields.invalid(path, value, "must be greater than zero")]
    return []


def within(value: Any, low: int, high: int, path: str) -> list[FieldError]:
    """Check that a number lies in a range; a missing one is fine."""
    if isinstance(value, int) and not low <= value <= high:
        return [fields.invalid(path, value, f"must be between {low} and {high}, inclusive")]
    return []


def one_of(value: Any, choices: Sequence[str], path: str, *, needed: bool = True) -> list[FieldError]:
    """Check that a word is one of a few; they are named in the order given."""
    if not value:
        return [fields.required(path)] if needed else []
    return [] if value in choices else [fields.not_supported(path, value, choices)]
