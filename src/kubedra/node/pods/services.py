"""What a pod worker needs of its node, in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kubedra.api.core_v1 import Node, Pod
from kubedra.base.clock import Clock
from kubedra.cdi.folder import SpecFolder
from kubedra.client.events import EventRecorder
from kubedra.client.protocol import Client
from kubedra.node.claims.health import HealthReports
from kubedra.node.claims.preparing import ClaimPreparation
from kubedra.node.device_plugins.manager import DevicePluginManager
from kubedra.node.pods.environment import NodeFacts
from kubedra.node.runtime.contract import Runtime
from kubedra.node.settings import AgentSettings
from kubedra.wire.paths import NodePaths


@dataclass(frozen=True)
class NodeServices:
    """The parts of the agent that pod workers share."""

    client: Client
    settings: AgentSettings
    paths: NodePaths
    clock: Clock
    runtime: Runtime
    claims: ClaimPreparation
    health: HealthReports
    devices: DevicePluginManager
    cdi: SpecFolder
    events: EventRecorder
    # The node as last seen in the API, and the pods that hold resources on it.
    node: Callable[[], Node]
    active_pods: Callable[[], tuple[Pod, ...]]

    def facts(self) -> NodeFacts:
        """What containers may know of the node."""
        node = self.node()
        return NodeFacts(node.metadata.name, self.settings.address, node.status.allocatable)

    def log_path(self, pod: Pod, container: str, attempt: int) -> Path:
        """Where a container's log lies: the layout of /var/log/pods."""
        return self.log_folder(pod) / container / f"{attempt}.log"

    def log_folder(self, pod: Pod) -> Path:
        """The folder of all logs of a pod."""
        meta = pod.metadata
        # A path segment has 255 bytes, names alone may have 253.
        name = f"{meta.namespace}_{meta.name}"[:200]
        return self.paths.log_dir / "pods" / f"{name}_{meta.uid}"
