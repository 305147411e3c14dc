"""Writes docs/reference/cli.md from the commands themselves; ``--check`` exits 1 when it is not current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "cli.md"
HEAD = """# Commands

Written by `tools/generate_cli_reference.py` from the code; do not edit.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the answer is "no" (it does not fit, it is not so, none runs).
"""


def section(command: click.Command, path: str, depth: int) -> list[str]:
    """The help of a command, and of the commands below it."""
    context = click.Context(command, info_name=path, max_content_width=100, terminal_width=100)
    out = [f"\n{'#' * depth} {path}\n", "```text", command.get_help(context).rstrip(), "```"]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                out += section(below, f"{path} {name}", depth + 1)
    return out


def page() -> str:
    """The whole page."""
    from kubedra.cli.main import COMMANDS
    from kubedra.cli.main import main as kubedra

    lines = [HEAD.rstrip()]
    context = click.Context(kubedra, info_name="kubedra")
    for name in COMMANDS:
        command = kubedra.get_command(context, name)
        if command is not None:
            lines += section(command, f"kubedra {name}", 2)
    return "\n".join(line.rstrip() for text in lines for line in text.split("\n")) + "\n"


def run() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is not current")
    options = parser.parse_args()
    # A checkout that is not installed works too.
    sys.path.insert(0, str(ROOT / "src"))
    text = page()
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    if options.check:
        print(f"{PAGE.relative_to(ROOT)} is not current: run make docs", file=sys.stderr)
        return 1
    PAGE.write_text(text)
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run())
