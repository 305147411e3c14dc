"""What create, update and delete share: encoding with a revision, dry runs, validation.

Everything up to the submission to the store is synchronous: between reading the latest state and submitting the
write nothing else can run, so a write never meets a conflict that its client did not ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubedra.api import errors
from kubedra.api.errors import ApiError
from kubedra.server.calls import Call
from kubedra.server.serving import Served, encode_object
from kubedra.server.store import Record, StoreUnavailable

Tree = dict[str, Any]


def encoder(served: Served, tree: Tree) -> Callable[[int], bytes]:
    """Encodes a stored tree with the revision it gets."""
    metadata = tree["metadata"]

    def encode(revision: int) -> bytes:
        metadata["resourceVersion"] = str(revision)
        return encode_object(tree, served.storage_kind)

    return encode


def dry_record(call: Call, tree: Tree, revision: int) -> Record:
    """A record that was not stored."""
    if revision:
        tree["metadata"]["resourceVersion"] = str(revision)
    else:
        tree["metadata"].pop("resourceVersion", None)
    return Record(call.key, revision, encode_object(tree, call.served.storage_kind))


def finish(call: Call, tree: Tree, old: Tree | None = None) -> None:
    """Brings a valid tree into the form that is stored; what is equal in the stored `old` has that form already."""
    strategy = call.served.strategy
    if old is None:
        strategy.canonicalize(tree)
        return
    changed = {
        name: value
        for name, value in tree.items()
        if name == "metadata" or name not in old or (value is not old[name] and value != old[name])
    }
    same = tree.keys() - changed.keys()
    strategy.canonicalize(changed)
    for name in [name for name in tree if name not in same and name not in changed]:
        del tree[name]
    for name, value in changed.items():
        if name not in same:
            tree[name] = value


def refuse_invalid(call: Call, name: str, found: list[Any]) -> None:
    """422 if there are faults."""
    if found:
        raise errors.invalid(call.served.kind, name, found)


def unavailable(error: StoreUnavailable) -> ApiError:
    """The answer when a write could not be made durable."""
    return ApiError(507, "InsufficientStorage", str(error))
