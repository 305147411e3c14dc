"""``kubedra allocate``: which devices claims would get, without a scheduler.

``--jsonl`` answers scenarios, one a line; ``-f`` answers for the pods and claims of a file against a live cluster, a
dump, or a fleet file. What one pod gets is taken for the next.
"""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from kubedra.base.features import VERSIONS, FeatureGates
from kubedra.cli.connect import Target, cluster_options
from kubedra.cli.output import JSON_OUTPUT, Refusal, print_json


@click.command()
@click.option("--jsonl", is_flag=True, help="Read scenarios from standard input, one a line, and answer each.")
@click.option("-f", "--filename", "files", multiple=True, metavar="FILE", help="Pods and claims to allocate for.")
@click.option("--dump", metavar="FILE", help="Objects of a cluster from a file (- for standard input).")
@click.option("--fleet", metavar="FILE", help="A simulated fleet instead of a cluster.")
@click.option(
    "--kubernetes-version",
    type=click.Choice(VERSIONS),
    default=None,
    help="Gates, CEL library and allocator of this version (default: the cluster's own, else 1.37).",
)
@click.option("--feature-gates", default="", metavar="A=true,B=false", help="Gates that differ from their default.")
@JSON_OUTPUT
@cluster_options
def allocate(
    jsonl: bool,
    files: tuple[str, ...],
    dump: str | None,
    fleet: str | None,
    kubernetes_version: str | None,
    feature_gates: str,
    output: str,
    target: Target,
) -> int:
    """Say which node and devices pods and claims would get, or why not (exit code 3).

    Where the search is cut off, the answer is "not known" (exit code 1).
    """
    if jsonl:
        return _scenarios(kubernetes_version or "1.37")
    if not files:
        raise click.UsageError("give scenarios with --jsonl, or pods and claims with -f FILE")
    from kubedra.cli.admitting import Admission
    from kubedra.cli.allocating import World, answer, as_tree, print_answers, upgrade_changes
    from kubedra.cli.placing import workload_pods
    from kubedra.cli.sources import Gathering, Source

    FeatureGates.parse(feature_gates)
    source = Source(target, dump, fleet, kubernetes_version, feature_gates)
    namespace = source.namespace()
    cluster = source.read(namespace)
    gates = cluster.gates
    wanted = Gathering()
    labels = {found.metadata.name: found.metadata.labels for found in cluster.namespaces}
    admission = Admission(gates, labels.get)
    made: list[dict[str, Any]] = []
    newest = Admission(FeatureGates(VERSIONS[-1], gates.overrides), labels.get)

    def judge(tree: dict[str, Any], namespace: str) -> None:
        admission.judge(tree, namespace)
        newest.judge(tree, namespace)
        made.extend(workload_pods(tree))

    wanted.add_files(files, namespace, judge)
    for tree in made:
        wanted.add_tree(tree, "a workload's pod", namespace)
    if not wanted.objects["pods"] and not wanted.objects["claims"]:
        raise Refusal(
            f"{', '.join(files)}: there is no Pod, ResourceClaim, Deployment, ReplicaSet, StatefulSet or Job in it"
        )
    for found in wanted.objects["classes"]:
        fault = admission.fault("DeviceClass", namespace, found.metadata.name)
        if fault:
            raise Refusal(fault)
    world = World.of(cluster, wanted)
    answers = answer(world, gates, admission.fault)
    changes = upgrade_changes(answers, world, gates, newest.fault)
    if output == "json":
        print_json(as_tree(answers, gates, changes))
    else:
        print_answers(answers, gates, changes)
    if any(not item.fits and not item.unknown for item in answers):
        return 3
    return 0 if all(item.fits for item in answers) else 1


def _scenarios(version: str) -> int:
    """Answer each line at once; a line that can't be read gets an error as its answer."""
    from kubedra.allocation.engine import cel_engine
    from kubedra.allocation.scenario import ScenarioError, read, run

    for number, line in enumerate(sys.stdin.buffer, 1):
        if not line.strip():
            continue
        name = ""
        try:
            scenario = read(line)
            name = str(scenario.get("name", ""))
            result = run(scenario, version, cel_engine)
        except ScenarioError as error:
            result = {"name": name, "results": [], "error": f"line {number}: {error}"}
        except Exception as error:  # One line must never end the answers to the others.
            result = {"name": name, "results": [], "error": f"line {number}: internal error: {error!r}"}
        sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
        sys.stdout.buffer.flush()
    return 0
