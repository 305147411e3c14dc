"""Prints a benchmark's figures as JSON lines, each beside the figure that was recorded before.

``recorded.json`` holds one figure per benchmark, case and name. A run with ``--record`` writes what it measured there:
do that on a quiet machine only, and say in the commit which one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded.json")


def emit(benchmark: str, line: dict[str, Any]) -> None:
    """Print one line. Its words name the case, its numbers (nested ones too) are the figures."""
    case = " ".join(str(v) for v in line.values() if isinstance(v, str)) or "all"
    figures = dict(_numbers(line, ""))
    everything: dict[str, Any] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    before = everything.get(benchmark, {}).get(case, {})
    known = {name: before[name] for name in figures if name in before}
    print(json.dumps({"benchmark": benchmark, **line, "recorded": known}), flush=True)
    if "--record" in sys.argv:
        everything.setdefault(benchmark, {})[case] = figures
        RECORDED.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")


def _numbers(value: Any, path: str) -> list[tuple[str, float]]:
    if isinstance(value, dict):
        return [n for k, v in value.items() for n in _numbers(v, f"{path}.{k}" if path else str(k))]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [(path, value)]
    return []
