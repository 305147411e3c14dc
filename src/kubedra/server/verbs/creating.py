"""create: POST of a collection, and the creation that an apply of a missing object asks for."""

from __future__ import annotations

import asyncio
from typing import Any

from kubedra.api import errors
from kubedra.api.errors import ApiError, bad_request
from kubedra.server.calls import Call
from kubedra.server.decoding.bodies import decode
from kubedra.server.registry.defaulting import apply_defaults
from kubedra.server.store import Key, Record
from kubedra.server.verbs.owning import owned
from kubedra.server.verbs.storing import dry_record, encoder, finish, refuse_invalid

Tree = dict[str, Any]
# Generated names of the server that nobody may write by hand are 58 characters at most before the suffix.
_MAX_GENERATE = 63 - 5


async def create(call: Call) -> Record:
    """Answers POST with the stored record."""
    call.check_options()
    content_type = call.request.headers.get("content-type", "")
    tree = decode(call.request.body, content_type, call.served.kind, call.field_validation, call.warnings)
    return await create_tree(call, tree)


async def create_tree(call: Call, tree: Tree, *, manage: bool = True) -> Record:
    """Stores a new object from a tree in the version of the request."""
    outcome = prepare(call, tree, manage=manage)
    return outcome if isinstance(outcome, Record) else await outcome


def prepare(call: Call, tree: Tree, *, manage: bool = True) -> Record | asyncio.Future[Record]:
    """Everything of a create that happens at once; the record itself for a dry run."""
    served, state = call.served, call.state
    strategy = served.strategy
    metadata = tree.get("metadata")
    if metadata is None:
        metadata = tree["metadata"] = {}
    _place(call, metadata)
    now = state.now()
    apply_defaults(served.kind, tree, now)
    if manage:
        tree = owned(call, None, tree)
    tree = served.to_storage(tree)
    metadata = tree["metadata"]
    generated = metadata.get("generateName", "")
    if not metadata.get("name") and generated:
        metadata["name"] = _generate(call, generated)
    for admission in state.admission:
        admission.create(call, tree)
    call.name = metadata.get("name", "")
    metadata["uid"] = state.new_uid()
    metadata["creationTimestamp"] = now
    for member in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        metadata.pop(member, None)
    given_version = metadata.pop("resourceVersion", "")
    context = call.context()
    if served.has_status:
        keep = getattr(strategy, "keeps_status_on_create", False)
        if not keep:
            tree.pop("status", None)
    metadata.pop("generation", None)
    if strategy.has_generation:
        metadata["generation"] = 1
    strategy.prepare_for_create(tree, context)
    refuse_invalid(call, call.name, strategy.validate_create(tree, context))
    call.warnings += strategy.warnings(tree, None, context)
    if given_version not in ("", "0"):
        # Upstream's storage refuses this late and with a 500.
        raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
    finish(call, tree)
    key = call.key
    existing = state.store.latest(key)
    if existing is not None:
        raise _exists(call, existing)
    if call.dry_run:
        return dry_record(call, tree, 0)
    return state.store.submit_put(key, encoder(served, tree))


def _place(call: Call, metadata: Tree) -> None:
    """Namespace of the object against the one of the URL, and whether that namespace takes new objects."""
    if not call.served.kind.namespaced:
        metadata.pop("namespace", None)
        return
    given = metadata.get("namespace", "")
    if given and given != call.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = call.namespace
    record = call.state.store.latest(Key("namespaces", "", call.namespace))
    if record is None:
        raise errors.not_found(call.state.catalogue.stored["namespaces"].kind, call.namespace)
    namespace = record.shared_tree()
    if namespace["metadata"].get("deletionTimestamp"):
        name = metadata.get("name") or metadata.get("generateName", "")
        error = errors.forbidden(
            call.served.kind,
            name,
            f"unable to create new content in namespace {call.namespace} because it is being terminated",
        )
        error.details["causes"] = [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {call.namespace} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise error


def _generate(call: Call, base: str) -> str:
    base = base[:_MAX_GENERATE]
    for _ in range(8):
        name = base + call.state.name_suffix()
        if call.state.store.latest(Key(call.served.storage, call.namespace, name)) is None:
            break
    return name


def _exists(call: Call, existing: Record) -> ApiError:
    error = errors.already_exists(call.served.kind, call.name)
    if existing.shared_tree()["metadata"].get("deletionTimestamp"):
        return ApiError(409, "AlreadyExists", f"object is being deleted: {error.message}", error.details)
    return error
