#!/usr/bin/env python3
"""Writes docs/reference/reason-codes.md from the tables of kubedra.insight.reason_codes.

--check only compares and exits with 1 when the committed page is not up to date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from kubedra.insight import reason_codes  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "reason-codes.md"


def page() -> str:
    """The whole page."""
    lines = [
        "# Reason codes",
        "",
        "What `kubedra why -o json` says is meant for scripts: the codes below are stable, the texts beside them are",
        "not. The members of the answer:",
        "",
        "| Member | What it holds |",
        "| --- | --- |",
        "| `state`, `fits` | Where the pod or claim stands; `fits` is false when the exit code is 3. |",
        "| `reasons` | Why, the one to act on first: `code`, `subject`, `detail`, `remedy`. |",
        "| `requests` | For each request the steps that rule devices out, with the devices left after each. |",
        "| `constraints` | For each constraint the largest group that satisfies it on one node. |",
        "| `nodes` | Nodes that are alike, with what stops the pod there: `code`, `why`. |",
        "| `remedies` | Changes after which it fits, each tried out: `code`, `text`, `node`, `change`. |",
        "| `remediesComplete` | False when the search for remedies ended at its time limit. |",
        "| `cannotHelp` | What people try in vain. |",
        "| `notSeen` | What could not be read, and how far the answer holds. |",
    ]
    lines += _section("States", "The member `state`.", reason_codes.STATES)
    lines += ["", "## Reasons", "", "The member `code` of each of the `reasons`."]
    for code, (meaning, what_to_do) in sorted(reason_codes.REASONS.items()):
        lines += ["", f"### {code}", "", f"{meaning[0].upper()}{meaning[1:]}.", "", f"What to do: {what_to_do}"]
    lines += _section("Steps", "The member `code` of the `steps` of a request, in this order.", reason_codes.STEPS)
    lines += _section("Nodes", "The member `code` of each group of `nodes`.", reason_codes.NODES)
    lines += _section("Remedies", "The member `code` of each of the `remedies`.", reason_codes.REMEDIES)
    lines += _section("What can't help", "The member `code` in `cannotHelp`.", reason_codes.CANNOT_HELP)
    return "\n".join(lines) + "\n"


def _section(title: str, text: str, table: Mapping[str, str]) -> list[str]:
    lines = ["", f"## {title}", "", text, "", "| Code | Meaning |", "| --- | --- |"]
    for code, meaning in table.items():
        end = "" if meaning.endswith(".") else "."
        lines.append(f"| `{code}` | {meaning[0].upper()}{meaning[1:]}{end} |")
    return lines


def main() -> int:
    """Write the page, or compare with --check."""
    parser = argparse.ArgumentParser(description="Writes docs/reference/reason-codes.md.")
    parser.add_argument("--check", action="store_true", help="compare with the committed page, write nothing")
    fresh = page()
    if parser.parse_args().check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != fresh:
            print(
                f"{PAGE.relative_to(ROOT)} is not up to date: run tools/generate_reason_reference.py", file=sys.stderr
            )
            return 1
        return 0
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
