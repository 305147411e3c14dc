"""Writes docs/reference/allocation.md: every code by which answers about allocation can be told apart.

The tables of the code are the source, so that no code goes undocumented.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from kubedra.allocation.reasons import REASON_CODES  # noqa: E402
from kubedra.allocation.violations import CODES as VIOLATIONS  # noqa: E402
from kubedra.allocation.waterfall import CODES as STEPS  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "allocation.md"


def page() -> str:
    """The page as it should be."""
    lines = ["# Codes of answers about allocation", ""]
    lines += ["<!-- Written by tools/generate_allocation_reference.py, do not edit. -->", ""]
    lines += ["Codes are stable: scripts may rely on them. The sentences beside them may change.", ""]
    lines += ["## Reasons", "", "Why claims do not fit (`kubedra why -o json`).", ""]
    lines += _table(REASON_CODES)
    lines += ["", "## Steps", "", "What is counted, in this order, for each request: what is left after each step.", ""]
    lines += _table(STEPS)
    lines += ["", "## Violations", "", "What `kubedra check allocations` finds.", ""]
    lines += _table(VIOLATIONS)
    return "\n".join(lines) + "\n"


def _table(codes: Mapping[str, str]) -> list[str]:
    rows = [f"| `{code}` | {text[0].upper()}{text[1:]}. |" for code, text in codes.items()]
    return ["| Code | Meaning |", "| --- | --- |", *rows]


def main() -> int:
    """Write the page, or compare with --check."""
    parser = argparse.ArgumentParser(description="Writes docs/reference/allocation.md.")
    parser.add_argument("--check", action="store_true", help="compare with the committed page, write nothing")
    fresh = page()
    if parser.parse_args().check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != fresh:
            print(f"{PAGE.relative_to(ROOT)} is not up to date: run {Path(__file__).name}", file=sys.stderr)
            return 1
        return 0
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
