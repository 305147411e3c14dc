"""``kubedra cel``: check a device selector before a scheduler meets it, and evaluate recorded cases."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

import click

from kubedra.cli.connect import cluster_options
from kubedra.cli.output import JSON_OUTPUT, Refusal, print_json
from kubedra.cli.reading import Reading, reading_options

if TYPE_CHECKING:
    from kubedra.api.resource_v1 import ResourceSlice
    from kubedra.cel.judging import Group
    from kubedra.cel.lint import Examination

VERSIONS = click.Choice(["1.34", "1.35", "1.36", "1.37"])
_MAX_GROUPS = 10


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cel() -> None:
    """Check and evaluate device selectors."""


@cel.command("eval")
@click.option("--jsonl", is_flag=True, required=True, help="One case a line in, one answer a line out.")
@click.option("--kubernetes-version", type=VERSIONS, default="1.37", help="Whose rules apply.", show_default=True)
@click.argument("file", type=click.File("r", encoding="utf-8", errors="replace"), default="-")
def evaluate(jsonl: bool, kubernetes_version: str, file: TextIO) -> None:
    """Evaluate cases: JSON objects with id, expr, device and features, one a line, from FILE or standard input.

    Each is answered, in order, with one line: id, result (true, false, compile-error or runtime-error), message,
    estimatedCost, actualCost, admission.
    """
    from kubedra.cel.answering import answer_case

    for line in file:
        if not line.strip():
            continue
        try:
            case: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            answer: dict[str, Any] = {"id": None, "result": "invalid-case", "message": f"not JSON: {error}"}
        else:
            answer = answer_case(case, kubernetes_version)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


@cel.command()
@click.argument("expression", required=False)
@click.option("-f", "--filename", type=click.File("r", encoding="utf-8"), help="Read the expression from a file.")
@click.option("--offline", is_flag=True, help="Look at the expression alone, at no devices.")
@click.option("--kubernetes-version", type=VERSIONS, default="1.37", help="Whose rules apply.", show_default=True)
@click.option("--feature-gates", default="", metavar="A=true,B=false", help="Gates that differ from the defaults.")
@JSON_OUTPUT
@cluster_options
@reading_options
def check(
    expression: str | None,
    filename: TextIO | None,
    offline: bool,
    kubernetes_version: str,
    feature_gates: str,
    output: str,
    reading: Reading,
) -> None:
    """Check a device selector: does it compile, what may it cost, which devices match, what is odd about it.

    The devices are those of the cluster, of a dump or of a fleet. Exit code 0: it is fine; 1: it does not compile,
    would be refused or fails on a device; 3: no device matches.
    """
    text = filename.read().strip() if filename is not None else expression
    if not text:
        raise click.UsageError("give an expression, or a file with -f")

    def load() -> list[ResourceSlice]:
        if offline:
            return []
        return _slices(reading)

    run_check(text, load, version=kubernetes_version, gates=feature_gates, output=output)


def run_check(
    expression: str, load: Callable[[], list[ResourceSlice]], *, version: str, gates: str, output: str
) -> None:
    """Examine an expression against the slices that ``load`` gives, print it, exit."""
    from kubedra.base.features import FeatureGates
    from kubedra.cel.answering import lists_supported
    from kubedra.cel.fleet import Fleet, devices_of
    from kubedra.cel.lint import examine

    features = FeatureGates.parse(gates, version)
    fleet = Fleet(devices_of(load(), lists_supported=lists_supported(features)))
    result = examine(expression, fleet, features=features, version=version)
    if output == "json":
        print_json(result.tree())
    else:
        click.echo("\n".join(_lines(result)))
    failed = result.error or result.admission or (result.verdict is not None and result.verdict.failed)
    if failed:
        raise click.exceptions.Exit(1)
    if len(fleet) and not result.matches:
        raise click.exceptions.Exit(3)


def _slices(reading: Reading) -> list[ResourceSlice]:
    from kubedra.api import kinds

    async def work(client: Any, connection: Any) -> list[ResourceSlice]:
        return list((await client.list(kinds.RESOURCE_SLICE)).items)

    found = reading.run(work)
    if not found and reading.dump is not None:
        raise Refusal(
            f"{reading.dump}: there is no ResourceSlice in it; make a dump with: kubectl get resourceslices -o json"
        )
    return found


def _lines(result: Examination) -> list[str]:
    lines: list[str] = []
    if result.error:
        lines += ["It does not compile:", *_indented(result.error)]
    else:
        lines.append(f"It compiles: type {result.output_type}, costs at most {_cost(result.estimated_cost)}.")
    for kind, detail in result.admission:
        if kind != "invalid":
            lines.append(f"Admission would refuse it: {detail}.")
    verdict = result.verdict
    if verdict is not None and result.devices:
        lines.append(f"{result.matches} of {result.devices} devices match.")
        lines += _group_lines("does not match", "do not match", verdict.unmatched)
        lines += _group_lines("fails", "fail", verdict.failed)
    elif not result.devices:
        lines.append("No devices to try it on.")
    if result.findings:
        lines.append("Look at:")
        for finding in result.findings:
            place = f"{finding.line}:{finding.column} " if finding.line else ""
            lines.append(f"  {place}{finding.message} [{finding.code}]")
    if result.repaired:
        tail = f" ({result.repaired_matches} devices match)" if result.devices else ""
        lines += [f"Repaired{tail}:", *_indented(result.repaired)]
    return lines


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _cost(cost: int | None) -> str:
    return f"{cost:,} of 1,000,000" if cost is not None and cost < 10**15 else "an unbounded amount"


def _group_lines(one: str, many: str, groups: list[Group]) -> list[str]:
    lines: list[str] = []
    for group in groups[:_MAX_GROUPS]:
        verb = one if group.count == 1 else many
        lines.append(f"  {group.count} {verb}: {group.part}" if group.part else f"  {group.count} {verb}")
        if group.message:
            lines.append(f"      {group.message}")
        lines += [f"      {reading}" for reading in group.seen]
        lines.append(f"      e.g. {', '.join(group.examples)}")
    if len(groups) > _MAX_GROUPS:
        rest = sum(group.count for group in groups[_MAX_GROUPS:])
        lines.append(f"  … and {rest} more in {len(groups) - _MAX_GROUPS} groups (-o json shows all)")
    return lines


if __name__ == "__main__":
    cel()
