"""A hundred pods come and go while every part of the cluster is killed again and again: no device is ever held by two
claims, and at the end nothing is left.

What happens is drawn from a seed (KUBEDRA_CHAOS_SEED tries another one); how the processes interleave is not, so a
failure names its seed and what the parts said.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubedra.allocation.features import Features
from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.api.resource_v1 import ResourceClaim
from kubedra.audit import check_allocations
from kubedra.base.features import FeatureGates
from kubedra.client.clock import RealClock
from kubedra.client.https import HttpsClient
from kubedra.cluster.processes import end_containers
from kubedra.node.claims.checkpoint import ClaimCheckpoint
from kubedra.wire.paths import NodePaths
from tests.system.part_processes import PartProcesses

pytestmark = pytest.mark.system

SEED = int(os.environ.get("KUBEDRA_CHAOS_SEED", "7"))
PODS = 100
KILLS = int(os.environ.get("KUBEDRA_CHAOS_KILLS", "18"))
NODES = ("chaos-0", "chaos-1")
DRIVER = "gpu.example.com"
FLEET = """\
kind: Fleet
metadata: {name: chaos}
drivers: {nvidia: gpu.example.com}
pools:
- name: chaos
  count: 2
  cpu: "64"
  memory: 64Gi
  devices:
  - {card: A30-24G, count: 4, numaNodes: 2}
