"""All controllers of a cluster as one part, on shared caches. Counterpart: kube-controller-manager."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubedra.base.clock import Clock
from kubedra.base.features import FeatureGates
from kubedra.client.protocol import Client
from kubedra.controllers.claims import ClaimController
from kubedra.controllers.daemon_sets import DaemonSetController
from kubedra.controllers.deployments import DeploymentController
from kubedra.controllers.device_taints import DeviceTaintController
from kubedra.controllers.disruption import DisruptionController
from kubedra.controllers.garbage import GarbageCollector
from kubedra.controllers.jobs import JobController
from kubedra.controllers.namespaces import NamespaceController
from kubedra.controllers.node_lifecycle import GRACE_SECONDS, NodeLifecycleController
from kubedra.controllers.replica_sets import ReplicaSetController
from kubedra.controllers.service_accounts import ServiceAccountController
from kubedra.controllers.shell import Controller, ControllerShell
from kubedra.controllers.stateful_sets import StatefulSetController


@dataclass(frozen=True)
class ControllerSettings:
    """What controllers are told.

    ``ca``: the PEM certificate that is published in every namespace ("" publishes none).
    ``node_grace_seconds``: how long a node may be silent (upstream's --node-monitor-grace-period).
    """

    ca: str = ""
    node_grace_seconds: float = GRACE_SECONDS
    feature_gates: FeatureGates = field(default_factory=FeatureGates)


class ControllerManager:
    """Runs every controller until cancelled."""

    def __init__(self, client: Client, settings: ControllerSettings, clock: Clock) -> None:
        self._shell = ControllerShell(client, clock, controllers(settings))
        self.synced = self._shell.synced

    async def run(self) -> None:
        """Run until cancelled."""
        await self._shell.run()


def controllers(settings: ControllerSettings) -> list[Controller]:
    """The controllers in the order they start."""
    gates = settings.feature_gates
    return [
        ClaimController(),
        GarbageCollector(),
        NamespaceController(),
        ServiceAccountController(settings.ca),
        ReplicaSetController(),
        DeploymentController(),
        StatefulSetController(),
        DaemonSetController(),
        JobController(),
        NodeLifecycleController(settings.node_grace_seconds),
        DisruptionController(),
        *([DeviceTaintController(gates)] if gates.enabled("DRADeviceTaints") else []),
    ]
