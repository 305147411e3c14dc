"""``kubedra logs``: the log of a pod, or of the driver that serves a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kubedra.cli.connect import Target, cluster_options, default_data_folder, run_async, with_client
from kubedra.cli.output import Refusal, nearest
from kubedra.client.protocol import Client
from kubedra.client.requests import error_from


@click.command()
@click.argument("what")
@click.option("-c", "--container", default="", help="Container (default: the first).")
@click.option("-f", "--follow", is_flag=True, help="Go on printing what comes.")
@click.option("-p", "--previous", is_flag=True, help="Of the container before its last restart.")
@click.option("--tail", type=int, default=None, metavar="LINES", help="Only the last lines.")
@click.option("--since", type=int, default=None, metavar="SECONDS", help="Only what is newer.")
@click.option("--timestamps", is_flag=True, help="With the time of each line.")
@click.option("--data", type=click.Path(path_type=Path), default=None, help="Data folder, for driver/NODE.")
@cluster_options
def logs(
    what: str,
    container: str,
    follow: bool,
    previous: bool,
    tail: int | None,
    since: int | None,
    timestamps: bool,
    data: Path | None,
    target: Target,
) -> None:
    """Print the log of a pod (NAME or pod/NAME), or of the driver of a node (driver/NODE)."""
    kind, slash, name = what.partition("/")
    if slash and kind == "driver":
        run_async(_driver_log(data or default_data_folder(), name, follow, tail))
        return
    if slash and kind not in ("pod", "pods", "po"):
        raise click.UsageError(f"Logs are of pod/NAME or driver/NODE, not of {what!r}")
    query: dict[str, str] = {}
    for key, value in (
        ("container", container),
        ("follow", "true" if follow else ""),
        ("previous", "true" if previous else ""),
        ("tailLines", "" if tail is None else str(tail)),
        ("sinceSeconds", "" if since is None else str(since)),
        ("timestamps", "true" if timestamps else ""),
    ):
        if value:
            query[key] = value

    async def work(client: Any, connection: Any) -> None:
        path = f"/api/v1/namespaces/{connection.namespace}/pods/{name or kind}/log"
        if follow:
            async for line in client.stream(path, query):
                click.echo(line)
            return
        await _print(client, path, query)

    with_client(target, work)


async def _print(client: Client, path: str, query: dict[str, str]) -> None:
    answer = await client.request("GET", path, query=query)
    if answer.status >= 300:
        raise error_from(answer.status, answer.body)
    click.echo(answer.body, nl=False)


async def _driver_log(data: Path, node: str, follow: bool, tail: int | None) -> None:
    import asyncio

    found = sorted((data / "logs").glob("driver*.log"))
    if not found:
        raise Refusal(f"{data}: no driver has written a log there; name the data folder of the cluster with --data")
    path = found[0]
    needle = f"{node}:"
    lines = [line for line in path.read_text(errors="replace").splitlines() if needle in line or f" {node} " in line]
    if not lines and not follow and not (data / "nodes" / node).is_dir():
        known = [folder.name for folder in (data / "nodes").glob("*")]
        raise Refusal(f"{path} says nothing of a node {node}{nearest(node, known)}")
    for line in lines[-tail:] if tail else lines:
        click.echo(line)
    if follow:
        with path.open(errors="replace") as handle:
            handle.seek(0, 2)
            while True:
                line = handle.readline()
                if not line:
                    await asyncio.sleep(0.2)
                elif needle in line or f" {node} " in line:
                    click.echo(line, nl=False)
