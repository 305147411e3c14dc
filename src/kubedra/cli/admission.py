"""The --admission option of the commands that start an API server."""

from __future__ import annotations

import click


def _plugins(context: click.Context, parameter: click.Parameter, value: str) -> frozenset[str]:
    chosen = frozenset(filter(None, (word.strip() for word in value.split(","))))
    if chosen:
        from kubedra.server.admission import plugins

        try:
            plugins(chosen)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from error
    return chosen


ADMISSION = click.option(
    "--admission",
    default="",
    metavar="PLUGIN,…",
    callback=_plugins,
    help="Admission plugins that are off by default: NodeRestriction, ServiceAccount.",
)
