"""Where a command that only reads takes its objects from: a cluster, a dump of one, or a fleet file.

Whatever the source, the answer is a ``Snapshot``: objects of the newest version, and what could not be read. A dump is
what plain kubectl prints (``DUMP_COMMAND``); a user with few rights gets what these allow.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from kubedra.allocation.scenario import with_defaults
from kubedra.api import codec, coordination_v1, core_v1, kinds, meta_v1, resource_v1
from kubedra.api.canonical import normalise
from kubedra.api.conversion import convert, storage_api_version
from kubedra.base.features import VERSIONS, FeatureGates
from kubedra.cli.connect import Target, cluster_options
from kubedra.cli.output import Refusal
from kubedra.insight.snapshots import Snapshot, Unseen

F = TypeVar("F", bound=Callable[..., Any])

DUMP_COMMAND = (
    "kubectl get nodes,namespaces,pods,events,leases,resourceslices,deviceclasses,resourceclaims,"
    "resourceclaimtemplates,devicetaintrules -A -o json > dump.json"
)

# Field of the snapshot, kind, type; the order in which a live cluster is read.
TYPES: dict[str, tuple[str, type[Any]]] = {
    "Pod": ("pods", core_v1.Pod),
    "Node": ("nodes", core_v1.Node),
    "Namespace": ("namespaces", core_v1.Namespace),
    "Event": ("events", core_v1.Event),
    "Lease": ("leases", coordination_v1.Lease),
    "ResourceClaim": ("claims", resource_v1.ResourceClaim),
    "ResourceClaimTemplate": ("templates", resource_v1.ResourceClaimTemplate),
    "DeviceClass": ("classes", resource_v1.DeviceClass),
    "ResourceSlice": ("slices", resource_v1.ResourceSlice),
    "DeviceTaintRule": ("rules", resource_v1.DeviceTaintRule),
}
NAMESPACED = frozenset(("Pod", "Event", "Lease", "ResourceClaim", "ResourceClaimTemplate"))
PLURALS = {
    "Pod": "pods",
    "Node": "nodes",
    "Namespace": "namespaces",
    "Event": "events",
    "Lease": "leases",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "DeviceClass": "deviceclasses",
    "ResourceSlice": "resourceslices",
    "DeviceTaintRule": "devicetaintrules",
}
RESOURCE_KINDS = frozenset(kind for kind, (_, type_) in TYPES.items() if type_.__module__.endswith("resource_v1"))


# How kubectl begins every object; other orders of members are read the slow way.
_START = re.compile(rb'\s*\{\s*"apiVersion":\s*"([\w./-]+)",\s*"kind":\s*"(\w+)"')


class _Head(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""


class _List(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    items: list[msgspec.Raw] | None = None


@dataclass
class Gathering:
    """Objects on their way into a snapshot."""

    objects: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name, _ in TYPES.values()})
    kinds: set[str] = field(default_factory=set)

    def add_tree(self, tree: dict[str, Any], where: str, namespace: str = "default") -> None:
        """Add an object or the items of a list; kinds that no answer needs are skipped."""
        kind = str(tree.get("kind") or "")
        if kind.endswith("List") and "items" in tree:
            self.kinds.add(kind.removesuffix("List"))
            items = tree.get("items") or []
            if not isinstance(items, list):
                raise Refusal(f"{where}: items: a list is expected here")
            for number, item in enumerate(items):
                if not isinstance(item, dict):
                    raise Refusal(f"{where}, item {number}: an object is expected here")
                head = {"kind": kind.removesuffix("List"), "apiVersion": tree.get("apiVersion", "")}
                self.add_tree({**head, **item}, f"{where}, item {number}", namespace)
            return
        if kind not in TYPES:
            return
        self.kinds.add(kind)
        field_name, type_ = TYPES[kind]
        try:
            self.objects[field_name].append(_decoded(kind, type_, _newest_form(tree, kind, namespace)))
        except (msgspec.ValidationError, AttributeError, TypeError, ValueError, LookupError) as error:
            # What is no object of the kind fails in one way or another while it is brought into the newest form.
            why = str(error) if isinstance(error, msgspec.ValidationError) else f"it has not the form of a {kind}"
            metadata = tree.get("metadata")
            name = metadata.get("name", "") if isinstance(metadata, dict) else ""
            raise Refusal(f"{where}: {kind} {name} can't be read: {why}") from None

    def add_bytes(self, data: bytes | msgspec.Raw, where: str, api_version: str = "", kind: str = "") -> None:
        """Add an object from its JSON; the fast way for large dumps."""
        start = _START.match(bytes(memoryview(data)[:200]))
        if start is not None:
            api_version, kind = start[1].decode(), start[2].decode()
        else:
            try:
                head = msgspec.json.decode(data, type=_Head)
            except msgspec.DecodeError as error:
                raise Refusal(f"{where}: this is no Kubernetes object: {error}") from None
            kind, api_version = head.kind or kind, head.api_version or api_version
        if kind not in TYPES:
            return
        if api_version != storage_api_version(api_version, kind) or kind == "ResourceClaimTemplate":
            self.add_tree({"kind": kind, "apiVersion": api_version, **msgspec.json.decode(data)}, where)
            return
        self.kinds.add(kind)
        field_name, type_ = TYPES[kind]
        try:
            found = codec.decode(type_, data)
        except msgspec.ValidationError as error:
            raise Refusal(f"{where}: {kind} can't be read: {error}") from None
        if (kind in NAMESPACED and not found.metadata.namespace) or (
            kind == "ResourceClaim" and _lacks_defaults(found)
        ):
            self.add_tree({"kind": kind, "apiVersion": api_version, **msgspec.json.decode(data)}, where)
            return
        self.objects[field_name].append(found)

    def snapshot(self, **more: Any) -> Snapshot:
        """What was gathered."""
        fields: dict[str, Any] = {name: tuple(found) for name, found in self.objects.items()}
        return Snapshot(**(fields | more))

    def add_files(
        self, paths: Sequence[str], namespace: str, judge: Callable[[dict[str, Any], str], None] | None = None
    ) -> None:
        """Add the objects of files as kubectl would apply them: what is there already under a name is replaced.

        ``judge`` gets each object as it stands in its file.
        """
        from kubedra.base import yaml

        for path in paths:
            text = yaml.decode(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes(), path)
            fresh = Gathering()
            for document in yaml.load_all(text, path):
                if isinstance(document.value, dict):
                    if judge is not None:
                        items = document.value.get("items")
                        for tree in items if isinstance(items, list) else [document.value]:
                            if isinstance(tree, dict):
                                judge(tree, namespace)
                    fresh.add_tree(document.value, f"{path}:{document.line}", namespace)
                elif document.value is not None:
                    raise Refusal(f"{path}:{document.line}: an object is expected here")
            for name, found in fresh.objects.items():
                mine = {(o.metadata.namespace, o.metadata.name): o for o in self.objects[name]}
                mine |= {(o.metadata.namespace, o.metadata.name): o for o in found}
                self.objects[name] = list(mine.values())
            self.kinds |= fresh.kinds

    def create_claims(self) -> None:
        """Play the claims controller where none runs: pods of files get the claims of their templates."""
        templates = {(t.metadata.namespace, t.metadata.name): t for t in self.objects["templates"]}
        names = {(c.metadata.namespace, c.metadata.name) for c in self.objects["claims"]}
        pods = []
        for pod in self.objects["pods"]:
            meta = pod.metadata
            uid = meta.uid or f"{meta.namespace}/{meta.name}"
            recorded = {status.name for status in pod.status.resource_claim_statuses}
            made = []
            for entry in pod.spec.resource_claims:
                template = templates.get((meta.namespace, entry.resource_claim_template_name or ""))
                name = f"{meta.name}-{entry.name}"
                if template is None or entry.name in recorded or (meta.namespace, name) in names:
                    continue
                self.objects["claims"].append(_claim_of(template, pod, name, uid))
                made.append(core_v1.PodResourceClaimStatus(name=entry.name, resource_claim_name=name))
            statuses = (*pod.status.resource_claim_statuses, *made)
            status = msgspec.structs.replace(pod.status, resource_claim_statuses=statuses)
            metadata = msgspec.structs.replace(meta, uid=uid)
            pods.append(msgspec.structs.replace(pod, metadata=metadata, status=status))
        self.objects["pods"] = pods


def _decoded(kind: str, type_: type[Any], tree: dict[str, Any]) -> Any:
    try:
        return codec.from_tree(type_, tree)
    except msgspec.ValidationError:
        # People write quantities as numbers, too.
        found = kinds.by_resource(
            tree["apiVersion"].rpartition("/")[0], tree["apiVersion"].rpartition("/")[2], PLURALS[kind]
        )
        if found is None:
            raise
        return codec.from_tree(type_, normalise(found.definition, copy.deepcopy(tree)))


def _newest_form(tree: dict[str, Any], kind: str, namespace: str) -> dict[str, Any]:
    """An object in the newest version of its kind, with the defaults that an API server sets."""
    version = str(tree.get("apiVersion") or "")
    tree = convert(tree, version, storage_api_version(version, kind))
    if kind == "ResourceClaim":
        tree = with_defaults(tree)
    elif kind == "ResourceClaimTemplate":
        tree = {**tree, "spec": with_defaults(tree.get("spec") or {})}
    if kind in NAMESPACED:
        metadata = tree.get("metadata") or {}
        tree = {**tree, "metadata": {**metadata, "namespace": metadata.get("namespace") or namespace}}
    return tree


def _claim_of(
    template: resource_v1.ResourceClaimTemplate, pod: core_v1.Pod, name: str, uid: str
) -> resource_v1.ResourceClaim:
    owner = meta_v1.OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=uid, controller=True)
    return resource_v1.ResourceClaim(
        metadata=meta_v1.ObjectMeta(
            name=name, namespace=pod.metadata.namespace, uid=f"{uid}/{name}", owner_references=(owner,)
        ),
        spec=template.spec.spec,
    )


def _lacks_defaults(claim: resource_v1.ResourceClaim) -> bool:
    devices = claim.spec.devices
    if devices is None:
        return False
    return any(
        (request.exactly is not None and not request.exactly.allocation_mode)
        or any(not sub.allocation_mode for sub in request.first_available)
        for request in devices.requests
    )


@dataclass(frozen=True)
class Source:
    """Options that say where to read."""

    target: Target
    dump: str | None = None
    fleet: str | None = None
    version: str | None = None
    gates: str = ""
    files: tuple[str, ...] = ()

    def namespace(self) -> str:
        """The namespace that names without one are in."""
        if self.target.namespace:
            return self.target.namespace
        if self.dump or self.fleet:
            return "default"
        return self.target.connection().namespace

    def read(self, namespace: str = "default", pod: str = "") -> Snapshot:
        """Read everything. ``pod``: the one whose drivers' logs are wanted. Raises Refusal."""
        if self.dump and self.fleet:
            raise click.UsageError("--dump and --fleet exclude each other")
        gates = FeatureGates.parse(self.gates, self.version or VERSIONS[-1])
        if self.dump:
            return read_dump(self.dump, namespace, gates, self.files)
        if self.fleet:
            return read_fleet(self.fleet, namespace, gates, self.files)
        if self.files:
            raise click.UsageError("-f adds objects to a --dump or a --fleet; a cluster has its own")
        from kubedra.cli.live import read_live

        return read_live(self.target, namespace, pod, self.version, self.gates)


