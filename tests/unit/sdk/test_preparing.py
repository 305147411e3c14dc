"""Claims are prepared once, devices are held by one claim, and a death at any step is survived."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubedra.api import kinds
from kubedra.cdi.folder import SpecFolder
from kubedra.cdi.spec import ContainerEdits
from kubedra.client.clock import RealClock
from kubedra.sdk.checkpoint import Checkpoint
from kubedra.sdk.conditions import ReadyConditions
from kubedra.sdk.driver import Allocation, PreparedClaim, PreparedDevice, PrepareError
from kubedra.sdk.metadata import MetadataFiles
from kubedra.sdk.preparing import ClaimPreparer
from kubedra.sdk.resources import device
from kubedra.wire import dra
from tests.unit.sdk.conftest import DRIVER, allocate, result
from tests.unit.sdk.memory_api import MemoryApi


class Recorder:
    """A driver that writes down what it is asked."""

    name = DRIVER

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fail = ""
        self.gate = asyncio.Event()
        self.gate.set()
        self.allocations: list[Allocation] = []

    def discover(self) -> list[Any]:
        return []

    async def prepare(self, allocation: Allocation) -> Sequence[PreparedDevice]:
        self.calls.append(f"prepare {allocation.name}")
        self.allocations.append(allocation)
        await self.gate.wait()
        if self.fail:
            raise PrepareError(self.fail)
        return [
            PreparedDevice(edits=ContainerEdits(env=(f"GPU={entry.device}",)), data={"on": True})
            for entry in allocation.devices
        ]

    async def unprepare(self, claim: PreparedClaim) -> None:
        self.calls.append(f"unprepare {claim.name} {','.join(entry.device for entry in claim.devices)}")
        if self.fail:
            raise PrepareError(self.fail)


class Setup:
    """A preparer over a folder; ``restarted`` is what a new process would find."""

    def __init__(self, api: MemoryApi, folder: Path, driver: Recorder | None = None) -> None:
        self.api = api
        self.folder = folder
        self.driver = driver or Recorder()
        self.cdi = SpecFolder(folder / "cdi")
        (folder / "plugin").mkdir(exist_ok=True)
        self.checkpoint = Checkpoint(folder / "plugin" / "checkpoint.json", DRIVER)
        self.checkpoint.load()
        published = {("n1", "gpu-0"): device("gpu-0", {"model": "X"})}
        self.conditions = ReadyConditions(api, DRIVER, RealClock())  # type: ignore[arg-type]
        self.preparer = ClaimPreparer(
            self.driver,
            api,  # type: ignore[arg-type]
            self.checkpoint,
            self.cdi,
            metadata=MetadataFiles(DRIVER, folder / "plugin", self.cdi, lambda pool, name: published.get((pool, name))),
            on_prepared=self.conditions.prepared,
        )

    def restarted(self) -> Setup:
        return Setup(self.api, self.folder)

    async def prepare(self, name: str, uid: str) -> dra.PrepareResult:
        return (await self.preparer.prepare([dra.Claim("default", uid, name)]))[uid]

    async def unprepare(self, name: str, uid: str) -> str:
        return (await self.preparer.unprepare([dra.Claim("default", uid, name)]))[uid]


@pytest.fixture
def setup(api: MemoryApi, tmp_path: Path) -> Setup:
    return Setup(api, tmp_path)


async def test_a_claim_becomes_cdi_devices_and_files(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0", "a/sub"), result("gpu-1", "b"), result("nic", driver="other"))
    answer = await setup.prepare("c", uid)
    assert answer.error == ""
    first, second = answer.devices
    assert first.request_names == ("a",) and first.device_name == "gpu-0" and second.request_names == ("b",)
    edits = setup.cdi.resolve(first.cdi_device_ids)
    assert edits.env == ("GPU=gpu-0",)
    assert edits.mounts[0].container_path == (
        "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/a/gpu.example.com-metadata.json"
    )
    metadata = msgspec.json.decode(Path(edits.mounts[0].host_path).read_bytes())
    assert metadata["apiVersion"] == "metadata.resource.k8s.io/v1alpha1"
    assert metadata["requests"] == [
        {
            "name": "a/sub",
            "devices": [{"driver": DRIVER, "pool": "n1", "name": "gpu-0", "attributes": {"model": {"string": "X"}}}],
        }
    ]
    assert setup.cdi.names() == {
        f"{DRIVER}-claim_{uid}",
        f"{DRIVER}_metadata_{uid}_a",
        f"{DRIVER}_metadata_{uid}_b",
    }


async def test_a_template_claim_has_its_pod_name_in_the_path(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    setup.api.objects[("resourceclaims", "default", "c")]["metadata"]["annotations"] = {
        "resource.kubernetes.io/pod-claim-name": "my-gpu"
    }
    answer = await setup.prepare("c", uid)
    mount = setup.cdi.resolve(answer.devices[0].cdi_device_ids).mounts[0]
    assert "/resourceclaimtemplates/my-gpu/gpu/" in mount.container_path


async def test_a_second_call_answers_from_the_checkpoint(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    first = await setup.prepare("c", uid)
    assert await setup.prepare("c", uid) == first
    again = setup.restarted()
    assert await again.prepare("c", uid) == first
    assert setup.driver.calls == ["prepare c"] and again.driver.calls == []


async def test_lost_cdi_files_are_written_again(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    first = await setup.prepare("c", uid)
    for entry in setup.cdi.path.iterdir():
        entry.unlink()
    assert await setup.restarted().prepare("c", uid) == first
    assert setup.cdi.resolve(first.devices[0].cdi_device_ids).env == ("GPU=gpu-0",)


async def test_unprepare_leaves_nothing_and_may_be_repeated(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    await setup.prepare("c", uid)
    await setup.api.delete(kinds.RESOURCE_CLAIM, "c", "default")
    assert await setup.unprepare("c", uid) == "" and await setup.unprepare("c", uid) == ""
    assert setup.driver.calls == ["prepare c", "unprepare c gpu-0"]
    assert setup.cdi.names() == set() and not setup.checkpoint.claims
    assert not list((setup.folder / "plugin" / "dra-device-metadata").iterdir())


async def test_a_device_is_refused_while_another_claim_holds_it(setup: Setup) -> None:
    old = await allocate(setup.api, "old", result("gpu-0"))
    await setup.prepare("old", old)
    new = await allocate(setup.api, "new", result("gpu-0"))
    refused = await setup.prepare("new", new)
    assert refused.error == (
        f"device n1/gpu-0 is still held by claim default/old ({old}), which has not been unprepared yet"
    )
    assert (await setup.restarted().prepare("new", new)).error
    await setup.unprepare("old", old)
    assert (await setup.prepare("new", new)).error == ""


async def test_two_claims_that_arrive_together_do_not_both_get_the_device(setup: Setup) -> None:
    one, two = await allocate(setup.api, "one", result("gpu-0")), await allocate(setup.api, "two", result("gpu-0"))
    answers = await setup.preparer.prepare([dra.Claim("default", one, "one"), dra.Claim("default", two, "two")])
    assert sorted(bool(answer.error) for answer in answers.values()) == [False, True]


async def test_shares_and_admin_access_do_not_exclude_each_other(setup: Setup) -> None:
    uids = {
        "s1": await allocate(setup.api, "s1", result("gpu-0", shareID="a")),
        "s2": await allocate(setup.api, "s2", result("gpu-0", shareID="b")),
        "admin": await allocate(setup.api, "admin", result("gpu-0", adminAccess=True)),
    }
    for name, uid in uids.items():
        assert (await setup.prepare(name, uid)).error == ""
    again = await allocate(setup.api, "s3", result("gpu-0", shareID="a"))
    assert "still held" in (await setup.prepare("s3", again)).error


async def test_what_is_wrong_with_a_claim_is_said_in_upstreams_words(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    assert "retrieve claim default/gone: " in (await setup.prepare("gone", "x")).error
    assert (await setup.prepare("c", "another-uid")).error == "claim default/c got replaced"
    del setup.api.objects[("resourceclaims", "default", "c")]["status"]
    assert (await setup.prepare("c", uid)).error == "claim default/c not allocated"


async def test_a_failed_prepare_is_tried_again_and_unprepare_follows(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    setup.driver.fail = "device is on fire"
    assert (await setup.prepare("c", uid)).error == "device is on fire"
    setup.driver.fail = ""
    assert (await setup.prepare("c", uid)).error == ""
    setup.driver.fail = "still in use"
    assert await setup.unprepare("c", uid) == "still in use"
    setup.driver.fail = ""
    assert await setup.unprepare("c", uid) == ""


async def test_a_call_that_the_agent_gave_up_on_is_joined_by_the_next(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    setup.driver.gate.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(setup.prepare("c", uid), 0.05)
    second = asyncio.create_task(setup.prepare("c", uid))
    await asyncio.sleep(0)
    setup.driver.gate.set()
    assert (await second).error == "" and setup.driver.calls == ["prepare c"]


async def test_a_death_while_the_driver_prepares_is_known_afterwards(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    setup.driver.gate.clear()
    task = asyncio.create_task(setup.prepare("c", uid))
    while not setup.driver.calls:
        await asyncio.sleep(0.001)
    after = setup.restarted()
    assert after.checkpoint.claims[uid].state == "preparing"
    other = await allocate(setup.api, "other", result("gpu-0"))
    assert "still held" in (await after.prepare("other", other)).error
    assert await after.unprepare("c", uid) == ""
    assert after.driver.calls == ["unprepare c gpu-0"]
    assert (await after.prepare("other", other)).error == ""
    task.cancel()
    await setup.preparer.close()


async def test_a_claim_with_other_devices_lets_the_old_ones_go_first(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    await setup.prepare("c", uid)
    tree = setup.api.objects[("resourceclaims", "default", "c")]
    tree["status"]["allocation"]["devices"]["results"] = [result("gpu-1")]
    answer = await setup.prepare("c", uid)
    assert answer.devices[0].device_name == "gpu-1"
    assert setup.driver.calls == ["prepare c", "unprepare c gpu-0", "prepare c"]


async def test_parameters_are_those_of_this_driver_and_request_class_first(setup: Setup) -> None:
    def config(source: str, requests: list[str], value: str, driver: str = DRIVER) -> dict[str, Any]:
        return {"source": source, "requests": requests, "opaque": {"driver": driver, "parameters": {"v": value}}}

    uid = await allocate(
        setup.api,
        "c",
        result("gpu-0", "gpu/older"),
        result("gpu-1", "other"),
        config=[
            config("FromClaim", ["gpu"], "claim, by parent"),
            config("FromClass", [], "class"),
            config("FromClaim", ["gpu/older"], "claim, exact"),
            config("FromClaim", ["gpu/newer"], "other subrequest"),
            config("FromClaim", [], "foreign", "nic.example.com"),
        ],
    )
    await setup.prepare("c", uid)
    first, second = setup.driver.allocations[0].devices
    assert [entry["v"] for entry in first.configs] == ["class", "claim, by parent", "claim, exact"]
    assert [entry["v"] for entry in second.configs] == ["class"]


async def test_a_damaged_checkpoint_stops_preparing_and_not_unpreparing(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    await setup.prepare("c", uid)
    path = setup.folder / "plugin" / "checkpoint.json"
    path.write_bytes(path.read_bytes().replace(b"gpu-0", b"gpu-9"))
    after = setup.restarted()
    error = (await after.prepare("c", uid)).error
    assert "its checksum does not match" in error and "drain the node and remove the file" in error
    assert await after.unprepare("c", uid) == ""
    assert after.driver.calls == ["unprepare c "] and setup.cdi.names() == set()


async def test_a_driver_with_the_wrong_number_of_devices_is_told_so(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))

    async def none(_: Allocation) -> Sequence[PreparedDevice]:
        return []

    setup.driver.prepare = none  # type: ignore[method-assign]
    assert (await setup.prepare("c", uid)).error == "driver gpu.example.com prepared 0 devices of 1 in claim default/c"


async def test_ready_is_written_into_the_claims_status(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    await setup.prepare("c", uid)
    while not (devices := (await setup.api.get(kinds.RESOURCE_CLAIM, "c", "default")).status.devices):
        await asyncio.sleep(0.001)
    assert devices[0].conditions[0].type == "Ready" and devices[0].conditions[0].status == "True"
    assert devices[0].data == {"on": True} and devices[0].device == "gpu-0"


async def test_a_claim_that_died_while_it_was_unprepared_is_prepared_anew(setup: Setup) -> None:
    uid = await allocate(setup.api, "c", result("gpu-0"))
    await setup.prepare("c", uid)
    setup.driver.fail = "still in use"
    assert await setup.unprepare("c", uid) == "still in use"
    after = setup.restarted()
    assert (await after.prepare("c", uid)).error == ""
    assert after.driver.calls == ["prepare c"]
