"""The eight steps of the demo; each applies files, shows what came out, and checks it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kubedra.api import codec, core_v1, kinds
from kubedra.cli.demo.story import NAMESPACE, Story
from kubedra.cluster.state import Running
from kubedra.drivers.simulated.cards import cards_of
from kubedra.drivers.simulated.fleet import Fleet

NUMA = "resource.kubernetes.io/numaNode"
ROOT = "resource.kubernetes.io/pcieRoot"
# What comes and goes by nature: slices are published anew, leases renewed, events told.
FLEETING = {"ResourceSlice", "Lease", "Event"}


async def old_way(story: Story, fleet: Fleet) -> None:
    """1: a count can't say which card."""
    story.step(1, "The old way: a count can't say which card")
    await story.apply("01-old-way.yaml")
    pod = await story.running("old-way")
    await story.log("old-way")
    cards = {name: next(cards_of(name, pool)).card for name, pool in fleet.nodes() if pool.devices}
    small = min(int(c.capacity["memory"].removesuffix("Mi")) for c in cards.values())
    got = cards[pod.spec.node_name]
    story.say(f"   The pod asked for example.com/gpu: 1 and got a {got.title} on {pod.spec.node_name}.")
    small_one = int(got.capacity["memory"].removesuffix("Mi")) == small
    story.check("one card by count lands on the small card", small_one, pod.spec.node_name)


async def big_gpu(story: Story, fleet: Fleet) -> None:
    """2: say what you need."""
    story.step(2, 'The new way: "one card of at least 80Gi"')
    await story.apply("02-big-gpu.yaml")
    pod = await story.running("big")
    lines = await story.log("big")
    (device,) = await story.devices_of("big")
    story.check("the pod runs on a node with 80 GiB cards", pod.spec.node_name == "a100-0", pod.spec.node_name)
    story.check("the process sees the device that the claim got", "/".join(device) in lines[0], lines)


async def pairs(story: Story, fleet: Fleet) -> None:
    """3: two cards that belong together."""
    story.step(3, "Two cards that belong together")
    await story.apply("03-old-pair.yaml")
    pod = await story.running("old-pair")
    lines = await story.log("old-pair", 2)
    pool = dict(fleet.nodes())[pod.spec.node_name]
    numa = {c.name: c.numa_node for c in cards_of(pod.spec.node_name, pool)}
    sides = sorted({numa[line.rpartition("/")[2]] for line in lines if "KUBEDRA_DEVICE" in line})
    story.say(f"   By count the pair lies on NUMA nodes {sides} of {pod.spec.node_name}.")
    story.check("by count the pair is split", len(sides) == 2, sides)

    await story.apply("03-holder.yaml")
    await story.running("holder")
    for name, attribute in (("pair-numa", NUMA), ("pair-root", ROOT)):
        await story.apply(f"03-{name}.yaml")
        await story.running(name)
        devices = await story.devices_of(name)
        values = await story.attribute(devices, attribute)
        story.say(f"   {', '.join('/'.join(d) for d in devices)}: {attribute} = {values[0]}")
        same = len(values) == 2 and values[0] is not None and values[0] == values[1]
        story.check(f"by claim the pair shares its {attribute.rpartition('/')[2]}", same, values)

    await story.apply("03-pair-split.yaml")
    text = await story.waiting("pair-split", "numaNode")
    story.say(f"   pair-split: {text}")
    story.check("where only split pairs are free, the pod waits and the reason names numaNode", "numaNode" in text)


async def deployment(story: Story, fleet: Fleet) -> None:
    """4: replicas with claims of their own."""
    story.step(4, "A Deployment of three, each replica with its own claim")
    await story.apply("04-deployment.yaml")

    async def replicas(count: int) -> dict[str, Any] | None:
        pods = (await story.client.list(kinds.POD, NAMESPACE, label_selector="app=workers")).items
        if len(pods) != count or any(p.status.phase != "Running" or p.metadata.deletion_timestamp for p in pods):
            return None
        return {p.metadata.name: await story.devices_of(p.metadata.name) for p in pods}

    before = await story.until("three workers run", lambda: replicas(3))
    held = [d for devices in before.values() for d in devices]
    for name, devices in before.items():
        story.say(f"   {name}: {', '.join('/'.join(d) for d in devices)}")
    story.check("three replicas hold three different cards", len(held) == len(set(held)) == 3, held)
    story.command("kubectl scale deployment workers --replicas=1")
    await story.client.patch(kinds.DEPLOYMENT, "workers", {"spec": {"replicas": 1}}, NAMESPACE)
    after = await story.until("one worker is left", lambda: replicas(1))

    async def freed() -> set[Any] | None:
        now = await _held(story)
        free = {d for d in held if d not in now}
        return free if len(free) == 2 else None

    free = await story.until("two cards are free again", freed)
    kept = [d for devices in after.values() for d in devices]
    story.check("scaling down frees exactly the two cards of the replicas that went", set(held) - free == set(kept))


async def shared(story: Story, fleet: Fleet) -> None:
    """5: one claim, two pods."""
    story.step(5, "Two pods share one claim")
    await story.apply("05-shared.yaml")
    first, second = await story.running("shared-a"), await story.running("shared-b")
    await story.log("shared-a")
    await story.log("shared-b")
    same = await story.devices_of("shared-a") == await story.devices_of("shared-b")
    same_node = first.spec.node_name == second.spec.node_name
    story.check("both see the same card on the same node", same and same_node)
    claim = await story.client.get(kinds.RESOURCE_CLAIM, "shared", NAMESPACE)
    story.check("the claim is reserved for both", len(claim.status.reserved_for) == 2, claim.status.reserved_for)