def source_options(command: F) -> F:
    """Options --dump, --fleet, --kubernetes-version, --feature-gates and those of a cluster; gives ``source``."""

    @click.option("--dump", metavar="FILE", help="Objects of a cluster from a file (- for standard input).")
    @click.option("--fleet", metavar="FILE", help="A simulated fleet in place of a cluster.")
    @click.option(
        "-f",
        "--filename",
        "files",
        multiple=True,
        metavar="FILE",
        help="Objects that --dump or --fleet lacks (pods, claims, classes).",
    )
    @click.option(
        "--kubernetes-version",
        type=click.Choice(VERSIONS),
        default=None,
        help="Answer as this version would (default: the cluster's own, else the newest).",
    )
    @click.option("--feature-gates", default="", metavar="A=true,B=false", help="Gates that differ from the default.")
    @cluster_options
    def wrapper(
        *args: Any,
        dump: str | None,
        fleet: str | None,
        files: tuple[str, ...],
        kubernetes_version: str | None,
        feature_gates: str,
        target: Target,
        **kwargs: Any,
    ) -> Any:
        return command(*args, source=Source(target, dump, fleet, kubernetes_version, feature_gates, files), **kwargs)

    wrapper.__name__ = command.__name__
    wrapper.__doc__ = command.__doc__
    if hasattr(command, "__click_params__"):
        wrapper.__click_params__ = command.__click_params__ + wrapper.__click_params__  # type: ignore[attr-defined]
    return wrapper  # type: ignore[return-value]


