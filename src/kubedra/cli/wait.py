"""``kubedra wait``: until objects are in a state."""

from __future__ import annotations

import re
from typing import Any

import click
import msgspec

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.cli.connect import Target, cluster_options, with_client
from kubedra.cli.output import end_progress, progress
from kubedra.cli.resources import parse_arguments
from kubedra.client.requests import error_from

WEEK = 7 * 24 * 3600.0
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = r"(\d+(?:\.\d+)?)(ms|h|m|s)"


class Duration(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Seconds, as a number or as kubectl takes them: 90, 90s, 1m30s, 500ms; less than nothing is a week, as there."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds. Fails as wrong usage."""
        text = str(value).strip()
        sign, amount = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
        if re.fullmatch(r"\d+(\.\d*)?|\.\d+", amount, re.ASCII):
            seconds = float(amount)
        elif re.fullmatch(rf"({_PART})+", amount, re.ASCII):
            seconds = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, amount, re.ASCII))
        else:
            self.fail(f"{text!r} is not a duration: give seconds, or something like 1m30s", param, ctx)
        return WEEK if sign * seconds < 0 else min(seconds, WEEK)


@click.command()
@click.argument("resources", nargs=-1, required=True)
@click.option(
    "--for",
    "condition",
    required=True,
    metavar="WHAT",
    help="delete, create, condition=TYPE[=VALUE], phase=PHASE, allocated, or .path.to.field[=VALUE].",
)
@click.option("-l", "--selector", default="", help="Label selector, instead of names.")
@click.option(
    "--timeout", default="30s", type=Duration(), help="How long to wait, as 30, 30s or 1m30s (exit code 1 after that)."
)
@cluster_options
def wait(resources: tuple[str, ...], condition: str, selector: str, timeout: float, target: Target) -> None:
    """Wait until objects are in a state: TYPE NAME …, TYPE/NAME …, or TYPE -l SELECTOR."""
    wanted = parse_arguments(resources)

    async def work(client: Any, connection: Any) -> None:
        import asyncio

        for kind, name in wanted:
            namespace = connection.namespace if kind.namespaced else ""
            names = [name] if name else await _names(client, kind, namespace, selector)
            if not names:
                raise ApiError(404, "NotFound", f"no {kind.plural} match")
            for each in names:
                progress(f"waiting for {kind.singular}/{each}: {condition}")
                try:
                    async with asyncio.timeout(timeout):
                        while not await _holds(client, kind, namespace, each, condition):
                            await asyncio.sleep(0.05)
                except TimeoutError:
                    end_progress()
                    text = f"{kind.singular}/{each} is not {condition!r} after {timeout:g} s"
                    raise ApiError(504, "Timeout", text) from None
                end_progress()
                click.echo(f"{kind.singular}/{each} {condition}")

    with_client(target, work)


async def _names(client: Any, kind: kinds.Kind[Any], namespace: str, selector: str) -> list[str]:
    found = await client.list(kind, namespace, label_selector=selector)
    return [o["metadata"]["name"] if isinstance(o, dict) else o.metadata.name for o in found.items]


async def _holds(client: Any, kind: kinds.Kind[Any], namespace: str, name: str, condition: str) -> bool:
    answer = await client.request("GET", kind.path(namespace, name))
    if answer.status == 404 and condition in ("delete", "create"):
        return condition == "delete"
    if answer.status >= 300:
        raise error_from(answer.status, answer.body)
    return holds(msgspec.json.decode(answer.body), condition)


def holds(tree: dict[str, Any], condition: str) -> bool:
    """Whether an object (that exists) is in a state. UsageError for a state that there isn't."""
    status = tree.get("status") or {}
    what, _, value = condition.partition("=")
    if what in ("delete", "create"):
        return what == "create"
    if what == "allocated":
        return status.get("allocation") is not None
    if what == "phase":
        return bool(status.get("phase") == value)
    if what == "condition":
        kind, _, wanted = value.partition("=")
        conditions: list[dict[str, Any]] = status.get("conditions") or []
        found = next((c for c in conditions if c.get("type", "").lower() == kind.lower()), {})
        return bool(found.get("status", "").lower() == (wanted or "True").lower())
    if what.startswith(".") or what == "jsonpath":
        path, _, wanted = (condition if what.startswith(".") else value.strip("{}'\"").replace("}", "")).partition("=")
        return _field_is(tree, path, wanted)
    raise click.UsageError(f"{condition!r} is not a state that can be waited for (see --help)")


def _field_is(tree: Any, path: str, wanted: str) -> bool:
    node = tree
    for part in filter(None, path.split(".")):
        node = node.get(part) if isinstance(node, dict) else None
    if not wanted:
        return node not in (None, "", [], {})
    return (str(node).lower() if isinstance(node, bool) else str(node)) == wanted
