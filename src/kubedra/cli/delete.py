"""``kubedra delete``."""

from __future__ import annotations

from typing import Any

import click

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.cli.apply import read_documents, resolve
from kubedra.cli.connect import Target, cluster_options, say_where, with_client
from kubedra.cli.output import JSON_OUTPUT, print_json
from kubedra.cli.resources import parse_arguments


@click.command()
@click.argument("resources", nargs=-1)
@click.option("-f", "--filename", "filenames", multiple=True, help="Delete the objects of a file or folder.")
@click.option("--ignore-not-found", is_flag=True, help="An object that is not there is no failure.")
@click.option("--grace-period", type=int, default=None, metavar="SECONDS", help="Time that pods get to end.")
@click.option("--wait/--no-wait", default=True, help="Wait until the objects are gone.")
@click.option("--timeout", default=60.0, metavar="SECONDS", help="How long to wait.")
@JSON_OUTPUT
@cluster_options
def delete(
    resources: tuple[str, ...],
    filenames: tuple[str, ...],
    ignore_not_found: bool,
    grace_period: int | None,
    wait: bool,
    timeout: float,
    output: str,
    target: Target,
) -> None:
    """Delete objects: TYPE NAME …, TYPE/NAME …, or -f FILE."""
    named: list[tuple[kinds.Kind[Any], str, str]] = []
    for document in read_documents(filenames) if filenames else ():
        meta = document.value["metadata"]
        named.append((resolve(document), meta["name"], str(meta.get("namespace") or "")))
    if resources:
        for kind, name in parse_arguments(resources):
            if not name:
                raise click.UsageError(f"Name the {kind.plural} to delete; to delete by file use -f")
            named.append((kind, name, ""))
    if not named:
        raise click.UsageError("Name objects, or a file with -f")

    async def work(client: Any, connection: Any) -> None:
        import asyncio

        say_where(connection)
        gone = []
        waiting = []
        for kind, name, own_namespace in reversed(named) if filenames else named:
            namespace = (own_namespace or connection.namespace) if kind.namespaced else ""
            try:
                await client.delete(kind, name, namespace, grace_period_seconds=grace_period)
            except ApiError as error:
                if error.reason == "NotFound" and ignore_not_found:
                    continue
                raise
            waiting.append((kind, name, namespace))
            gone.append({"kind": kind.kind, "namespace": namespace, "name": name, "result": "deleted"})
            if output == "text":
                click.echo(f"{kind.singular}/{name} deleted")
        if output == "json":
            print_json(gone)
        for kind, name, namespace in waiting if wait else ():
            async with asyncio.timeout(timeout):
                while await _exists(client, kind, name, namespace):
                    await asyncio.sleep(0.1)

    with_client(target, work)


async def _exists(client: Any, kind: kinds.Kind[Any], name: str, namespace: str) -> bool:
    try:
        await client.get(kind, name, namespace)
    except ApiError as error:
        if error.reason == "NotFound":
            return False
        raise
    return True
