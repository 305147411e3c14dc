"""Label and field selectors over stored records: which fields a kind can be selected by, and reading them fast.

Selector values are read with a partial decode of the stored bytes, once per record, and kept on the record.
Upstream counterpart: GetAttrs/field label conversion functions of each registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from kubedra.api.errors import bad_request
from kubedra.api.kinds import Kind
from kubedra.base.selectors import (
    FieldRequirement,
    FieldSelector,
    LabelSelector,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)
from kubedra.server.store import Event, Record

_EVENT = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
# Fields beside metadata.name and metadata.namespace, by storage resource. "source" of events is source.component.
_EXTRA: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "events": _EVENT,
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "jobs.batch": ("status.successful",),
    "replicasets.apps": ("status.replicas",),
    "replicationcontrollers": ("status.replicas",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver", "spec.pool.name"),
}
# Kinds whose cluster scope also refuses metadata.namespace.
_NO_NAMESPACE = frozenset({"resourceslices.resource.k8s.io", "nodes", "namespaces"})
_ZERO = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.replicas": "0", "status.successful": "0"}
_NEW_EVENT = {"regarding": "involvedObject", "reportingController": "reportingComponent"}


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}


class _Labelled(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_decode_labels = msgspec.json.Decoder(_Labelled).decode


def labels_of(record: Record) -> Mapping[str, str]:
    """Labels of a record, read once."""
    derived = record.derived
    if derived is None:
        derived = record.derived = {}
    labels: Mapping[str, str] | None = derived.get("labels")
    if labels is None:
        labels = derived["labels"] = _decode_labels(record.value).metadata.labels
    return labels


def _nested(paths: tuple[str, ...], name: str) -> type[msgspec.Struct]:
    groups: dict[str, list[str]] = {}
    for path in paths:
        head, _, rest = path.partition(".")
        groups.setdefault(head, []).append(rest)
    members: list[Any] = []
    for head, rests in groups.items():
        deeper = tuple(rest for rest in rests if rest)
        if deeper:
            inner = _nested(deeper, f"{name}_{head}")
            members.append((f"{head}_", inner, msgspec.field(name=head, default_factory=inner)))
        else:
            members.append((f"{head}_", Any, msgspec.field(name=head, default="")))
    return msgspec.defstruct(name, members)


@cache
def _reader(storage: str) -> Callable[[Record], dict[str, str]]:
    paths = tuple("source.component" if path == "source" else path for path in _EXTRA.get(storage, ()))
    decode = msgspec.json.Decoder(_nested(paths, "Fields")).decode

    def read(record: Record) -> dict[str, str]:
        found = {"metadata.name": record.key.name, "metadata.namespace": record.key.namespace}
        if paths:
            decoded = decode(record.value)
            for path in paths:
                value: Any = decoded
                for part in path.split("."):
                    value = getattr(value, part + "_")
                if value in ("", None):
                    value = _ZERO.get(path, "")
                elif value is True or value is False:
                    value = str(value).lower()
                found["source" if path == "source.component" else path] = str(value)
        return found

    return read


def fields_of(record: Record) -> Mapping[str, str]:
    """The selectable fields of a record, read once."""
    derived = record.derived
    if derived is None:
        derived = record.derived = {}
    fields: Mapping[str, str] | None = derived.get("fields")
    if fields is None:
        fields = derived["fields"] = _reader(record.key.resource)(record)
    return fields


class Selection:
    """A parsed pair of selectors over records of one kind."""

    def __init__(self, labels: LabelSelector, fields: FieldSelector) -> None:
        self.labels = labels
        self.fields = fields
        self.everything = labels.empty and fields.empty

    def matches(self, record: Record) -> bool:
        """Whether the record is selected."""
        if self.fields.requirements:
            found = fields_of(record)
            if not self.fields.matches(lambda path: found.get(path, "")):
                return False
        return self.labels.empty or self.labels.matches(labels_of(record))

    def wants(self, event: Event) -> bool:
        """Whether a watcher must hear of the event at all."""
        if self.matches(event.record):
            return True
        return event.previous is not None and self.matches(event.previous)

    def event_type(self, event: Event) -> str:
        """What the event is for a watcher that sees only selected objects."""
        if event.type == "DELETED" or self.everything:
            return event.type
        now = self.matches(event.record)
        before = event.previous is not None and self.matches(event.previous)
        if now:
            return "MODIFIED" if before else "ADDED"
        return "DELETED"


def parse_selection(kind: Kind[Any], storage: str, label_text: str, field_text: str) -> Selection:
    """Reads both selectors. Raises 400 with upstream's sentences."""
    try:
        labels = parse_label_selector(label_text) if label_text else LabelSelector()
        fields = parse_field_selector(field_text) if field_text else FieldSelector()
    except SelectorError as error:
        raise bad_request(str(error)) from error
    if fields.requirements:
        fields = FieldSelector([_checked(kind, storage, requirement) for requirement in fields.requirements])
    return Selection(labels, fields)


def _checked(kind: Kind[Any], storage: str, requirement: FieldRequirement) -> FieldRequirement:
    path = requirement.path
    if storage == "events" and kind.group:
        head, _, rest = path.partition(".")
        path = ".".join(filter(None, (_NEW_EVENT.get(head, head), rest)))
    extra = _EXTRA.get(storage)
    if path == "metadata.name" or (path == "metadata.namespace" and storage not in _NO_NAMESPACE):
        return requirement._replace(path=path)
    if extra is None:
        raise bad_request(
            f'"{requirement.path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    if path not in extra:
        if kind.group:
            raise bad_request(f"field label not supported for {kind.api_version}, Kind={kind.kind}: {requirement.path}")
        raise bad_request(f"field label not supported: {requirement.path}")
    return requirement._replace(path=path)
