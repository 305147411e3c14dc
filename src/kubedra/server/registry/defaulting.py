"""Defaults of the version of the request; the rules stand in `api.defaults`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from kubedra.api.kinds import Kind


def apply_defaults(kind: Kind[Any], tree: dict[str, Any], now: str) -> None:
    """Fills in defaults in place."""
    _defaults()(kind.group, kind.version, kind.kind, tree, now=now)


@cache
def _defaults() -> Callable[..., Any]:
    try:
        found: Callable[..., Any] = importlib.import_module("kubedra.api.defaults").apply_defaults
    except ModuleNotFoundError:
        return lambda *arguments, **options: None
    return found
