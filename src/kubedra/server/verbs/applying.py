"""apply: server-side apply of an object that exists or does not.

Upstream counterpart: ``applyPatcher`` in apiserver ``endpoints/handlers/patch.go``.
"""

from __future__ import annotations

from kubedra.api import errors
from kubedra.server import patch
from kubedra.server.access.users import Attributes
from kubedra.server.calls import Call
from kubedra.server.registry.defaulting import apply_defaults
from kubedra.server.store import Record
from kubedra.server.verbs.creating import create_tree
from kubedra.server.verbs.patching import checked
from kubedra.server.verbs.updating import check_name, replace


async def apply(call: Call) -> tuple[Record, bool]:
    """Answers an apply; the second member says that the object was created."""
    config = patch.read_apply_config(call.request.body).value
    served, state = call.served, call.state
    live = state.store.latest(call.key)
    if live is None and call.subresource:
        raise errors.not_found(served.kind, call.name)
    tree = patch.apply(
        # A tree of our own: what comes out shares parts with it and is cleaned in place.
        None if live is None else served.from_storage(live.tree()),
        config,
        served.kind,
        call.manager,
        state.now(),
        force=call.flag("force"),
        subresource=call.subresource,
    )
    tree = checked(call, tree)
    metadata = tree.setdefault("metadata", {})
    check_name(call, metadata)
    if live is None:
        if metadata.get("uid"):
            why = f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing object was found"
            raise errors.conflict(served.kind, call.name, why)
        _may_create(call)
        metadata.pop("resourceVersion", None)
        return await create_tree(call, tree, manage=False), True
    apply_defaults(served.kind, tree, state.now())
    outcome = replace(call, live, served.to_storage(tree))
    return (outcome if isinstance(outcome, Record) else await outcome), False


def _may_create(call: Call) -> None:
    """Whoever applies what isn't there needs the right to create, too. Raises 403."""
    kind, user = call.served.kind, call.request.user
    attributes = Attributes(
        verb="create", group=kind.group, resource=kind.plural, namespace=call.namespace, version=kind.version
    )
    decision = call.state.authorizer.authorize(user, attributes)
    if not decision.allowed:
        raise errors.forbidden(kind, call.name, attributes.refusal(user, decision.reason))
