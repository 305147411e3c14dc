"""What every command prints: tables, JSON, YAML, names, failures in one paragraph."""

from __future__ import annotations

import difflib
import errno
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "yaml", "name"]),
    default="table",
    help="Form of output.",
)
JSON_OUTPUT = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Form of output."
)


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` for the nearest known word, or nothing."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else "."


def print_json(value: Any) -> None:
    """JSON for scripts, two spaces deep."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_yaml(value: Any) -> None:
    """YAML that reads back as the same value."""
    from kubedra.base import yaml

    click.echo(yaml.dump(value), nl=False)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table as kubectl prints it: upper-case heads, three spaces between columns, nothing cut."""
    cells = [[c.upper() for c in columns], *([_cell(v) for v in row] for row in rows)]
    widths = [max((_width(row[i]) for row in cells), default=0) for i in range(len(columns))]
    for row in cells:
        line = "   ".join(text + " " * (widths[i] - _width(text)) for i, text in enumerate(row))
        click.echo(line.rstrip())


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "<none>" if value is None else ""
    return str(value)


def _width(text: str) -> int:
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def progress(text: str) -> None:
    """Say on a terminal what is going on; silent where nobody watches."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{text}", nl=False, err=True)


def end_progress() -> None:
    """Clear the line that ``progress`` wrote."""
    if sys.stderr.isatty():
        click.echo("\r\033[K", nl=False, err=True)


def explain_failure(error: BaseException) -> str | None:
    """One paragraph for a failure that a user can meet; None for a fault of ours."""
    from kubedra.api.errors import ApiError
    from kubedra.base.features import FeatureError
    from kubedra.base.yaml import YamlError
    from kubedra.client.kubeconfig import KubeconfigError

    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            text = explain_failure(inner)
            if text is not None:
                return text
        return None
    if isinstance(error, ApiError):
        return error.message if error.code != 401 else f"{error.message}: the server does not know this user"
    if isinstance(error, KubeconfigError | YamlError | FeatureError | Refusal):
        return str(error)
    from kubedra.drivers.simulated.fleet import FleetError

    if isinstance(error, FleetError):
        return str(error)
    import msgspec

    if isinstance(error, msgspec.ValidationError):
        return f"an object can't be read: {error}"
    if isinstance(error, RecursionError):
        return "what was given is nested too deeply to be read"
    from kubedra.node.claims.checkpoint import CheckpointError
    from kubedra.node.node_lock import NodeTaken
    from kubedra.node.runtime.contract import StartError

    if isinstance(error, CheckpointError | NodeTaken | StartError):
        return str(error)
    if isinstance(error, ConnectionError):
        return f"the API server can't be reached: {error}"
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        if error.errno == errno.ENOSPC:
            what = "the disk is full; free some space and try again"
        # Of a rename the second name is the one that people know.
        name = error.filename2 or error.filename
        return f"{name}: {what}" if name else what
    return None


class Refusal(Exception):
    """What a command can't do, in a sentence that says what to do next; exit code 1."""
