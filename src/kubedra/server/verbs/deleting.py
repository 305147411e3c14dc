"""delete and deletecollection: preconditions, grace periods, finalizers and propagation.

Upstream counterpart: apiserver/pkg/registry/rest/delete.go and registry/generic/registry/store.go.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec

from kubedra.api import errors
from kubedra.api import fields as f
from kubedra.api.errors import ApiError, bad_request
from kubedra.base.clock import format_time
from kubedra.server.calls import Call, invalid_options
from kubedra.server.decoding import protobuf
from kubedra.server.decoding.bodies import ACCEPTED
from kubedra.server.requests import Response
from kubedra.server.store import Record
from kubedra.server.verbs.reading import Listing, list_response, listing
from kubedra.server.verbs.storing import dry_record, encoder

Tree = dict[str, Any]
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
# Resources whose DELETE answers with the object even when it is gone at once.
_RETURNS_OBJECT = frozenset(
    {
        "pods",
        "namespaces",
        "serviceaccounts",
        "services",
        "persistentvolumes",
        "persistentvolumeclaims",
        "podtemplates",
        "resourcequotas",
        "replicationcontrollers",
    }
)


@dataclass(slots=True)
class Options:
    """DeleteOptions, from the body or the query."""

    grace: int | None = None
    policy: str = ""
    uid: str = ""
    version: str = ""
    dry_run: bool = False


def read_options(call: Call) -> Options:
    """Reads and checks DeleteOptions. Raises 400, 415, 422."""
    query, body = call.request.query, call.request.body
    tree: Tree = {}
    if body:
        tree = _body(body, call.request.headers.get("content-type", ""))
    elif query:
        for name in ("propagationPolicy", "gracePeriodSeconds", "orphanDependents"):
            if query.get(name):
                tree[name] = query[name]
        if tree.get("gracePeriodSeconds"):
            try:
                tree["gracePeriodSeconds"] = int(tree["gracePeriodSeconds"])
            except ValueError as error:
                text = tree["gracePeriodSeconds"]
                raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error
        if tree.get("orphanDependents"):
            tree["orphanDependents"] = call.flag("orphanDependents")
    if "dryRun" in query and not tree.get("dryRun"):
        tree["dryRun"] = [query["dryRun"]]
    found: list[f.FieldError] = []
    policy, orphan = tree.get("propagationPolicy") or "", tree.get("orphanDependents")
    if policy and orphan is not None:
        found.append(
            f.invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
        )
    elif policy and policy not in ("Foreground", "Background", "Orphan"):
        detail = 'supported values: "Foreground", "Background", "Orphan", "nil"'
        found.append(f.FieldError(f.NOT_SUPPORTED, "propagationPolicy", policy, detail))
    dry_run = tree.get("dryRun") or []
    if any(value != "All" for value in dry_run):
        found.append(f.not_supported("dryRun", dry_run, ["All"]))
    if found:
        raise invalid_options("DeleteOptions", found)
    preconditions = tree.get("preconditions") or {}
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    return Options(
        tree.get("gracePeriodSeconds"),
        policy,
        preconditions.get("uid") or "",
        preconditions.get("resourceVersion") or "",
        bool(dry_run),
    )


def _body(body: bytes, content_type: str) -> Tree:
    media = content_type.split(";", 1)[0].strip().lower()
    if media == protobuf.MEDIA_TYPE:
        try:
            _, _, raw = protobuf.envelope(body)
            return protobuf.decode(raw, "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")
        except protobuf.ProtobufError as error:
            raise bad_request(str(error)) from error
    if media not in ("", "application/json", "application/yaml"):
        raise ApiError(
            415,
            "UnsupportedMediaType",
            f"the body of the request was in an unknown format - accepted media types include: {ACCEPTED}",
        )
    try:
        tree = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        why = "unexpected end of JSON input" if "truncated" in str(error) else str(error)
        raise bad_request(f"couldn't get version/kind; json parse error: {why}") from error
    if not isinstance(tree, dict):
        raise bad_request("couldn't get version/kind; json parse error: the body is not an object")
    kind, version = tree.get("kind", ""), tree.get("apiVersion", "")
    if kind and kind != "DeleteOptions":
        raise bad_request(
            f'no kind "{kind}" is registered for version "{version}" in scheme '
            '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'
        )
    return {name: value for name, value in tree.items() if value is not None}


async def delete(call: Call) -> tuple[Record, bool]:
    """Answers DELETE of an object; the second member says that it is gone."""
    options = read_options(call)
    return await delete_object(call, options)


async def delete_object(call: Call, options: Options) -> tuple[Record, bool]:
    """Deletes, or marks as being deleted."""
    outcome, gone = begin(call, options)
    return (outcome if isinstance(outcome, Record) else await outcome), gone


def begin(call: Call, options: Options) -> tuple[Record | asyncio.Future[Record], bool]:
    """Everything of a delete that happens at once."""
    served, state = call.served, call.state
    live = state.store.latest(call.key)
    if live is None:
        raise errors.not_found(served.kind, call.name)
    old = live.shared_tree()
    for admission in state.admission:
        admission.delete(call, old)
    _check_preconditions(call, options, old["metadata"])
    tree = live.tree()
    metadata = tree["metadata"]
    finalizers = _finalizers(call, metadata, options.policy)
    grace = _grace(call, tree, options.grace)
    deleting = "deletionTimestamp" in metadata
    # The first delete of a namespace only marks it; its controller empties it and then finalizes it.
    spec_finalizers = served.storage == "namespaces" and (
        not deleting or bool((tree.get("spec") or {}).get("finalizers"))
    )
    if grace is None and not finalizers and not spec_finalizers:
        if served.storage == "pods":
            # A pod is marked even when it goes at once: watchers see that it was deleted on purpose.
            _mark(call, metadata, 0, finalizers)
        if options.dry_run:
            return dry_record(call, tree, live.revision), True
        return state.store.submit_delete(call.key, encoder(served, tree), expect=live.revision), True
    _mark(call, metadata, grace or 0, finalizers)
    if served.storage == "namespaces":
        tree.setdefault("status", {})["phase"] = "Terminating"
        metadata.pop("deletionGracePeriodSeconds", None)
    if options.dry_run:
        return dry_record(call, tree, live.revision), False
    if deleting and tree == old:
        return live, False
    return state.store.submit_put(call.key, encoder(served, tree), expect=live.revision), False


def _check_preconditions(call: Call, options: Options, metadata: Tree) -> None:
    kind = call.served.kind
    why = ""
    if options.uid and options.uid != metadata.get("uid"):
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata.get('uid')}). "
            "The object might have been deleted and then recreated"
        )
    elif options.version and options.version != metadata.get("resourceVersion"):
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
            f"record ({metadata.get('resourceVersion')}). The object might have been modified"
        )
    if why:
        qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
        details = {"name": call.name, "kind": kind.kind} | ({"group": kind.group} if kind.group else {})
        raise ApiError(409, "Conflict", f'Operation cannot be fulfilled on {qualified} "{call.name}": {why}', details)


def _finalizers(call: Call, metadata: Tree, policy: str) -> list[str]:
    finalizers: list[str] = list(metadata.get("finalizers") or ())
    if not policy:
        if call.served.storage == "jobs.batch" and not (ORPHAN in finalizers or FOREGROUND in finalizers):
            # batch/v1 still orphans pods by default.
            policy = "Orphan"
            call.warnings.append(
                "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to "
                "remove them or set propagationPolicy=Orphan to suppress this warning"
            )
        else:
            return finalizers
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(policy)
    finalizers = [name for name in finalizers if name not in (FOREGROUND, ORPHAN) or name == wanted]
    if wanted and wanted not in finalizers:
        finalizers.append(wanted)
    return finalizers


def _grace(call: Call, tree: Tree, asked: int | None) -> int | None:
    """Seconds until a pod may be removed; None when it may be removed now."""
    if call.served.storage != "pods":
        return None
    spec, status, metadata = tree.get("spec") or {}, tree.get("status") or {}, tree["metadata"]
    grace = asked
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds")
        if grace is None:
            grace = 30
    if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
        grace = 0
    if grace < 0:
        grace = 1
    if "deletionTimestamp" in metadata:
        current = metadata.get("deletionGracePeriodSeconds", 0)
        # A running grace period can only become shorter.
        if asked is None and grace:
            return int(current)
        grace = min(grace, current)
    return int(grace) or None


def _mark(call: Call, metadata: Tree, grace: int, finalizers: list[str]) -> None:
    now = call.state.clock.now()
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = format_time(now + timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):
            metadata["generation"] += 1
    elif grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = format_time(now + timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def answers_with_object(call: Call, gone: bool) -> bool:
    """Whether DELETE answers with the object or with a Status."""
    return not gone or call.served.storage in _RETURNS_OBJECT or call.served.kind.group == "resource.k8s.io"


def status_of(call: Call, record: Record) -> Tree:
    """The Status of a finished deletion."""
    kind = call.served.kind
    details: Tree = {"name": call.name}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.plural
    details["uid"] = record.shared_tree()["metadata"].get("uid", "")
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


async def delete_collection(call: Call) -> Response:
    """Answers DELETE of a collection with the list of what was deleted."""
    options = read_options(call)
    found = listing(call)
    waiting: list[asyncio.Future[Record]] = []
    for record in found.records:
        single = Call(
            call.state, call.request, call.served, "delete", record.key.namespace, record.key.name, "", call.warnings
        )
        try:
            outcome, _ = begin(single, options)
        except ApiError as error:
            if error.code == 404:
                continue
            await _settle(waiting)
            raise
        if isinstance(outcome, asyncio.Future):
            waiting.append(outcome)
    await _settle(waiting)
    return list_response(call, Listing(found.records, found.revision))


async def _settle(waiting: list[asyncio.Future[Record]]) -> None:
    if waiting:
        await asyncio.gather(*waiting)