def read_dump(path: str, namespace: str, gates: FeatureGates, files: Sequence[str] = ()) -> Snapshot:
    """The objects of a file that kubectl wrote."""
    gathering, name = gathered(path, namespace)
    if files:
        gathering.add_files(files, namespace)
        gathering.create_claims()
    missing = [PLURALS[kind] for kind in ("Node", "ResourceSlice") if kind not in gathering.kinds]
    if missing and not gathering.kinds & {"Pod", "ResourceClaim"}:
        raise Refusal(f"{name} holds nothing that an answer can be read from; make it with: {DUMP_COMMAND}")
    unseen = tuple(Unseen(plural, "the dump holds none") for plural in missing)
    return gathering.snapshot(where=f"the dump {name}", now=_latest(gathering), gates=gates, unseen=unseen)


def gathered(path: str, namespace: str = "default") -> tuple[Gathering, str]:
    """The objects of a file (- for standard input), and what to call it."""
    if path == "-":
        data, name = sys.stdin.buffer.read(), "standard input"
    else:
        data, name = Path(path).read_bytes(), path
    gathering = Gathering()
    if data.lstrip()[:1] == b"{":
        _read_json(gathering, data, name)
    else:
        from kubedra.base import yaml

        for document in yaml.load_all(yaml.decode(data, name), name):
            if document.value is None:
                continue
            if not isinstance(document.value, dict):
                raise Refusal(f"{name}:{document.line}: an object is expected here")
            gathering.add_tree(document.value, f"{name}:{document.line}", namespace)
    return gathering, name


