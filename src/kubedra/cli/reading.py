"""For commands that only read: a client of the cluster, or of a dump or fleet file in its place."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from kubedra.api import codec, kinds
from kubedra.base import yaml
from kubedra.cli.connect import Target, run_async, with_client
from kubedra.cli.output import Refusal
from kubedra.client.kubeconfig import Connection

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


@dataclass(frozen=True)
class Reading:
    """Where the objects come from."""

    target: Target
    dump: Path | None = None
    fleet: Path | None = None

    def run(self, work: Callable[[Any, Connection], Coroutine[Any, Any, R]]) -> R:
        """Run ``work(client, connection)`` against the source."""
        if self.dump is None and self.fleet is None:
            return with_client(self.target, work)
        objects = dump_objects(self.dump) if self.dump is not None else _fleet_trees(self.fleet)
        connection = Connection(server="", context="dump", namespace=self.target.namespace or "default")

        async def call() -> R:
            from kubedra.cluster.dumped import dump_client

            async with dump_client(objects) as client:
                return await work(client, connection)

        return run_async(call())


def reading_options(command: F) -> F:
    """Options --dump and --fleet beside those of the cluster; the command takes ``reading`` instead of ``target``."""
    path = click.Path(path_type=Path)

    @click.option("--dump", type=path, default=None, metavar="FILE", help="A v1 List (JSON or YAML) for a cluster.")
    @click.option("--fleet", type=path, default=None, metavar="FILE", help="A fleet file in place of a cluster.")
    def wrapper(*args: Any, target: Target, dump: Path | None, fleet: Path | None, **kwargs: Any) -> Any:
        if dump is not None and fleet is not None:
            raise click.UsageError("Give --dump or --fleet, not both")
        return command(*args, reading=Reading(target, dump, fleet), **kwargs)

    wrapper.__name__ = command.__name__
    wrapper.__doc__ = command.__doc__
    if hasattr(command, "__click_params__"):
        wrapper.__click_params__ = command.__click_params__ + wrapper.__click_params__  # type: ignore[attr-defined]
    return wrapper  # type: ignore[return-value]


def dump_objects(path: Path) -> list[dict[str, Any]]:
    """The objects of a dump as plain trees, in order. Raises Refusal or YamlError."""
    text = yaml.decode(path.read_bytes(), str(path))
    values: list[Any]
    if text.lstrip().startswith("{"):
        values = [_json(text, path)]
    else:
        values = [document.value for document in yaml.load_all(text, str(path))]
    out: list[dict[str, Any]] = []
    for value in values:
        if not isinstance(value, dict) or "kind" not in value:
            raise Refusal(f"{path}: this is no Kubernetes object; make a dump with kubectl get … -o json")
        kind = str(value["kind"])
        if kind.endswith("List") and isinstance(value.get("items"), list):
            head = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
            out += [(head | item if kind != "List" else item) for item in value["items"] if isinstance(item, dict)]
        else:
            out.append(value)
    return out


def _json(text: str, path: Path) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Refusal(f"{path}: not valid JSON: {error}") from error


def _fleet_trees(path: Path | None) -> list[dict[str, Any]]:
    from kubedra.cli.fleets import fleet_objects

    assert path is not None
    served = {kind.kind: kind for kind in (kinds.NODE, kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS)}
    out = []
    for obj in fleet_objects(path):
        kind = served[type(obj).__name__]
        out.append({"apiVersion": kind.api_version, "kind": kind.kind} | codec.to_tree(obj))
    return out
