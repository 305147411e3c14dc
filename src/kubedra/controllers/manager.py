"""All controllers of a cluster as one part, on shared caches. Counterpart: kube-controller-manager."""

from __future__ import annotations

from dataclasses import dataclass

from kubedra.base.clock import Clock
from kubedra.client.protocol import Client
from kubedra.controllers.claims import ClaimController
from kubedra.controllers.garbage import GarbageCollector
from kubedra.controllers.namespaces import NamespaceController
from kubedra.controllers.service_accounts import ServiceAccountController
from kubedra.controllers.shell import Controller, ControllerShell


@dataclass(frozen=True)
class ControllerSettings:
    """``ca``: the PEM certificate that is published in every namespace ("" publishes none)."""

    ca: str = ""


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
    return [
        ClaimController(),
        GarbageCollector(),
        NamespaceController(),
        ServiceAccountController(settings.ca),
    ]
