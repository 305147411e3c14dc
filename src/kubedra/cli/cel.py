"""``kubedra cel``: check a device selector before a scheduler meets it, and evaluate recorded cases."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

import click

VERSIONS = click.Choice(["1.34", "1.35", "1.36", "1.37"])


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cel() -> None:
    """Check and evaluate device selectors."""


@cel.command("eval")
@click.option("--jsonl", is_flag=True, required=True, help="One case a line in, one answer a line out.")
@click.option("--kubernetes-version", type=VERSIONS, default="1.37", help="Whose rules apply.", show_default=True)
@click.argument("file", type=click.File("r", encoding="utf-8", errors="replace"), default="-")
def evaluate(jsonl: bool, kubernetes_version: str, file: TextIO) -> None:
    """Evaluate cases: JSON objects with id, expr, device and features, one a line, from FILE or standard input.

    Each is answered, in order, with one line: id, result (true, false, compile-error or runtime-error), message,
    estimatedCost, actualCost, admission.
    """
    from kubedra.cel.answering import answer_case

    for line in file:
        if not line.strip():
            continue
        try:
            case: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            answer: dict[str, Any] = {"id": None, "result": "invalid-case", "message": f"not JSON: {error}"}
        else:
            answer = answer_case(case, kubernetes_version)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    cel()