"""
ENDINGS = ("exit 0", "exit 3", "sleep 0.3", "sleep 0.5; exit 4")
RUNNING_ON = "exec sleep 600"
# A process that is looked at while it executes another program shows neither; it is looked at again.
MARK = "CHAOS_RUN"
METADATA = "dra-device-metadata"

Device = tuple[str, str, str]


class Chaos:
    """The cluster, what was created on it, and what has been seen."""

    def __init__(self, parts: PartProcesses, client: HttpsClient, seed: int) -> None:
        self.parts = parts
        self.client = client
        self.chance = random.Random(seed)
        self.paths = [NodePaths(parts.data, parts.run_dir, node) for node in NODES]
        self.pods: list[str] = []
        self.shared: list[str] = []
        self.made = self.killed = 0
        self.deployments: list[str] = []
        self.done = False
        self.polls = self.answered = 0
        self.kills: dict[str, int] = defaultdict(int)
        self.most_held = 0
        self.used: set[tuple[str, str]] = set()

    # ---- writing ----

    async def surely(self, write: Callable[[], Awaitable[Any]]) -> Any:
        """Write until the server has acknowledged it; that it was done by an attempt without an answer counts."""
        while True:
            try:
                return await write()
            except ConnectionError:
                await asyncio.sleep(0.05)
            except ApiError as error:
                if error.reason in ("AlreadyExists", "NotFound"):
                    return None
                if error.code < 500 and error.code not in (409, 429):
                    raise
                await asyncio.sleep(0.05)

    async def create(self, kind: Any, name: str, tree: dict[str, Any]) -> None:
        await self.surely(lambda: self.client.create(kind, {"metadata": {"name": name}, **tree}, "default"))

    def pod_spec(self, script: str, claim: dict[str, str], policy: str) -> dict[str, Any]:
        container: dict[str, Any] = {
            "name": "main",
            "image": "none",
            "command": ["/bin/sh", "-c", script],
            "env": [{"name": MARK, "value": str(self.parts.run_dir)}],
            "resources": {"claims": [{"name": "gpu"}]},
        }
        return {
            "restartPolicy": policy,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "resourceClaims": [{"name": "gpu", **claim}],
        }

    async def prepare(self) -> None:
        """What all pods need."""
        selector = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
        await self.surely(
            lambda: self.client.create(
                kinds.DEVICE_CLASS, {"metadata": {"name": "gpu"}, "spec": {"selectors": selector}}
            )
        )
        for count in (1, 2):
            exactly = {"deviceClassName": "gpu", "count": count}
            spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
            await self.create(kinds.RESOURCE_CLAIM_TEMPLATE, f"gpu-{count}", {"spec": {"spec": spec}})

    async def act(self) -> None:
        """Create pods of all sorts, and delete them, until there have been a hundred."""
        chance = self.chance
        while self.made < PODS:
            while self.made > PODS * (self.killed + 2) // KILLS:
                # Nothing new until more was killed; meanwhile who holds devices makes room for who waits for them.
                await asyncio.sleep(0.2)
                if len(self.pods) > 4:
                    await self.delete_pod(self.pods.pop(0), None)
            sort = chance.choices(("own", "ends", "shared", "deployment"), (4, 4, 1, 1))[0]
            template = {"resourceClaimTemplateName": chance.choice(("gpu-1", "gpu-1", "gpu-2"))}
            if sort == "own":
                await self.create_pod(f"own-{self.made}", RUNNING_ON, template, "Always")
                self.made += 1
            elif sort == "ends":
                policy = chance.choice(("Never", "Never", "OnFailure"))
                await self.create_pod(f"ends-{self.made}", chance.choice(ENDINGS), template, policy)
                self.made += 1
            elif sort == "shared":
                claim = f"shared-{self.made}"
                request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
                await self.create(kinds.RESOURCE_CLAIM, claim, {"spec": {"devices": {"requests": [request]}}})
                self.shared.append(claim)
                for part in "ab":
                    await self.create_pod(f"{claim}-{part}", RUNNING_ON, {"resourceClaimName": claim}, "Always")
                self.made += 2
            elif len(self.deployments) < 3:
                name = f"many-{self.made}"
                labels = {"app": name}
                pod = {"metadata": {"labels": labels}, "spec": self.pod_spec(RUNNING_ON, template, "Always")}
                spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": pod}
                await self.create(kinds.DEPLOYMENT, name, {"spec": spec})
                self.deployments.append(name)
                self.made += 3
            else:
                patch = {"spec": {"replicas": chance.randrange(4)}}
                name = chance.choice(self.deployments)
                await self.surely(
                    lambda name=name, patch=patch: self.client.patch(kinds.DEPLOYMENT, name, patch, "default")
                )
            # Eight devices: what has had its time makes room for the next.
            while len(self.pods) > 12 or (self.pods and chance.random() < 0.3):
                await self.delete_pod(self.pods.pop(chance.randrange(len(self.pods))), chance.choice((None, None, 0)))
            await asyncio.sleep(chance.random() * 0.1)

    async def create_pod(self, name: str, script: str, claim: dict[str, str], policy: str) -> None:
        await self.create(kinds.POD, name, {"spec": self.pod_spec(script, claim, policy)})
        self.pods.append(name)

    async def delete_pod(self, name: str, grace: int | None) -> None:
        await self.surely(lambda: self.client.delete(kinds.POD, name, "default", grace_period_seconds=grace))

    async def kill(self) -> None:
        """Kill parts at random and start them again, now and then two at once."""
        chance = random.Random(self.chance.random())
        names = list(self.parts.commands)
        # Each at least twice, in an order that is drawn.
        order = [*names, *names, *chance.choices(names, k=KILLS)][:KILLS]
        chance.shuffle(order)
        while order:
            # What is killed should be in the middle of something: wait for pods that got devices since the last time.
            used, end = len(self.used), time.monotonic() + 4
            while len(self.used) < used + 2 and time.monotonic() < end:
                await asyncio.sleep(0.02)
            await asyncio.sleep(chance.random() * 0.3)
            victims = {order.pop()}
            if order and chance.random() < 0.3:
                victims.add(order.pop())
            for part in victims:
                self.parts.kill(part)
                self.kills[part] += 1
            self.killed = KILLS - len(order)
            await asyncio.sleep(chance.random() * 0.4)
            for part in victims:
                self.parts.start(part)

    # ---- watching ----

    async def watch(self) -> None:
        """Look at everything that can say who holds a device, again and again, until told to end."""
        while not self.done:
            self.parts.check_alive()
            self.polls += 1
            for paths in self.paths:
                self.check_checkpoints(paths)
            self.check_processes()
            try:
                await self.check_claims()
                self.answered += 1
            except ConnectionError:
                pass
            except ApiError as error:
                if error.code < 500:
                    raise
            await asyncio.sleep(0.05)

    async def check_claims(self) -> None:
        claims = (await self.client.list(kinds.RESOURCE_CLAIM)).items
        held: dict[Device, list[str]] = defaultdict(list)
        for claim in claims:
            for device in devices_of(claim):
                held[device].append(claim.metadata.name)
        self.no_double("allocated to", held)
        self.most_held = max(self.most_held, len(held))
        found = await self.violations(claims)
        # Slices are wiped and published again at every start of an agent: that a device is unknown is no fault then.
        serious = [v for v in found if v.code not in ("device-unknown", "pool-unusable", "node-selector-too-wide")]
        assert not serious, serious

    async def violations(self, claims: Any) -> list[Any]:
        """What kubedra's own checker says."""
        client = self.client
        return check_allocations(
            Features.of(FeatureGates()),
            nodes=(await client.list(kinds.NODE)).items,
            classes=(await client.list(kinds.DEVICE_CLASS)).items,
            slices=(await client.list(kinds.RESOURCE_SLICE)).items,
            rules=(),
            claims=claims,
        )

    def check_checkpoints(self, paths: NodePaths) -> None:
        # The agent's own checkpoint must always be whole; what it lists may be unprepared already (it asks again), so
        # who holds a device is for the driver to say.
        ClaimCheckpoint(paths.checkpoint_dir).load()
        drivers: dict[Any, list[str]] = defaultdict(list)
        for record in driver_records(paths):
            for held in record["devices"]:
                drivers[DRIVER, held["allocated"]["pool"], held["allocated"]["device"]].append(record["name"])
        self.no_double("prepared, says the driver, for", drivers)

    def check_processes(self) -> None:
        first = self.device_users()
        suspects = {device for device, users in first.items() if len({claim for _, claim in users}) > 1}
        if suspects:
            # One may have ended before the other began, while we looked: only those that are still there count.
            again = self.device_users()
            for device in suspects:
                users = {user for user in first[device] if user in again.get(device, ())}
                claims = {claim for _, claim in users}
                assert len(claims) < 2, f"processes of different claims use {device}: {users}"

    def device_users(self) -> dict[str, set[tuple[str, str]]]:
        """Per device the processes in containers that were given it, and under which claim."""
        users: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for pid, environment in self.containers():
            for name, value in environment.items():
                if name.startswith("KUBEDRA_DEVICE_"):
                    users[value].add((pid, claim_key(environment)))
                    self.used.add((value, claim_key(environment)))
        return users

    def containers(self) -> list[tuple[str, dict[str, str]]]:
        """Everything that runs in containers of this test."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if not entry.name.isdigit():
                    continue
                records = (entry / "environ").read_text(errors="replace").split("\0")
                start = (entry / "stat").read_text().rpartition(")")[2].split()[19]
            except OSError:
                continue
            environment = dict(record.split("=", 1) for record in records if "=" in record)
            if environment.get(MARK) == str(self.parts.run_dir):
                found.append((f"{entry.name}:{start}", environment))
        return found

    def supervisors(self) -> list[str]:
        """The processes between agents and containers, which name the folder of their container."""
        mark = os.fsencode(self.parts.data / "nodes")
        found = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue
            if any(b".supervisor." in word and word.startswith(mark) for word in words):
                found.append(entry.name)
        return found

    @staticmethod
    def no_double(what: str, held: dict[Any, list[str]]) -> None:
        twice = {device: claims for device, claims in held.items() if len(claims) > 1}
        assert not twice, f"devices are {what} two claims: {twice}"

    # ---- the end ----

    async def calm_down(self) -> None:
        """Leave one replica of each deployment, and nothing else."""
        for name in self.deployments:
            await self.surely(
                lambda name=name: self.client.patch(kinds.DEPLOYMENT, name, {"spec": {"replicas": 1}}, "default")
            )
        for name in self.pods:
            await self.delete_pod(name, None)
        for pod in (await self.client.list(kinds.POD, "default")).items:
            if not pod.metadata.owner_references:
                await self.delete_pod(pod.metadata.name, None)

    async def unhealed(self) -> list[str]:
        """What is not as it should be once nobody kills any more: lost replicas, claims that nobody asked for."""
        pods = (await self.client.list(kinds.POD, "default")).items
        claims = {claim.metadata.name: claim for claim in (await self.client.list(kinds.RESOURCE_CLAIM)).items}
        found = []
        wanted = set(self.shared)
        for pod in pods:
            if pod.status.phase != "Running" or pod.metadata.deletion_timestamp:
                found.append(f"pod {pod.metadata.name} is {pod.status.phase}")
            wanted |= {status.resource_claim_name or "" for status in pod.status.resource_claim_statuses}
        found += [f"{len(pods)} pods for {len(self.deployments)} deployments"] * (len(pods) != len(self.deployments))
        found += [f"claim {name} of nobody" for name in claims.keys() - wanted]
        found += [f"claim {name} is lost" for name in wanted - claims.keys()]
        for name, claim in claims.items():
            # A claim of its own stays allocated, though not reserved, when a binding was undone: the next pod uses it.
            if name in self.shared:
                found += [f"claim {name} is reserved for {c.name}" for c in claim.status.reserved_for]
            elif claim.status.allocation is None:
                found.append(f"claim {name} is not allocated")
        return found

    async def delete_all(self) -> None:
        for kind in (kinds.DEPLOYMENT, kinds.POD, kinds.RESOURCE_CLAIM, kinds.RESOURCE_CLAIM_TEMPLATE):
            await self.surely(lambda kind=kind: self.client.delete_collection(kind, "default"))

    async def left(self) -> list[str]:
        """What is still there."""
        found = [f"process {pid}" for pid, _ in self.containers()]
        found += [f"supervisor {pid}" for pid in self.supervisors()]
        for kind in (
            kinds.DEPLOYMENT,
            kinds.REPLICA_SET,
            kinds.POD,
            kinds.RESOURCE_CLAIM,
            kinds.RESOURCE_CLAIM_TEMPLATE,
        ):
            for obj in (await self.client.list(kind, "default")).items:
                meta = obj.metadata
                found.append(f"{kind.kind} {meta.name} (deleted {meta.deletion_timestamp}, {meta.finalizers})")
        for paths in self.paths:
            found += [
                f"claim {s.name} in the checkpoint of {paths.node}"
                for s in ClaimCheckpoint(paths.checkpoint_dir).load()
            ]
            found += [f"claim {r['name']} of the driver on {paths.node}" for r in driver_records(paths)]
            folders = (paths.cdi_dir, paths.pods_dir, paths.log_dir / "pods")
            found += [
                str(p) for f in folders if f.exists() for p in f.iterdir() if not p.name.startswith(".supervisor.")
            ]
            found += [
                str(p) for p in paths.driver_data_dir.glob("*/*") if p.name not in ("checkpoint.json", "lock", METADATA)
            ]
            found += [path for path in files_below(paths.driver_data_dir) if f"/{METADATA}/" in path]
        found += [path for path in files_below(self.parts.data) if path.endswith(".tmp")]
        return found

    async def until(self, what: str, left: Callable[[], Awaitable[list[str]]], seconds: float) -> None:
        end = time.monotonic() + seconds
        while found := await left():
            self.parts.check_alive()
            assert time.monotonic() < end, f"{what}: {found}"
            await asyncio.sleep(0.1)


def devices_of(claim: ResourceClaim) -> list[Device]:
    allocation = claim.status.allocation
    return [(r.driver, r.pool, r.device) for r in allocation.devices.results] if allocation is not None else []


def files_below(folder: Path) -> list[str]:
    """All files below a folder, from which others are just being removed."""
    return [f"{parent}/{name}" for parent, _, names in os.walk(folder) for name in names]


def driver_records(paths: NodePaths) -> list[dict[str, Any]]:
    """The claims in the checkpoint of the driver."""
    try:
        content = (paths.driver_data_dir / DRIVER / "checkpoint.json").read_bytes()
    except FileNotFoundError:
        return []
    found: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.decode(content)["data"])["claims"]
    return found


def claim_key(environment: dict[str, str]) -> str:
    """What tells the claims of containers apart: the pod, but for pods that share one."""
    name = environment["HOSTNAME"]
    return name.rpartition("-")[0] if name.startswith("shared-") else environment["KUBEDRA_CONTAINER_ID"]


@pytest.fixture
async def chaos(tmp_path: Path) -> AsyncIterator[Chaos]:
    run_dir = Path(tempfile.mkdtemp(prefix="kc-"))
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(FLEET)
    parts = PartProcesses(tmp_path, run_dir, fleet, NODES)
    try:
        client = await parts.start_all()
        yield Chaos(parts, client, SEED)
        await client.close()
    finally:
        parts.stop_all()
        await end_containers(parts.data, RealClock())
        shutil.rmtree(run_dir, ignore_errors=True)


@pytest.mark.timeout(240)
async def test_nothing_is_lost_and_nothing_leaks(chaos: Chaos) -> None:
    parts = chaos.parts
    try:
        await chaos.prepare()
        watching = asyncio.create_task(chaos.watch())
        working = asyncio.gather(chaos.act(), chaos.kill())
        await asyncio.wait((watching, working), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            working.cancel()
            await watching
        await working
        await chaos.calm_down()
        await chaos.until("this has not healed", chaos.unhealed, 60)
        assert not await chaos.violations((await chaos.client.list(kinds.RESOURCE_CLAIM)).items)
        await chaos.delete_all()
        await chaos.until("these are left", chaos.left, 90)
        chaos.done = True
        await watching
        assert chaos.answered > 10
        assert len(chaos.used) > 10, "hardly a pod got devices"
        assert chaos.most_held == 8, "the devices were never all in use"
        assert set(chaos.kills) == set(parts.commands)
        assert not await chaos.violations(())
        codes = parts.stop_all()
        assert set(codes.values()) == {0}, codes
        sockets = [str(path) for path in parts.run_dir.rglob("*") if path.is_socket()]
        assert not sockets
        traces = {part: parts.said(part) for part in parts.commands if "Traceback" in parts.said(part, 1 << 20)}
        assert not traces
    except BaseException as error:
        said = "\n".join(f"--- {part} said\n{parts.said(part)}" for part in parts.commands)
        error.add_note(f"KUBEDRA_CHAOS_SEED={SEED}, killed {dict(chaos.kills)}, {chaos.polls} looks\n{said}")
        raise
