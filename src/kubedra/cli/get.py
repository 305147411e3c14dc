"""``kubedra get``: thin over the server's tables."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.cli.connect import cluster_options
from kubedra.cli.output import OUTPUT, print_json, print_table, print_yaml
from kubedra.cli.reading import Reading, reading_options
from kubedra.cli.resources import parse_arguments
from kubedra.client.requests import error_from

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@click.command()
@click.argument("resources", nargs=-1, required=True)
@click.option("-A", "--all-namespaces", is_flag=True, help="Objects of every namespace.")
@click.option("-l", "--selector", default="", help="Label selector.")
@click.option("--field-selector", default="", help="Field selector.")
@click.option("-w", "--watch", is_flag=True, help="Go on showing changes.")
@OUTPUT
@cluster_options
@reading_options
def get(
    resources: tuple[str, ...],
    all_namespaces: bool,
    selector: str,
    field_selector: str,
    watch: bool,
    output: str,
    reading: Reading,
) -> None:
    """List objects, or show one: TYPE, TYPE NAME …, TYPE/NAME …, TYPE,TYPE."""
    wanted = parse_arguments(resources)

    async def work(client: Any, connection: Any) -> None:
        namespace = "" if all_namespaces else connection.namespace
        query = {k: v for k, v in (("labelSelector", selector), ("fieldSelector", field_selector)) if v}
        if output in ("table", "wide"):
            await _tables(client, wanted, namespace, query, output == "wide", all_namespaces)
        else:
            await _objects(client, wanted, namespace, query, output)
        if watch:
            await _watch(client, wanted, namespace, query, all_namespaces)

    reading.run(work)


async def _fetch(client: Any, path: str, query: dict[str, str], accept: str) -> dict[str, Any]:
    answer = await client.request("GET", path, query=query, headers={"Accept": accept})
    if answer.status >= 300:
        raise error_from(answer.status, answer.body)
    tree: dict[str, Any] = msgspec.json.decode(answer.body)
    return tree


async def _tables(
    client: Any,
    wanted: list[tuple[kinds.Kind[Any], str]],
    namespace: str,
    query: dict[str, str],
    wide: bool,
    everywhere: bool,
) -> None:
    several = len({k for k, _ in wanted}) > 1
    printed = False
    merged: dict[str, tuple[list[str], list[list[Any]]]] = {}
    for kind, name in wanted:
        table = await _fetch(client, kind.path(namespace, name), query, TABLE)
        columns, rows = table_rows(table, wide=wide, everywhere=everywhere and kind.namespaced)
        if several:
            for row in rows:
                row[1 if everywhere and kind.namespaced else 0] = f"{kind.singular}/{_name(row, everywhere, kind)}"
        key = kind.group_resource
        merged.setdefault(key, (columns, []))[1].extend(rows)
    for columns, rows in merged.values():
        if not rows:
            continue
        if printed:
            click.echo()
        print_table(columns, rows)
        printed = True
    if not printed:
        where = f" in the namespace {namespace}" if namespace and any(k.namespaced for k, _ in wanted) else ""
        click.echo(f"No resources found{where}.", err=True)


def _name(row: list[Any], everywhere: bool, kind: kinds.Kind[Any]) -> str:
    return str(row[1 if everywhere and kind.namespaced else 0])


def table_rows(table: dict[str, Any], *, wide: bool, everywhere: bool) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of a ``meta.k8s.io`` Table; the namespace first when several are shown."""
    shown = [i for i, c in enumerate(table["columnDefinitions"]) if wide or c.get("priority", 0) == 0]
    columns = [table["columnDefinitions"][i]["name"] for i in shown]
    rows = []
    for row in table.get("rows") or ():
        cells = [row["cells"][i] for i in shown]
        if everywhere:
            cells.insert(0, (row.get("object") or {}).get("metadata", {}).get("namespace", ""))
        rows.append(cells)
    return (["Namespace", *columns] if everywhere else columns), rows


async def _objects(
    client: Any, wanted: list[tuple[kinds.Kind[Any], str]], namespace: str, query: dict[str, str], output: str
) -> None:
    items: list[dict[str, Any]] = []
    single = len(wanted) == 1 and bool(wanted[0][1])
    for kind, name in wanted:
        tree = await _fetch(client, kind.path(namespace, name), query, "application/json")
        if name:
            items.append(tree)
        else:
            items += [{"apiVersion": kind.api_version, "kind": kind.kind} | item for item in tree.get("items") or ()]
    if output == "name":
        for item in items:
            kind_word = str(item["kind"]).lower()
            group = str(item["apiVersion"]).rpartition("/")[0]
            click.echo(f"{kind_word}{'.' + group if group else ''}/{item['metadata']['name']}")
        return
    for item in items:
        item.get("metadata", {}).pop("managedFields", None)
    value: Any = items[0] if single else {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}
    (print_json if output == "json" else print_yaml)(value)


async def _watch(
    client: Any, wanted: list[tuple[kinds.Kind[Any], str]], namespace: str, query: dict[str, str], everywhere: bool
) -> None:
    kind, name = wanted[0]
    if name:
        query = query | {"fieldSelector": f"metadata.name={name}"}
    listed = await _fetch(client, kind.path(namespace), query, "application/json")
    version = str(listed.get("metadata", {}).get("resourceVersion", ""))
    events = client.watch(
        kind,
        namespace,
        resource_version=version,
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
    )
    async for event in events:
        if event.type == "BOOKMARK":
            continue
        meta = msgspec.json.decode(event.raw)["metadata"]
        try:
            table = await _fetch(client, kind.path(meta.get("namespace", ""), meta["name"]), {}, TABLE)
            _, rows = table_rows(table, wide=False, everywhere=everywhere and kind.namespaced)
        except ApiError:
            rows = [[meta["name"], "deleted"]]
        for row in rows:
            click.echo("   ".join(str(c) for c in row))
