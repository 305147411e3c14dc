"""The simulated drivers of a fleet as a process of its own."""

from __future__ import annotations

from pathlib import Path

from kubedra.client.clock import RealClock
from kubedra.client.https import HttpsClient
from kubedra.client.kubeconfig import load
from kubedra.drivers.simulated.service import SimulatedDriver, SimulatedDriverSettings


async def serve(settings: SimulatedDriverSettings, kubeconfig: Path) -> None:
    """Serve the fleet against the cluster of ``kubeconfig`` until cancelled."""
    client = HttpsClient(load([kubeconfig]), user_agent="kubedra-simulated-driver")
    try:
        await SimulatedDriver(client, settings, RealClock()).run()
    finally:
        await client.close()
