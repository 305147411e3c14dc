"""Every namespace has the service account ``default``, and the certificate authority of the cluster as a ConfigMap.

Counterparts: ``pkg/controller/serviceaccount`` (default account) and ``certificates/rootcacertpublisher``.
"""

from __future__ import annotations

from kubedra.api import core_v1, kinds
from kubedra.api.errors import ApiError
from kubedra.controllers.actions import Action, Create, Patch
from kubedra.controllers.shell import Context, Controller

ROOT_CA = "kube-root-ca.crt"
ROOT_CA_NOTE = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def decide_namespace(
    namespace: core_v1.Namespace, *, has_account: bool, published: str | None, ca: str
) -> list[Action]:
    """What a namespace lacks. ``published`` is the certificate that stands there, ``ca`` the one that should."""
    if namespace.metadata.deletion_timestamp or namespace.status.phase == "Terminating":
        return []
    name = namespace.metadata.name
    actions: list[Action] = []
    if not has_account:
        actions.append(Create(kinds.SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": name}}, name))
    if ca and published != ca:
        data = {"ca.crt": ca}
        if published is None:
            meta = {"name": ROOT_CA, "namespace": name, "annotations": {"kubernetes.io/description": ROOT_CA_NOTE}}
            actions.append(Create(kinds.CONFIG_MAP, {"metadata": meta, "data": data}, name))
        else:
            actions.append(Patch(kinds.CONFIG_MAP, ROOT_CA, name, {"data": data}))
    return actions


class ServiceAccountController(Controller):
    """Keys are names of namespaces."""

    name = "serviceaccount-controller"

    def __init__(self, ca: str = "") -> None:
        self._ca = ca

    def setup(self, context: Context) -> None:
        """Watch namespaces, accounts and the published certificates."""
        self._context = context
        self._namespaces = context.watch(kinds.NAMESPACE, lambda n: [n.metadata.name])
        self._accounts = context.watch(
            kinds.SERVICE_ACCOUNT, lambda a: [a.metadata.namespace] if a.metadata.name == "default" else []
        )
        self._config_maps = context.watch(
            kinds.CONFIG_MAP, lambda c: [c.metadata.namespace] if c.metadata.name == ROOT_CA else []
        )

    async def sync(self, key: str) -> float | None:
        """Make what a namespace lacks."""
        namespace = self._namespaces.get("", key)
        if namespace is None:
            return None
        config_map = self._config_maps.get(key, ROOT_CA)
        actions = decide_namespace(
            namespace,
            has_account=self._accounts.get(key, "default") is not None,
            published=config_map.data.get("ca.crt", "") if config_map is not None else None,
            ca=self._ca,
        )
        for action in actions:
            try:
                await self._context.carry_out([action])
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
        return None
