"""``python -m kubedra``."""

from __future__ import annotations

from kubedra.cli.main import run

run()
