"""``kubedra demo``: a DRA cluster at work, told step by step."""

from __future__ import annotations

from kubedra.cli.demo.command import demo

__all__ = ["demo"]
