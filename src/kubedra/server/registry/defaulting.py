"""Defaults of the version of the request; the rules stand in `api.defaults`."""

from __future__ import annotations

from typing import Any

from kubedra.api import defaults
from kubedra.api.kinds import Kind


def apply_defaults(kind: Kind[Any], tree: dict[str, Any], now: str) -> None:
    """Fills in defaults in place."""
    defaults.apply_defaults(kind.group, kind.version, kind.kind, tree, now=now)
