"""``kubedra version``."""

from __future__ import annotations

import platform
from typing import Any

import click

from kubedra import __version__
from kubedra.cli.connect import Target, cluster_options, with_client
from kubedra.cli.output import JSON_OUTPUT, Refusal, print_json

KUBERNETES = "1.37"


@click.command()
@click.option("--client", "client_only", is_flag=True, help="Do not ask a cluster.")
@JSON_OUTPUT
@cluster_options
def version(client_only: bool, output: str, target: Target) -> None:
    """Print the versions of kubedra, of the API that it speaks, and of the cluster."""
    found: dict[str, Any] = {
        "kubedra": __version__,
        "kubernetes": KUBERNETES,
        "python": platform.python_version(),
    }
    if not client_only:
        try:
            found["server"] = with_client(target, _ask)
        except (Refusal, ConnectionError):
            found["server"] = None
    if output == "json":
        print_json(found)
        return
    click.echo(f"kubedra {__version__} (Kubernetes {KUBERNETES}, Python {found['python']})")
    if found.get("server"):
        click.echo(f"server  {found['server']}")


async def _ask(client: Any, connection: Any) -> str | None:
    import msgspec

    answer = await client.request("GET", "/version")
    if answer.status != 200:
        return None
    text: str = msgspec.json.decode(answer.body).get("gitVersion", "")
    return text
