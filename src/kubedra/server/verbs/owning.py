"""Managed fields in the verbs: who set what, in the version of the request and before strategies have their say.

Upstream counterpart: the use of FieldManager in apiserver ``endpoints/handlers`` (create.go, update.go, patch.go).
"""

from __future__ import annotations

from typing import Any

from kubedra.server.calls import Call
from kubedra.server.patch import update_managed_fields
from kubedra.server.store import Record

Tree = dict[str, Any]


def owned(call: Call, live: Record | None, new: Tree) -> Tree:
    """A defaulted tree in the version of the request, with its managed fields; `live` is None for a create."""
    old: Tree | None = None
    if live is not None:
        served = call.served
        old = live.shared_tree() if served.stored_as_served else served.from_storage(live.tree())
    return update_managed_fields(
        old, new, call.served.kind, call.manager, call.state.now(), subresource=call.subresource
    )
