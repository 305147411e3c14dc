"""Objects that exist from the first start: namespaces, priority classes, and the default roles.

Upstream counterpart: pkg/controlplane (system namespaces), PriorityClass and RBAC post-start hooks. Each is created
only where it is missing, so what people change stays changed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.api.kinds import Kind
from kubedra.server.access.bootstrap_roles import objects as role_objects
from kubedra.server.access.users import MASTERS, User
from kubedra.server.calls import Call
from kubedra.server.requests import Request
from kubedra.server.state import ServerState
from kubedra.server.store import Key
from kubedra.server.verbs.creating import create_tree

Tree = dict[str, Any]
NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")
USER = User("system:apiserver", (MASTERS,))


def _objects() -> list[tuple[Kind[Any], Tree]]:
    found: list[tuple[Kind[Any], Tree]] = [
        (kinds.PRIORITY_CLASS, _priority("system-cluster-critical", 2_000_000_000, "cluster")),
        (kinds.PRIORITY_CLASS, _priority("system-node-critical", 2_000_001_000, "node")),
    ]
    for kind, tree in role_objects():
        found.append((kind, tree))
    return found


def _priority(name: str, value: int, what: str) -> Tree:
    return {
        "metadata": {"name": name},
        "value": value,
        "description": f"Used for system critical pods that must not be moved from their current {what}.",
    }


async def bootstrap(state: ServerState) -> None:
    """Creates what is missing."""
    await asyncio.gather(*[_ensure(state, kinds.NAMESPACE, {"metadata": {"name": name}}) for name in NAMESPACES])
    await asyncio.gather(*[_ensure(state, kind, tree) for kind, tree in _objects()])


async def _ensure(state: ServerState, kind: Kind[Any], tree: Tree) -> None:
    served = state.catalogue.find(kind.group, kind.version, kind.plural)
    if served is None:
        return
    metadata = tree["metadata"]
    namespace = metadata.get("namespace", "")
    if state.store.get(Key(served.storage, namespace, metadata["name"])) is not None:
        return
    request = Request("POST", kind.path(namespace), {}, {"user-agent": "kube-apiserver"}, b"", USER)
    call = Call(state, request, served, "create", namespace, metadata["name"])
    try:
        await create_tree(call, {"apiVersion": kind.api_version, "kind": kind.kind} | tree)
    except ApiError as error:
        if error.code != 409:
            raise
