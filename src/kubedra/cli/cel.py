"""``kubedra cel``: check a device selector before a scheduler meets it, and evaluate recorded cases."""

from __future__ import annotations

import json
import sys
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
NEWEST = "1.37"
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
@click.option(
    "--kubernetes-version",
    type=VERSIONS,
    default=None,
    help="Whose rules apply (default: the cluster's own, else 1.37).",
)
@click.option("--feature-gates", default="", metavar="A=true,B=false", help="Gates that differ from the defaults.")
@JSON_OUTPUT
@cluster_options
@reading_options
def check(
    expression: str | None,
    filename: TextIO | None,
    offline: bool,
    kubernetes_version: str | None,
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

    slices, version = ([], "") if offline else _slices(reading)
    run_check(text, slices, version=kubernetes_version or version or NEWEST, gates=feature_gates, output=output)


def run_check(expression: str, slices: list[ResourceSlice], *, version: str, gates: str, output: str) -> None:
    """Examine an expression against slices, print it, exit."""
    from kubedra.base.features import FeatureGates
    from kubedra.cel.answering import lists_supported
    from kubedra.cel.fleet import Fleet, devices_of
    from kubedra.cel.lint import examine

    def examined(version: str) -> Examination:
        features = FeatureGates.parse(gates, version)
        fleet = Fleet(devices_of(slices, lists_supported=lists_supported(features)))
        return examine(expression, fleet, features=features, version=version)

    result = examined(version)
    changes = [] if version == NEWEST else _changes(result, examined(NEWEST))
    if output == "json":
        print_json({**result.tree(), "kubernetesVersion": version, "upgradeWouldChange": changes})
    else:
        lines = _lines(result)
        if version != NEWEST:
            lines += [f"Checked as Kubernetes {version}.", *changes]
        click.echo("\n".join(lines))
    failed = result.error or result.admission or (result.verdict is not None and result.verdict.failed)
    if failed:
        raise click.exceptions.Exit(1)
    if result.devices and not result.matches:
        raise click.exceptions.Exit(3)


def _slices(reading: Reading) -> tuple[list[ResourceSlice], str]:
    """The slices of the source; of a live cluster also its version."""
    from kubedra.api import kinds
    from kubedra.cli.live import server_version
    from kubedra.cli.sources import gathered

    if reading.dump is not None:
        found: list[ResourceSlice] = gathered(str(reading.dump))[0].objects["slices"]
        if not found:
            raise Refusal(
                f"{reading.dump}: there is no ResourceSlice in it; make a dump with: kubectl get resourceslices -o json"
            )
        return found, ""

    async def work(client: Any, connection: Any) -> tuple[list[ResourceSlice], str]:
        version = "" if reading.fleet is not None else (await server_version(client))[0]
        return list((await client.list(kinds.RESOURCE_SLICE)).items), version

    return reading.run(work)


def _changes(now: Examination, then: Examination) -> list[str]:
    """What the newest version would say otherwise."""
    start = f"With Kubernetes {NEWEST} it would"
    changes = []
    if bool(now.error) != bool(then.error):
        changes.append(f"{start} not compile." if then.error else f"{start} compile.")
    if bool(now.admission) != bool(then.admission) and not changes:
        detail = (
            f" be refused at admission: {then.admission[0][1]}." if then.admission else " be accepted at admission."
        )
        changes.append(start + detail)
    if now.devices and not then.error and now.matches != then.matches:
        changes.append(f"{start} match {then.matches} devices instead of {now.matches}.")
    fails = [sum(group.count for group in r.verdict.failed) if r.verdict is not None else 0 for r in (now, then)]
    if not now.error and not then.error and fails[0] != fails[1]:
        changes.append(f"{start} fail on {fails[1]} devices instead of {fails[0]}.")
    return changes


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
