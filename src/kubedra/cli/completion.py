"""``kubedra completion bash|zsh|fish``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell; for bash: source <(kubedra completion bash)."""
    from kubedra.cli.main import main

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"There is no completion for {shell}")
    click.echo(found(main, {}, "kubedra", "_KUBEDRA_COMPLETE").source())
