"""Namespaces that must stay. (That terminating ones take nothing new is checked where objects are placed.)

Upstream counterpart: apiserver/pkg/admission/plugin/namespace/lifecycle.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import errors
from kubedra.server.admission.base import Plugin
from kubedra.server.calls import Call

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle(Plugin):
    """Refuses to delete the system's namespaces."""

    def delete(self, call: Call, old: dict[str, Any]) -> None:
        """403 for a namespace that must stay."""
        if call.served.storage == "namespaces" and call.name in IMMORTAL:
            raise errors.forbidden(call.served.kind, call.name, "this namespace may not be deleted")
