"""``kubedra apply``: server-side apply of files, all or nothing as far as the server can tell beforehand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kubedra.api import codec, kinds
from kubedra.api.errors import ApiError
from kubedra.base import yaml
from kubedra.cli.connect import Target, cluster_options, say_where, with_client
from kubedra.cli.output import JSON_OUTPUT, Refusal, nearest, print_json
from kubedra.client.requests import error_from

MANAGER = "kubedra"


@click.command()
@click.option("-f", "--filename", "filenames", multiple=True, required=True, help="File, folder, or - for stdin.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that others manage.")
@click.option("--dry-run", is_flag=True, help="Let the server check everything and write nothing.")
@JSON_OUTPUT
@cluster_options
def apply(filenames: tuple[str, ...], force_conflicts: bool, dry_run: bool, output: str, target: Target) -> None:
    """Create or change objects from files. Everything is checked by the server before anything is written."""
    documents = read_documents(filenames)
    if not documents:
        raise Refusal(f"{', '.join(filenames)}: there is no object in it")
    resolved = [(document, resolve(document)) for document in documents]

    async def work(client: Any, connection: Any) -> None:
        if not dry_run:
            say_where(connection)
        made_here = {d.value["metadata"]["name"] for d, k in resolved if k is kinds.NAMESPACE}
        faults = []
        for document, kind in resolved:
            namespace = _namespace(document, kind, connection.namespace)
            if namespace in made_here:
                continue
            try:
                await apply_document(client, document, kind, namespace, force=force_conflicts, dry_run=True)
            except ApiError as error:
                faults.append(explain(document, kind, error))
        if faults:
            raise Refusal("\n".join([*faults, "nothing was applied"]))
        results = []
        for document, kind in resolved:
            namespace = _namespace(document, kind, connection.namespace)
            name = document.value["metadata"]["name"]
            if dry_run:
                verb = "checked"
            else:
                try:
                    verb = await apply_document(client, document, kind, namespace, force=force_conflicts, dry_run=False)
                except ApiError as error:
                    raise Refusal(explain(document, kind, error)) from error
            results.append({"kind": kind.kind, "namespace": namespace, "name": name, "result": verb})
            if output == "text":
                group = f".{kind.group}" if kind.group else ""
                click.echo(f"{kind.singular}{group}/{name} {verb}")
        if output == "json":
            print_json(results)

    with_client(target, work)


def _namespace(document: yaml.Document, kind: kinds.Kind[Any], default: str) -> str:
    return str(document.value["metadata"].get("namespace") or default) if kind.namespaced else ""


async def apply_document(
    client: Any, document: yaml.Document, kind: kinds.Kind[Any], namespace: str, *, force: bool, dry_run: bool
) -> str:
    """Apply one object; returns ``created`` or ``applied``. Raises ApiError."""
    query = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
    if force:
        query["force"] = "true"
    if dry_run:
        query["dryRun"] = "All"
    path = kind.path(namespace, document.value["metadata"]["name"])
    answer = await client.request(
        "PATCH",
        path,
        query=query,
        body=codec.encode(document.value),
        headers={"content-type": "application/apply-patch+yaml"},
    )
    if answer.status >= 300:
        raise error_from(answer.status, answer.body)
    return "created" if answer.status == 201 else "applied"


def read_documents(filenames: tuple[str, ...]) -> list[yaml.Document]:
    """The objects of files and folders, Lists taken apart. Raises YamlError, OSError or Refusal."""
    out: list[yaml.Document] = []
    for filename in filenames:
        if filename == "-":
            sources = [("<stdin>", yaml.decode(sys.stdin.buffer.read(), "<stdin>"))]
        else:
            path = Path(filename)
            files = (
                sorted(p for p in path.iterdir() if p.suffix in (".yaml", ".yml", ".json")) if path.is_dir() else [path]
            )
            sources = [(str(p), yaml.decode(p.read_bytes(), str(p))) for p in files]
        for name, text in sources:
            for document in yaml.load_all(text, name):
                out += _items(document)
    return out


def _items(document: yaml.Document) -> list[yaml.Document]:
    value = document.value
    where = f"{document.filename}:{document.line}"
    if not isinstance(value, dict):
        raise Refusal(f"{where}: an object is expected, this is a {type(value).__name__}")
    if value.get("kind") == "List" and value.get("apiVersion") == "v1":
        out = []
        for i, item in enumerate(value.get("items") or ()):
            prefix = f"items[{i}]."
            lines = {k.removeprefix(prefix): n for k, n in document.lines.items() if k.startswith(prefix)}
            out += _items(yaml.Document(item, document.filename, document.line_of(f"items[{i}]"), lines))
        return out
    return [document]


def resolve(document: yaml.Document) -> kinds.Kind[Any]:
    """The kind of a document; Refusal with file, line and the nearest known kind or version otherwise."""
    value = document.value
    where = f"{document.filename}:{document.line}"
    api_version, kind_name = value.get("apiVersion"), value.get("kind")
    if not isinstance(api_version, str) or not api_version:
        raise Refusal(f"{where}: the object has no apiVersion")
    if not isinstance(kind_name, str) or not kind_name:
        raise Refusal(f"{where}: the object has no kind")
    if not isinstance(value.get("metadata"), dict) or not isinstance(value["metadata"].get("name"), str):
        raise Refusal(f"{where}: {kind_name} has no metadata.name")
    kind = kinds.by_api_version(api_version, kind_name)
    if kind is not None:
        return kind
    versions = sorted({k.api_version for k in kinds.ALL if k.kind == kind_name})
    if versions:
        line = document.line_of("apiVersion")
        raise Refusal(
            f"{document.filename}:{line}: {kind_name} is not served as {api_version!r}, but as {', '.join(versions)}"
        )
    names = {k.kind for k in kinds.ALL}
    line = document.line_of("kind")
    raise Refusal(f"{document.filename}:{line}: there is no kind {kind_name!r}{nearest(kind_name, names)}")


def explain(document: yaml.Document, kind: kinds.Kind[Any], error: ApiError) -> str:
    """An error of the API with file and line of each field that it names, and the nearest name of an unknown field."""
    name = document.value["metadata"]["name"]
    head = f"{document.filename}:{document.line}: {kind.kind} {name}: "
    causes = error.details.get("causes") or []
    lines = []
    for cause in causes:
        field = str(cause.get("field") or "")
        if field:
            lines.append(f"{document.filename}:{document.line_of(field)}: {field}: {cause.get('message', '')}")
    if lines:
        return "\n".join(lines)
    return head + error.message + _suggest(kind, error.message)


def _suggest(kind: kinds.Kind[Any], message: str) -> str:
    import re

    from kubedra.api import schema

    hints = []
    for path in re.findall(r'unknown field "([^"]+)"', message) + re.findall(
        r"\.([\w.\[\]]+): field not declared", message
    ):
        definition: schema.Definition | None = schema.for_kind(kind)
        *parents, last = re.sub(r"\[[^\]]*\]", "", path).split(".")
        for parent in parents:
            field = definition.fields.get(parent) if definition is not None else None
            while field is not None and not field.ref and (field.items or field.values):
                field = field.items or field.values
            definition = schema.resolve(field) if field is not None else None
        if definition is not None:
            hint = nearest(last, definition.fields)
            if hint != ".":
                hints.append(hint)
    return "".join(dict.fromkeys(hints))
