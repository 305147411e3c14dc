"""Which strategy a kind has: one of `builtin`, else one of `strategies`."""

from __future__ import annotations

from functools import cache
from typing import Any

from kubedra.api.kinds import Kind
from kubedra.server.registry.builtin import own_strategy
from kubedra.server.registry.strategies import strategy_for as general_strategy
from kubedra.server.registry.strategy import Strategy


@cache
def strategy_for(kind: Kind[Any]) -> Strategy:
    """The strategy of a kind (in its storage version)."""
    return own_strategy(kind) or general_strategy(kind)
