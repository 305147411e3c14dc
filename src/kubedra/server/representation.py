"""How an answer is shown: JSON as it is stored, PartialObjectMetadata, a Table, or YAML; chosen by Accept.

Upstream counterpart: apiserver/pkg/endpoints/handlers (response.go, negotiation).
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import msgspec

from kubedra.api.errors import ApiError
from kubedra.server.calls import Call
from kubedra.server.requests import Response
from kubedra.server.serving import encode
from kubedra.server.store import Record
from kubedra.server.verbs.reading import Listing, list_response

Tree = dict[str, Any]


class Form(NamedTuple):
    """What the client asked for: a plain object, metadata alone or a table (of which version), in JSON or YAML."""

    shape: Literal["object", "PartialObjectMetadata", "PartialObjectMetadataList", "Table"] = "object"
    yaml: bool = False
    version: str = "v1"


_PLAIN = Form()
_SUPPORTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


def wanted(call: Call) -> Form:
    """Reads Accept. Raises 406."""
    accept = call.request.headers.get("accept", "")
    if accept in ("", "application/json", "*/*"):
        return _PLAIN
    refused_shape = False
    for clause in accept.split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        if media not in ("application/json", "application/yaml", "*/*"):
            continue
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        shape = options.get("as", "")
        if not shape:
            return Form(yaml=media == "application/yaml")
        if (
            options.get("g") == "meta.k8s.io"
            and options.get("v") in ("v1", "v1beta1")
            and shape
            in (
                "Table",
                "PartialObjectMetadata",
                "PartialObjectMetadataList",
            )
        ):
            return Form(shape, media == "application/yaml", options["v"])  # type: ignore[arg-type]
        refused_shape = True
    if refused_shape:
        raise ApiError(406, "NotAcceptable", f"only the following media types are accepted: {_SUPPORTED}")
    raise ApiError(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {_SUPPORTED}")


def represent_object(call: Call, record: Record, form: Form, status: int = 200) -> Response:
    """One object in the form that was asked for."""
    served = call.served
    if form is _PLAIN:
        return Response(status, served.bytes_of(record))
    if form.shape == "PartialObjectMetadata":
        return _rendered(partial(record, form.version), form, status)
    if form.shape == "PartialObjectMetadataList":
        group = served.kind.group.split(".", 1)[0] or "core"
        raise ApiError(
            406,
            "NotAcceptable",
            "you requested PartialObjectMetadataList, but the requested object is not a list "
            f"(*{group}.{served.kind.kind})",
        )
    if form.shape == "Table":
        meta: Tree = {"resourceVersion": str(record.revision)}
        return _rendered(_tables().table(call, [record], meta, form.version), form, status)
    return _rendered(served.from_storage(record.tree()), form, status)


# Rows, conversions and decodes cost some ten microseconds each: the loop gets its turn after so many.
BATCH = 200


async def represent_list(call: Call, found: Listing, form: Form) -> Response:
    """A list in the form that was asked for, made in batches so that others are served meanwhile."""
    served = call.served
    if form is _PLAIN:
        if not served.stored_as_served:
            await _in_batches(found.records, served.bytes_of)
        return list_response(call, found)
    if form.shape == "PartialObjectMetadata":
        group = served.kind.group.split(".", 1)[0] or "core"
        raise ApiError(
            406,
            "NotAcceptable",
            f"you requested PartialObjectMetadata, but the requested object is a list (*{group}.{served.list_kind})",
        )
    meta: Tree = {"resourceVersion": str(found.revision)}
    if found.continue_:
        meta["continue"] = found.continue_
    if found.remaining:
        meta["remainingItemCount"] = found.remaining
    head: Tree = {"kind": served.list_kind, "apiVersion": served.kind.api_version, "metadata": meta}
    items = "items"
    if form.shape == "PartialObjectMetadataList":
        head = {"kind": form.shape, "apiVersion": f"meta.k8s.io/{form.version}", "metadata": meta}
        parts = await _in_batches(found.records, lambda record: encode(partial(record, form.version)))
    elif form.shape == "Table":
        head = _tables().table(call, [], meta, form.version)
        del head["rows"]
        items = "rows"
        row = _tables().row_maker(call, form.version)
        parts = await _in_batches(found.records, lambda record: encode(row(record)))
    else:
        parts = await _in_batches(found.records, lambda record: encode(served.from_storage(record.tree())))
    body = b"".join((encode(head)[:-1], f',"{items}":['.encode(), b",".join(parts), b"]}"))
    if form.yaml:
        return _rendered(msgspec.json.decode(body), form)
    return Response(200, body)


async def _in_batches(records: list[Record], make: Callable[[Record], bytes]) -> list[bytes]:
    made: list[bytes] = []
    for start in range(0, len(records), BATCH):
        if start:
            await asyncio.sleep(0)
        made += [make(record) for record in records[start : start + BATCH]]
    return made


def shower(call: Call, form: Form) -> Callable[[Record], bytes] | None:
    """How the objects of a watch are shown; None as they are."""
    if form.shape == "PartialObjectMetadata" or form.shape == "PartialObjectMetadataList":
        return lambda record: encode(partial(record, form.version))
    if form.shape == "Table":

        def show(record: Record) -> bytes:
            meta: Tree = {"resourceVersion": str(record.revision)}
            return encode(_tables().table(call, [record], meta, form.version))

        return show
    return None


def partial(record: Record, version: str = "v1") -> Tree:
    """PartialObjectMetadata of a record."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": record.shared_tree()["metadata"],
    }


def _rendered(tree: Tree, form: Form, status: int = 200) -> Response:
    if form.yaml:
        text: str = importlib.import_module("kubedra.base.yaml").dump(tree)
        return Response(status, text.encode(), "application/yaml")
    return Response(status, encode(tree))


def _tables() -> Any:
    return importlib.import_module("kubedra.server.tables")
