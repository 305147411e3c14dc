"""Admission: what changes or refuses an object on its way in, beside the strategy of its kind.

`plugins` lists those that are on, in upstream's order; `NodeRestriction` and `ServiceAccount` only where asked for.
"""

from __future__ import annotations

from collections.abc import Collection

from kubedra.server.admission.lifecycle import NamespaceLifecycle
from kubedra.server.admission.nodes import NodeRestriction, TaintNodes
from kubedra.server.admission.priority import Priority
from kubedra.server.admission.quota import Quota
from kubedra.server.admission.service_accounts import ServiceAccounts
from kubedra.server.admission.tolerations import DefaultTolerations
from kubedra.server.state import Admission

OPTIONAL = frozenset({"NodeRestriction", "ServiceAccount"})


def plugins(extra: Collection[str], *, taint_all_nodes: bool = True) -> list[Admission]:
    """The admission chain. Raises ValueError for a plugin that does not exist."""
    unknown = sorted(set(extra) - OPTIONAL)
    if unknown:
        raise ValueError(f"unknown admission plugin {unknown[0]!r}; there are {', '.join(sorted(OPTIONAL))}")
    chain: list[Admission] = [NamespaceLifecycle()]
    if "NodeRestriction" in extra:
        chain.append(NodeRestriction())
    chain.append(TaintNodes(taint_all_nodes))
    if "ServiceAccount" in extra:
        chain.append(ServiceAccounts())
    chain += [Priority(), DefaultTolerations(), Quota()]
    return chain
