"""Service accounts of pods: the account's name and the projected token volume (optional plugin).

Upstream counterpart: plugin/pkg/admission/serviceaccount.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import errors
from kubedra.server.admission.base import Plugin
from kubedra.server.calls import Call
from kubedra.server.store import Key

Tree = dict[str, Any]
MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
# The token lives an hour and a bit; the agent asks for a new one in time.
EXPIRATION = 3607


class ServiceAccounts(Plugin):
    """Gives every pod an account, and the token of it unless that is switched off."""

    def create(self, call: Call, tree: Tree) -> None:
        """Sets the account and mounts its token."""
        if call.served.storage != "pods":
            return
        metadata, spec = tree["metadata"], tree.setdefault("spec", {})
        if "kubernetes.io/config.mirror" in (metadata.get("annotations") or {}):
            return
        name = spec.get("serviceAccountName") or "default"
        record = call.state.store.latest(Key("serviceaccounts", call.namespace, name))
        if record is None:
            why = f'error looking up service account {call.namespace}/{name}: serviceaccount "{name}" not found'
            raise errors.forbidden(call.served.kind, metadata.get("name", ""), why)
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = record.shared_tree()
        wanted = spec.get("automountServiceAccountToken")
        if wanted is None:
            wanted = account.get("automountServiceAccountToken")
        if wanted is not False:
            self._mount(call, spec)

    @staticmethod
    def _mount(call: Call, spec: Tree) -> None:
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        without = [c for c in containers if not any(m.get("mountPath") == MOUNT for m in c.get("volumeMounts") or ())]
        if not without:
            return
        name = f"kube-api-access-{call.state.name_suffix()}"
        for container in without:
            container["volumeMounts"] = [
                *(container.get("volumeMounts") or ()),
                {"name": name, "readOnly": True, "mountPath": MOUNT},
            ]
        field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
        sources = [
            {"serviceAccountToken": {"expirationSeconds": EXPIRATION, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ]
        volume = {"name": name, "projected": {"sources": sources, "defaultMode": 420}}
        spec["volumes"] = [*(spec.get("volumes") or ()), volume]
