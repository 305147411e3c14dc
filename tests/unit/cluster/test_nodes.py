"""When the nodes of a fleet count as ready."""

from __future__ import annotations

from pathlib import Path

from kubedra.api import kinds
from kubedra.cluster.nodes import LEASE_NAMESPACE, fleet_is_ready
from kubedra.drivers.simulated.fleet import parse
from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings

FLEET = parse("kind: Fleet\npools:\n- name: pool\n")


async def test_what_an_earlier_run_left_is_not_ready(tmp_path: Path) -> None:
    server = Server(ServerSettings(tmp_path / "data", http=False))
    await server.start()
    client = InProcessClient(server)
    assert not await fleet_is_ready(client, FLEET)
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    (name,) = (name for name, _ in FLEET.nodes())
    await client.create(kinds.NODE, {"metadata": {"name": name}, "status": ready})
    await client.create(kinds.LEASE, {"metadata": {"name": name}, "spec": {"holderIdentity": "a"}}, LEASE_NAMESPACE)
    assert await fleet_is_ready(client, FLEET)
    since = server.store.revision
    assert not await fleet_is_ready(client, FLEET, since)
    await client.patch(kinds.LEASE, name, {"spec": {"holderIdentity": "b"}}, LEASE_NAMESPACE)
    assert await fleet_is_ready(client, FLEET, since)
    await client.close()
    await server.stop()
