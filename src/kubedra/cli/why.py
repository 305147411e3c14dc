"""``kubedra why``: why a pod or a claim waits, and what would help."""

from __future__ import annotations

import gc
import time

import click

from kubedra.cli.output import JSON_OUTPUT, Refusal, print_json
from kubedra.cli.sources import DUMP_COMMAND, Source, source_options

_PODS = ("pod", "pods", "po")
_CLAIMS = ("claim", "claims", "resourceclaim", "resourceclaims", "resourceclaim.resource.k8s.io")


@click.command(epilog=f"\b\nA dump is made with:\n{DUMP_COMMAND}")
@click.argument("what", metavar="pod/NAME|claim/NAME", nargs=-1, required=True)
@click.option(
    "--remedy-seconds", type=click.FloatRange(0), default=1.0, show_default=True, help="Time to look for remedies."
)
@JSON_OUTPUT
@source_options
def why(what: tuple[str, ...], remedy_seconds: float, output: str, source: Source) -> int:
    """Say why a pod or claim waits, step by step, and what would help. Only reads.

    The exit code is 3 when it can't get what it wants.
    """
    kind, name = _parse(what)
    # Thousands of objects are read once and looked at once: collecting garbage among them only costs time.
    gc.disable()
    from kubedra.insight.why import NoSuchObject, why_claim, why_pod
    from kubedra.insight.why_text import render

    namespace = source.namespace()
    snapshot = source.read(namespace, name if kind == "pod" else "")
    try:
        ask = why_pod if kind == "pod" else why_claim
        answer = ask(snapshot, namespace, name, time.monotonic, remedy_seconds)
    except NoSuchObject as error:
        raise Refusal(str(error)) from None
    if output == "json":
        print_json(answer.to_tree())
    else:
        click.echo("\n".join(render(answer)))
    return answer.exit_code


def _parse(what: tuple[str, ...]) -> tuple[str, str]:
    text = "/".join(what)
    word, slash, name = text.partition("/")
    if not slash:
        word, name = "pod", text
    if word.lower() in _PODS and name and "/" not in name:
        return "pod", name
    if word.lower() in _CLAIMS and name and "/" not in name:
        return "claim", name
    raise click.UsageError(f"Ask for pod/NAME or claim/NAME, not for {' '.join(what)!r}")