def _read_json(gathering: Gathering, data: bytes, name: str) -> None:
    decoder = msgspec.json.Decoder(_List)
    try:
        whole = decoder.decode(data)
    except msgspec.DecodeError as error:
        raise Refusal(f"{name}: not a JSON object: {error}") from None
    if whole.items is None:
        gathering.add_bytes(data, name)
        return
    kind = whole.kind.removesuffix("List")
    if kind:
        gathering.kinds.add(kind)
    for number, item in enumerate(whole.items):
        gathering.add_bytes(item, f"{name}, item {number}", whole.api_version, kind)


def _latest(gathering: Gathering) -> datetime:
    """When a dump was made, as near as its objects tell: ages in an answer are counted from there."""
    times: list[str] = []
    for pod in gathering.objects["pods"]:
        times.append(pod.metadata.creation_timestamp)
        times += [c.last_transition_time for c in pod.status.conditions]
    times += [event.last_timestamp or event.event_time for event in gathering.objects["events"]]
    times += [lease.spec.renew_time for lease in gathering.objects["leases"]]
    times += [claim.metadata.creation_timestamp for claim in gathering.objects["claims"]]
    return _newest(times) or datetime.now(UTC)


def _newest(times: Iterable[str]) -> datetime | None:
    from kubedra.base.clock import parse_time

    newest: datetime | None = None
    for text in times:
        if not text:
            continue
        try:
            moment = parse_time(text)
        except ValueError:
            continue
        if newest is None or moment > newest:
            newest = moment
    return newest


def read_fleet(path: str, namespace: str, gates: FeatureGates, files: Sequence[str] = ()) -> Snapshot:
    """The nodes, slices and classes that a fleet file describes, and the objects of files."""
    from kubedra.cli.fleets import fleet_objects

    gathering = Gathering()
    for found in fleet_objects(Path(path)):
        gathering.objects[TYPES[type(found).__name__][0]].append(found)
    gathering.add_files(files, namespace)
    gathering.create_claims()
    return gathering.snapshot(where=f"the fleet {path}", now=datetime.now(UTC), gates=gates)