async def too_big(story: Story, fleet: Fleet, why: Callable[[str], Awaitable[tuple[int, str]]]) -> None:
    """6: a request that nothing satisfies."""
    story.step(6, "A request that nothing satisfies: why?")
    await story.apply("06-too-big.yaml")
    await story.waiting("too-big", "cannot allocate all claims")
    story.command("kubedra why pod/too-big")
    code, text = await why("too-big")
    for line in text.splitlines():
        story.say(f"   {line}")
    story.check("why answers no", code == 3, code)
    story.check("it names the condition that fails", "96Gi" in text)
    story.check("it names what is nearest, and that an H100 misses 80Gi by 361Mi", "80Gi" in text and "361Mi" in text)


async def freed_device(story: Story, fleet: Fleet) -> None:
    """7: a device goes from one pod to the next."""
    story.step(7, "A pod goes, the waiting one gets its device")
    story.command("kubedra delete pod holder")
    before = await _held(story)
    await story.client.delete(kinds.POD, "holder", NAMESPACE)
    await story.gone("holder")
    await story.running("pair-split")
    devices = await story.devices_of("pair-split")
    story.say(f"   pair-split: {', '.join('/'.join(d) for d in devices)}")
    values = await story.attribute(devices, NUMA)
    story.check("the waiting pod runs on cards that were held before", any(d in before for d in devices), devices)
    story.check("and they belong together", len(set(values)) == 1, values)


async def _held(story: Story) -> Counter[Any]:
    """How often each device is allocated."""
    count: Counter[Any] = Counter()
    for claim in await story.claims():
        if claim.status.allocation is not None:
            count.update((r.driver, r.pool, r.device) for r in claim.status.allocation.devices.results)
    return count


# ---- 8 ----


async def everything(story: Story) -> dict[tuple[str, str, str], str]:
    """The uids of all objects that must survive."""
    out: dict[tuple[str, str, str], str] = {}
    for kind in kinds.ALL:
        if "list" not in kind.verbs or kind.kind in FLEETING or "beta" in kind.version or "alpha" in kind.version:
            continue
        answer = await story.client.request("GET", kind.path())
        if answer.status != 200:
            continue
        for item in codec.decode(dict, answer.body).get("items") or ():
            meta = item["metadata"]
            out[kind.kind, meta.get("namespace", ""), meta["name"]] = meta["uid"]
    return out


def container_ids(pods: tuple[core_v1.Pod, ...]) -> dict[str, str]:
    """The id of each pod's first container."""
    return {p.metadata.name: s[0].container_id for p in pods if (s := p.status.container_statuses)}


async def allocations(story: Story) -> dict[str, Any]:
    """The allocation of each claim, as a tree."""
    return {
        c.metadata.name: codec.to_tree(c.status.allocation) if c.status.allocation is not None else None
        for c in await story.claims()
    }


def kill(state: Running) -> list[int]:
    """Kill the processes of the cluster, without a word to them."""
    pids = [state.main.pid]
    if state.driver is not None:
        pids.append(state.driver.pid)
    for pid in pids:
        # The driver ends by itself when it hears that the cluster died; it may have been quicker.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def kill_container(data: Path, pod: core_v1.Pod) -> list[int]:
    """Kill one container of a pod and its supervisor."""
    marker = f"/pods/{pod.metadata.uid}/".encode()
    own = str(data).encode()
    killed = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            line = (folder / "cmdline").read_bytes()
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        supervisor = own in line and marker in line
        if supervisor or f"KUBEDRA_CONTAINER_ID={pod.metadata.uid}".encode() in environment:
            os.kill(int(folder.name), signal.SIGKILL)
            killed.append(int(folder.name))
    return killed


async def after_the_crash(
    story: Story,
    before: dict[tuple[str, str, str], str],
    claims_before: dict[str, Any],
    containers_before: dict[str, str],
    restarted: str,
) -> None:
    """Compare what is there with what was."""
    after = await everything(story)
    missing = [k for k, uid in before.items() if after.get(k) != uid]
    story.check(f"all {len(before)} objects are there with their uids", not missing, missing)
    same = await allocations(story) == claims_before
    story.check(f"all {len(claims_before)} claims hold the same devices", same)
    twice = [d for d, n in (await _held(story)).items() if n > 1]
    story.check("no device is handed out twice", not twice, twice)

    async def containers() -> dict[str, str] | None:
        pods: tuple[core_v1.Pod, ...] = (await story.client.list(kinds.POD, NAMESPACE)).items
        bound = [p for p in pods if p.spec.node_name]
        ready = [
            p
            for p in bound
            if p.status.phase == "Running"
            and p.status.container_statuses
            and p.status.container_statuses[0].state is not None
            and p.status.container_statuses[0].state.running is not None
        ]
        now = container_ids(pods)
        came_back = now.get(restarted) != containers_before.get(restarted)
        return now if len(ready) == len(bound) and came_back else None

    now = await story.until("all containers run", containers)
    adopted = [n for n, c in containers_before.items() if n != restarted and now.get(n) == c]
    others = [n for n in containers_before if n != restarted]
    story.check(f"{len(adopted)} containers were adopted as they ran", len(adopted) == len(others), set(others))
    story.check(f"the container that was killed too ({restarted}) was started again by policy", True)
