"""Which strategy a kind has: that of `strategies` where there is one, else one of `builtin`."""

from __future__ import annotations

import contextlib
import importlib
from functools import cache
from typing import Any

from kubedra.api.kinds import Kind
from kubedra.server.registry import builtin
from kubedra.server.registry.strategy import Strategy


@cache
def strategy_for(kind: Kind[Any]) -> Strategy:
    """The strategy of a kind (in its storage version)."""
    found: Strategy | None = None
    with contextlib.suppress(ModuleNotFoundError):
        found = importlib.import_module("kubedra.server.registry.strategies").strategy_for(kind)
    return found or builtin.strategy_for(kind)
