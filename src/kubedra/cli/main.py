"""The ``kubedra`` command. Commands are loaded when they are called, so that each starts fast.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the answer is "no" (it does not fit, it is not so).
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

# command -> (module:attribute, one line of help); the order is the order of the help page
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("kubedra.cli.up:up", "Start a whole cluster on this machine."),
    "down": ("kubedra.cli.up:down", "Stop the cluster of a data folder."),
    "status": ("kubedra.cli.up:status", "Say whether a cluster runs, where, and how to reach it."),
    "demo": ("kubedra.cli.demo:demo", "Watch a DRA cluster work, step by step."),
    "get": ("kubedra.cli.get:get", "List objects, or show one."),
    "describe": ("kubedra.cli.describe:describe", "Show an object and all that it is related to."),
    "apply": ("kubedra.cli.apply:apply", "Create or change objects from files."),
    "delete": ("kubedra.cli.delete:delete", "Delete objects."),
    "logs": ("kubedra.cli.logs:logs", "Print the log of a pod or of a node's driver."),
    "wait": ("kubedra.cli.wait:wait", "Wait until objects are in a state."),
    "why": ("kubedra.cli.why:why", "Say why a pod or claim waits, and what would help."),
    "allocate": ("kubedra.cli.allocate:allocate", "Say which devices claims would get."),
    "check": ("kubedra.cli.check:check", "Check allocations against what the API says."),
    "cel": ("kubedra.cli.cel:cel", "Check and evaluate device selectors."),
    "server": ("kubedra.cli.parts:server", "Run the API server alone."),
    "scheduler": ("kubedra.cli.parts:scheduler", "Run the scheduler alone."),
    "controllers": ("kubedra.cli.parts:controllers", "Run the controllers alone."),
    "agent": ("kubedra.cli.parts:agent", "Run a node agent alone."),
    "driver": ("kubedra.cli.parts:driver", "Run a driver alone."),
    "completion": ("kubedra.cli.completion:completion", "Print the completion script of a shell."),
    "version": ("kubedra.cli.version:version", "Print versions."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when one of them is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help without importing every command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest name for one that does not exist."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from kubedra.cli.output import nearest

            raise click.UsageError(f"There is no command {args[0]!r}{nearest(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("-v", "--verbose", count=True, help="Say what happens; twice for more.")
def main(verbose: int) -> None:
    """Kubernetes Dynamic Resource Allocation: say which device you need, get it, and be told why when you can't."""
    import logging

    level = [logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)]
    logging.basicConfig(level=level, format="%(asctime)s %(levelname).1s %(name)s: %(message)s", stream=sys.stderr)


def run() -> None:
    """Entry point: every failure becomes one paragraph."""
    try:
        result: Any = main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (head, less): no failure worth a word.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        from kubedra.cli.output import explain_failure

        text = explain_failure(error)
        if text is None:
            raise
        print(f"kubedra: {text}", file=sys.stderr)
        sys.exit(1)
    sys.exit(result if isinstance(result, int) else 0)


if __name__ == "__main__":
    run()
