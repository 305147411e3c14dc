"""``kubedra check``: is what stands in the API right? Exit code 3 when something is wrong."""

from __future__ import annotations

import click

from kubedra.base.features import VERSIONS
from kubedra.cli.connect import Target, cluster_options
from kubedra.cli.output import JSON_OUTPUT, print_json


@click.group()
def check() -> None:
    """Check what the API says about devices."""


@check.command()
@click.option("--dump", metavar="FILE", help="Objects of a cluster from a file (- for standard input).")
@click.option("--kubernetes-version", type=click.Choice(VERSIONS), default=None, help="Judge as this version.")
@click.option("--feature-gates", default="", metavar="A=true,B=false", help="Gates that differ from their default.")
@JSON_OUTPUT
@cluster_options
def allocations(
    dump: str | None, kubernetes_version: str | None, feature_gates: str, output: str, target: Target
) -> int:
    """Prove that nothing is handed out twice and that every allocation satisfies its claim."""
    from kubedra.allocation.features import Features
    from kubedra.audit import check_allocations
    from kubedra.cli.sources import Source

    objects = Source(target, dump, None, kubernetes_version, feature_gates).read()
    for unseen in objects.unseen:
        click.echo(f"not seen: {unseen.plural} ({unseen.why}); what depends on them is not checked", err=True)
    features = Features.of(objects.gates)
    found = check_allocations(
        features,
        nodes=objects.nodes,
        classes=objects.classes,
        slices=objects.slices,
        rules=objects.rules,
        claims=objects.claims,
    )
    allocated = sum(1 for claim in objects.claims if claim.status.allocation is not None)
    if output == "json":
        problems = [{"code": v.code, "subject": v.subject, "detail": v.detail} for v in found]
        print_json({"allocations": allocated, "violations": problems})
    else:
        for violation in found:
            click.echo(str(violation))
        verdict = f"{len(found)} problems" if found else "all right"
        click.echo(f"{allocated} allocations checked: {verdict}")
    return 3 if found else 0
