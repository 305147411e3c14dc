"""Words for kinds on the command line: plural, singular, short name, ``kind.group``, ``type/name``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from kubedra.api import kinds
from kubedra.cli.output import nearest

# Where a word is served in several versions, this one is meant.
_PREFERRED = {("resource.k8s.io", "v1"): 0, ("", "v1"): 0, ("events.k8s.io", "v1"): 2}


def _rank(kind: kinds.Kind[Any]) -> tuple[int, int, str]:
    stable = 0 if "alpha" not in kind.version and "beta" not in kind.version else 1 if "beta" in kind.version else 2
    return (_PREFERRED.get((kind.group, kind.version), 1), stable, kind.version)


def find_kind(word: str) -> kinds.Kind[Any]:
    """The kind that a word names; UsageError with the nearest word otherwise."""
    text = word.lower()
    head, _, group = text.partition(".")
    version = ""
    if group and (parts := group.split(".", 1)) and parts[0].startswith("v") and parts[0][1:2].isdigit():
        version, group = parts[0], parts[1] if len(parts) > 1 else ""
    found = [
        k
        for k in kinds.ALL
        if head in (k.plural, k.singular, *k.short_names)
        and (not group or k.group == group)
        and (not version or k.version == version)
        and ("list" in k.verbs or "get" in k.verbs)
    ]
    if not found:
        words = {w for k in kinds.ALL if "list" in k.verbs for w in (k.plural, k.singular, *k.short_names)}
        raise click.UsageError(f"The server has no resource type {word!r}{nearest(head, words)}")
    return min(found, key=_rank)


def parse_arguments(arguments: Sequence[str]) -> list[tuple[kinds.Kind[Any], str]]:
    """``TYPE``, ``TYPE NAME …``, ``TYPE/NAME …`` and ``TYPE,TYPE``: kinds with a name, or "" for all of a kind."""
    if not arguments:
        raise click.UsageError("Name a resource type, for example: pods, resourceclaims, pod/NAME")
    if "/" in arguments[0]:
        out = []
        for argument in arguments:
            word, slash, name = argument.partition("/")
            if not slash or not name:
                raise click.UsageError(f"{argument!r} is not of the form TYPE/NAME")
            out.append((find_kind(word), name))
        return out
    found: list[kinds.Kind[Any]] = []
    for word in arguments[0].split(","):
        if word == "all":
            found += [k for k in kinds.ALL if "all" in k.categories]
        else:
            found.append(find_kind(word))
    names = arguments[1:]
    if not names:
        return [(kind, "") for kind in found]
    return [(kind, name) for kind in found for name in names]
