"""``kubedra describe``: an object, and for pods, claims, slices and classes the whole relation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import msgspec

from kubedra.api import codec, kinds
from kubedra.api.errors import ApiError
from kubedra.cli.connect import cluster_options
from kubedra.cli.output import JSON_OUTPUT, print_json, print_yaml
from kubedra.cli.reading import Reading, reading_options
from kubedra.cli.resources import parse_arguments
from kubedra.client.requests import error_from
from kubedra.insight import relations
from kubedra.insight.relations import Cluster, Section

_RELATIONS: dict[str, Callable[[Any, Cluster], Section]] = {
    "Pod": relations.describe_pod,
    "ResourceClaim": relations.describe_claim,
    "ResourceSlice": relations.describe_slice,
    "DeviceClass": relations.describe_class,
}


@click.command()
@click.argument("resources", nargs=-1, required=True)
@JSON_OUTPUT
@cluster_options
@reading_options
def describe(resources: tuple[str, ...], output: str, reading: Reading) -> None:
    """Show an object and all that it is related to: TYPE NAME …, TYPE/NAME …, or TYPE for all."""
    wanted = parse_arguments(resources)

    async def work(client: Any, connection: Any) -> None:
        shown = []
        for kind, name in wanted:
            namespace = connection.namespace if kind.namespaced else ""
            for tree in await _trees(client, kind, namespace, name):
                section = await _section(client, kind, tree)
                events = await _events(client, tree)
                if events:
                    section.sections.append(Section("Events", events))
                shown.append((tree, section))
        if output == "json":
            print_json([section.tree() for _, section in shown])
            return
        for i, (tree, section) in enumerate(shown):
            if i:
                click.echo()
            click.echo("\n".join(section.render()))
            if tree["kind"] not in _RELATIONS:
                tree.get("metadata", {}).pop("managedFields", None)
                print_yaml({k: v for k, v in tree.items() if k not in ("apiVersion", "kind")})

    reading.run(work)


async def _trees(client: Any, kind: kinds.Kind[Any], namespace: str, name: str) -> list[dict[str, Any]]:
    answer = await client.request("GET", kind.path(namespace, name))
    if answer.status >= 300:
        raise error_from(answer.status, answer.body)
    tree = msgspec.json.decode(answer.body)
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    return [head | tree] if name else [head | item for item in tree.get("items") or ()]


async def _section(client: Any, kind: kinds.Kind[Any], tree: dict[str, Any]) -> Section:
    if kind.kind in _RELATIONS and (kind.group, kind.version) in (("resource.k8s.io", "v1"), ("", "v1")):
        return _RELATIONS[kind.kind](codec.from_tree(kind.type, tree), await _cluster(client, tree))
    meta = tree["metadata"]
    where = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return Section(f"{kind.kind} {where}{meta['name']}")


async def _cluster(client: Any, tree: dict[str, Any]) -> Cluster:
    """What is around an object; kinds that this user may not list are named as not seen."""
    unseen: list[str] = []

    async def all_of(kind: kinds.Kind[Any]) -> tuple[Any, ...]:
        for namespace in ("", tree["metadata"].get("namespace") or ""):
            try:
                found = await client.list(kind, namespace)
            except ApiError as error:
                if error.code not in (403, 404):
                    raise
                continue
            items: tuple[Any, ...] = found.items
            return items
        unseen.append(kind.plural)
        return ()

    return Cluster(
        await all_of(kinds.POD),
        await all_of(kinds.RESOURCE_CLAIM),
        await all_of(kinds.RESOURCE_SLICE),
        await all_of(kinds.DEVICE_CLASS),
        unseen,
    )


async def _events(client: Any, tree: dict[str, Any]) -> list[str]:
    meta = tree["metadata"]
    selector = f"involvedObject.uid={meta.get('uid', '')}"
    try:
        found = await client.list(kinds.CORE_EVENT, meta.get("namespace") or "default", field_selector=selector)
    except ApiError:
        return []
    out = []
    for event in found.items:
        times = f" (x{event.count})" if (event.count or 0) > 1 else ""
        out.append(f"{event.type:<8}{event.reason:<28}{event.message}{times}")
    return out
