"""Which strategy a kind has: those of `strategies` where there is one, else the default."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from kubedra.api.kinds import Kind
from kubedra.server.registry.strategy import Strategy


@cache
def strategy_for(kind: Kind[Any]) -> Strategy:
    """The strategy of a kind (in its storage version)."""
    try:
        module = importlib.import_module("kubedra.server.registry.strategies")
    except ModuleNotFoundError:
        return Strategy()
    found: Strategy | None = module.strategy_for(kind)
    return found or Strategy()
