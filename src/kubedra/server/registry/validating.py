"""A strategy that asks `validation`, for every kind that has no more to say."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from kubedra.api.fields import FieldError
from kubedra.server.registry.strategy import Strategy, StrategyContext

Tree = dict[str, Any]


@cache
def _validation() -> Any:
    try:
        module = importlib.import_module("kubedra.validation")
    except ModuleNotFoundError:
        return None
    return module if hasattr(module, "validate_create") else None


@cache
def _context(context_features: Any, labels: Any) -> Any:
    return importlib.import_module("kubedra.validation.context").Context(context_features, labels)


class ValidatingStrategy(Strategy):
    """Validation by the rules of the kind."""

    def validate_create(self, tree: Tree, context: StrategyContext) -> list[FieldError]:
        """All faults of a new object."""
        validation = _validation()
        if validation is None:
            return []
        found: list[FieldError] = validation.validate_create(
            context.kind, tree, _context(context.features, context.namespace_labels)
        )
        return found

    def validate_update(self, new: Tree, old: Tree, context: StrategyContext) -> list[FieldError]:
        """All faults of a change."""
        validation = _validation()
        if validation is None:
            return []
        found: list[FieldError] = validation.validate_update(
            context.kind,
            new,
            old,
            _context(context.features, context.namespace_labels),
            subresource=context.subresource,
        )
        return found
