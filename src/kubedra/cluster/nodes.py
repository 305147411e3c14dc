"""The nodes of a fleet: an agent for each, and one part for all hollow ones."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from kubedra.api import kinds
from kubedra.base.clock import Clock
from kubedra.base.features import FeatureGates
from kubedra.client.protocol import Client
from kubedra.drivers.simulated.fleet import Fleet
from kubedra.server.access.certificates import Authority
from kubedra.wire.paths import NodePaths

LEASE_NAMESPACE = "kube-node-lease"
Run = Callable[[], Coroutine[Any, Any, None]]


def start_nodes(
    fleet: Fleet,
    data_dir: Path,
    run_dir: Path,
    runtime: str,
    gates: FeatureGates,
    client: Callable[..., Client],
    clock: Clock,
) -> Iterator[tuple[str, Run]]:
    """The parts that play the nodes of a fleet: a name and what to run, each."""
    hollow: list[Any] = []
    certificate = key = authority_file = None
    for name, pool in fleet.nodes():
        if pool.hollow:
            from kubedra.node.hollow import HollowNode

            plugin = {d.resource: d.count for d in pool.devices if d.served_by == "plugin"}
            hollow.append(
                HollowNode(name, cpu=pool.cpu, memory=pool.memory, pods=pool.pods, labels=pool.labels, devices=plugin)
            )
            continue
        from kubedra.node.agent import Agent
        from kubedra.node.settings import AgentSettings

        if certificate is None:
            authority = Authority(data_dir / "pki")
            authority_file = authority.ca_certificate
            certificate, key = authority.pair("kubelet")
            if not authority.has("kubelet"):
                authority.issue("kubelet", "system:node", ("system:nodes",), hosts=("localhost", "127.0.0.1", "::1"))
        settings = AgentSettings(
            node=name,
            data_dir=data_dir,
            run_dir=run_dir,
            runtime=runtime,
            cpu=pool.cpu,
            memory=pool.memory,
            pods=pool.pods,
            labels=pool.labels,
            tls_cert_file=certificate,
            tls_key_file=key,
            client_ca_file=authority_file,
            feature_gates=gates.overrides,
            version=gates.version,
        )
        own = client(f"system:node:{name}", "system:nodes", "kubedra:agents")

        def run(own: Client = own, settings: AgentSettings = settings) -> Coroutine[Any, Any, None]:
            return Agent(own, settings, clock).run()

        yield f"agent {name}", run
    if hollow:
        from kubedra.node.hollow import HollowNodes, HollowSettings

        everyone = client("kubedra:agents", "kubedra:agents")
        all_settings = HollowSettings(nodes=tuple(hollow))
        yield "hollow nodes", lambda: HollowNodes(everyone, all_settings, clock).run()


def check_paths(fleet: Fleet, data_dir: Path, run_dir: Path) -> None:
    """Refuse socket paths that are too long before anything starts. Raises ``SocketPathTooLong``."""
    for name, pool in fleet.nodes():
        if not pool.hollow:
            paths = NodePaths(data_dir, run_dir, name)
            for driver in {d.driver for d in pool.devices if d.driver}:
                paths.registration_socket(driver)
                paths.service_socket(driver)


async def fleet_is_ready(client: Client, fleet: Fleet, since: int = 0) -> bool:
    """Whether every node is Ready, offers its plugin resources, and every pool that DRA serves is published whole.

    What an earlier run of the cluster left counts for nothing: a node that had a lease by revision `since` is back when
    it has renewed that, and by then its agent has wiped the slices of before.
    """
    if since:
        leases = await client.list(kinds.LEASE, LEASE_NAMESPACE)
        old = {lease.metadata.name for lease in leases.items if int(lease.metadata.resource_version) <= since}
        if any(name in old for name, _ in fleet.nodes()):
            return False
    nodes = {n.metadata.name: n for n in (await client.list(kinds.NODE)).items}
    wanted: set[tuple[str, str]] = set()
    for name, pool in fleet.nodes():
        node = nodes.get(name)
        if node is None or not any(c.type == "Ready" and c.status == "True" for c in node.status.conditions):
            return False
        for devices in pool.devices:
            if devices.served_by == "dra":
                wanted.add((devices.driver, name))
            elif node.status.allocatable.get(devices.resource, "0") == "0":
                return False
    counts: dict[tuple[str, str], list[int]] = {}
    for s in (await client.list(kinds.RESOURCE_SLICE)).items:
        counts.setdefault((s.spec.driver, s.spec.pool.name), []).append(s.spec.pool.resource_slice_count or 0)
    return all(pool in counts and len(counts[pool]) >= max(counts[pool]) for pool in wanted)
