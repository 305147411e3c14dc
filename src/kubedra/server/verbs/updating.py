"""update: PUT of an object or of a subresource that is a part of it, and the common end of every patch."""

from __future__ import annotations

import asyncio
from typing import Any

from kubedra.api import errors
from kubedra.api import fields as f
from kubedra.api.canonical import same_meaning
from kubedra.api.errors import ApiError, bad_request
from kubedra.server.calls import Call
from kubedra.server.decoding.bodies import decode
from kubedra.server.patch import without_time_changes
from kubedra.server.registry.defaulting import apply_defaults
from kubedra.server.store import Record
from kubedra.server.verbs.creating import create_tree
from kubedra.server.verbs.owning import owned
from kubedra.server.verbs.storing import dry_record, encoder, finish, refuse_invalid

Tree = dict[str, Any]


async def update(call: Call) -> tuple[Record, bool]:
    """Answers PUT; the second member says that the object was created."""
    call.check_options()
    content_type = call.request.headers.get("content-type", "")
    tree = decode(call.request.body, content_type, call.served.kind, call.field_validation, call.warnings)
    return await update_tree(call, tree)


async def update_tree(call: Call, tree: Tree) -> tuple[Record, bool]:
    """PUT of a tree in the version of the request."""
    metadata = tree.setdefault("metadata", {})
    check_name(call, metadata)
    live = call.state.store.latest(call.key)
    if live is None:
        if not call.served.strategy.allow_create_on_update or call.subresource:
            raise errors.not_found(call.served.kind, call.name)
        return await create_tree(call, tree), True
    given_uid = metadata.get("uid", "")
    live_uid = live.shared_tree()["metadata"].get("uid", "")
    if given_uid and given_uid != live_uid:
        raise errors.conflict(
            call.served.kind,
            call.name,
            f"Precondition failed: UID in precondition: {given_uid}, UID in object meta: {live_uid}",
        )
    apply_defaults(call.served.kind, tree, call.state.now())
    outcome = replace(call, live, call.served.to_storage(owned(call, live, tree)))
    return (outcome if isinstance(outcome, Record) else await outcome), False


def check_name(call: Call, metadata: Tree) -> None:
    """Name and namespace of the object against the URL."""
    name = metadata.get("name", "")
    if not name:
        raise bad_request(
            f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
        )
    if name != call.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    if call.served.kind.namespaced:
        if metadata.get("namespace", "") not in ("", call.namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = call.namespace


def replace(call: Call, live: Record, new: Tree) -> Record | asyncio.Future[Record]:
    """Makes `new` (a stored-version tree with its managed fields, owned by this call) the object's state after `live`.

    The record itself is the outcome of a dry run and of a change that changes nothing.
    """
    served, state = call.served, call.state
    strategy = served.strategy
    # A tree of our own: the new object shares parts with it, and these get their final form in place.
    old = live.tree()
    metadata, old_metadata = new.setdefault("metadata", {}), old["metadata"]
    given = metadata.pop("resourceVersion", "")
    if given in ("", "0"):
        if not strategy.allow_unconditional_update:
            path = "metadata.resourceVersion"
            error = f.FieldError(f.INVALID, path, 0, "must be specified for an update")
            refuse_invalid(call, call.name, [error])
    elif not given.isdigit():
        raise ApiError(500, "", f'strconv.ParseUint: parsing "{given}": invalid syntax')
    elif given != old_metadata["resourceVersion"]:
        raise errors.modified(served.kind, call.name)
    _keep_metadata(metadata, old_metadata)
    context = call.context()
    if call.subresource == "status":
        new = _status_only(call, new, old)
        metadata = new["metadata"]
    elif call.subresource == "finalize":
        new = dict(old, metadata=metadata, spec=new.get("spec") or {})
    elif served.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    strategy.prepare_for_update(new, old, context)
    for admission in state.admission:
        admission.update(call, new, old)
    if strategy.has_generation:
        generation = old_metadata.get("generation", 0)
        metadata["generation"] = generation + 1 if _spec_changed(new, old) else generation or 1
    refuse_invalid(call, call.name, strategy.validate_update(new, old, context))
    call.warnings += strategy.warnings(new, old, context)
    finish(call, new, old)
    if call.dry_run:
        return dry_record(call, new, live.revision)
    if _is_done(served.storage, new):
        return _delete(call, live, new)
    metadata["resourceVersion"] = old_metadata["resourceVersion"]
    if without_time_changes(old, new) == old:
        return live
    return state.store.submit_put(call.key, encoder(served, new), expect=live.revision)


def _keep_metadata(new: Tree, old: Tree) -> None:
    """What a client can't change, or may leave out."""
    new["name"] = old["name"]
    if "namespace" in old:
        new["namespace"] = old["namespace"]
    for member in ("uid", "creationTimestamp"):
        if not new.get(member):
            new[member] = old.get(member)
    if "deletionTimestamp" in old:
        # An object that is being deleted stays so, whatever the client sends.
        new["deletionTimestamp"] = old["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old and new.get("deletionGracePeriodSeconds") is None:
        new["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]
    new.pop("selfLink", None)
    new.pop("generation", None)
    if "generation" in old:
        new["generation"] = old["generation"]


# Kinds whose status subresource also takes changes of metadata, as upstream's strategies do.
_STATUS_KEEPS_METADATA = frozenset({"pods", "nodes", "namespaces", "services", "persistentvolumes"})


def _status_only(call: Call, new: Tree, old: Tree) -> Tree:
    result = dict(old)
    metadata = new["metadata"]
    if call.served.storage not in _STATUS_KEEPS_METADATA:
        managed, uid = metadata.get("managedFields"), metadata["uid"]
        # The uid is a precondition: validation compares it with the old one.
        metadata = old["metadata"] | {"uid": uid}
        metadata.pop("resourceVersion", None)
        metadata.pop("managedFields", None)
        if managed is not None:
            metadata["managedFields"] = managed
    result["metadata"] = metadata
    result.pop("status", None)
    if "status" in new:
        result["status"] = new["status"]
    return result


def _spec_changed(new: Tree, old: Tree) -> bool:
    outside = ("apiVersion", "kind", "metadata", "status")
    for name in (new.keys() ^ old.keys()) - set(outside):
        if not same_meaning(new.get(name), old.get(name)):
            return True
    return any(not same_meaning(new[name], old[name]) for name in new if name in old and name not in outside)


def _is_done(storage: str, tree: Tree) -> bool:
    """True for an object that waited for its last finalizer, which is gone."""
    metadata = tree["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if storage == "namespaces":
        return not (tree.get("spec") or {}).get("finalizers")
    return not metadata.get("deletionGracePeriodSeconds")


def _delete(call: Call, live: Record, new: Tree) -> asyncio.Future[Record]:
    loop = asyncio.get_running_loop()
    answer = dry_record(call, dict(new, metadata=dict(new["metadata"])), live.revision)

    async def run() -> Record:
        await call.state.store.delete(call.key, encoder(call.served, new), expect=live.revision)
        # The client sees the version it changed; watchers see the revision of the deletion.
        return answer

    return asyncio.ensure_future(run(), loop=loop)
