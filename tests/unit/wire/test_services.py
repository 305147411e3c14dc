"""Records survive the way over a real unix socket, errors keep their Go spelling, connections tell their state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kubedra.wire import device_plugin, dra, health, pod_resources, registration
from kubedra.wire.transport import CallError, Channel, Service, SocketServer


@asynccontextmanager
async def served(socket: Path, *services: Service) -> AsyncIterator[Channel]:
    server = SocketServer(socket, services)
    await server.start()
    channel = Channel(socket)
    try:
        yield channel
    finally:
        await channel.close()
        await server.stop()


class EchoDriver:
    async def prepare(self, claims: Sequence[dra.Claim]) -> Mapping[str, dra.PrepareResult]:
        if claims[0].name == "explode":
            raise CallError("Internal", "driver exploded")
        if claims[0].name == "bug":
            raise KeyError("oops")
        if claims[0].name == "hang":
            await asyncio.sleep(30)
        return {
            claim.uid: dra.PrepareResult(
                (
                    dra.Device((claim.name,), "pool", "gpu-0", ("vendor/class=gpu-0",), "share"),
                    dra.Device((), "pool", "gpu-1"),
                ),
                "half",
            )
            for claim in claims
        }

    async def unprepare(self, claims: Sequence[dra.Claim]) -> Mapping[str, str]:
        return {claim.uid: "" if claim.namespace == "ok" else "still in use" for claim in claims}


@pytest.mark.parametrize("version", dra.VERSIONS)
async def test_dra_records_survive_in_both_versions(tmp_path: Path, version: dra.Version) -> None:
    async with served(tmp_path / "s", dra.dra_service(EchoDriver(), version)) as channel:
        client = dra.DraClient(channel, version)
        answer = await client.prepare([dra.Claim("ns", "uid-1", "r")], timeout=5)
        assert answer == await EchoDriver().prepare([dra.Claim("ns", "uid-1", "r")])
        claims = [dra.Claim("ok", "a", "x"), dra.Claim("ns", "b", "y")]
        assert await client.unprepare(claims, timeout=5) == {"a": "", "b": "still in use"}


async def test_errors_read_as_go_programs_print_them(tmp_path: Path) -> None:
    async with served(tmp_path / "s", dra.dra_service(EchoDriver(), "v1")) as channel:
        client = dra.DraClient(channel, "v1")
        with pytest.raises(CallError, match=r"^rpc error: code = Internal desc = driver exploded$"):
            await client.prepare([dra.Claim("ns", "u", "explode")], timeout=5)
        with pytest.raises(CallError, match="code = Unknown desc = KeyError"):
            await client.prepare([dra.Claim("ns", "u", "bug")], timeout=5)
        with pytest.raises(CallError, match=r"^rpc error: code = DeadlineExceeded desc = context deadline exceeded$"):
            await client.prepare([dra.Claim("ns", "u", "hang")], timeout=0.05)
        with pytest.raises(CallError) as unimplemented:
            await dra.DraClient(channel, "v1beta1").prepare([dra.Claim("ns", "u", "r")], timeout=5)
        assert unimplemented.value.code == "Unimplemented"


async def test_a_connection_that_is_closed_under_a_call_fails_the_call_and_not_the_caller(tmp_path: Path) -> None:
    driver = EchoDriver()
    async with served(tmp_path / "s", dra.dra_service(driver, "v1")) as channel:
        client = dra.DraClient(channel, "v1")

        async def call() -> str:
            try:
                await client.prepare([dra.Claim("ns", "u", "hang")], timeout=30)
            except CallError as error:
                return error.code
            return "OK"

        calls = [asyncio.create_task(call()) for _ in range(3)]
        assert await channel.wait_connected(5)
        await asyncio.sleep(0.1)
        await channel.close()
        # The task lives on: nobody cancelled it.
        assert await asyncio.gather(*calls) == ["Canceled"] * 3
        assert await call() == "Unavailable"
        assert not await channel.wait_connected(0.1)


async def test_who_is_cancelled_during_a_call_ends(tmp_path: Path) -> None:
    async with served(tmp_path / "s", dra.dra_service(EchoDriver(), "v1")) as channel:
        client = dra.DraClient(channel, "v1")
        task = asyncio.create_task(client.prepare([dra.Claim("ns", "u", "hang")], timeout=30))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.prepare([dra.Claim("ns", "u", "hang")], timeout=30)


async def test_a_plugin_registers(tmp_path: Path) -> None:
    notices: list[tuple[bool, str]] = []
    info = registration.PluginInfo("DRAPlugin", "gpu.example.com", "/run/dra.sock", ("v1.DRAPlugin",))

    class Plugin:
        async def get_info(self) -> registration.PluginInfo:
            return info

        async def notify(self, registered: bool, error: str) -> None:
            notices.append((registered, error))

    async with served(tmp_path / "s", registration.registration_service(Plugin())) as channel:
        client = registration.RegistrationClient(channel)
        assert await client.get_info(timeout=1) == info
        await client.notify(False, "no", timeout=5)
    assert notices == [(False, "no")]


@pytest.mark.parametrize("version", health.VERSIONS)
async def test_health_is_a_stream_of_complete_lists(tmp_path: Path, version: health.Version) -> None:
    lists: list[tuple[health.DeviceHealth, ...]] = [
        (health.DeviceHealth("p", "a", "Healthy", 17, 30, ""), health.DeviceHealth("p", "b", "Unknown")),
        (health.DeviceHealth("p", "a", "Unhealthy", 18, 30, "too hot"),),
    ]

    class Driver:
        async def watch_health(self) -> AsyncIterator[tuple[health.DeviceHealth, ...]]:
            for entry in lists:
                yield entry

    async with served(tmp_path / "s", health.health_service(Driver(), version)) as channel:
        assert [entry async for entry in health.HealthClient(channel, version).watch()] == lists


async def test_device_plugin_calls_survive(tmp_path: Path) -> None:
    allocation = device_plugin.ContainerAllocation(
        {"A": "b"},
        (device_plugin.Mount("/c", "/h", True),),
        (device_plugin.DeviceNode("/dev/a", "/dev/b", "rwm"),),
        {"note": "yes"},
        ("v/c=d",),
    )
    devices = (device_plugin.PluginDevice("gpu-0", "Healthy", (1,)), device_plugin.PluginDevice("gpu-1", "Unhealthy"))

    class Plugin:
        async def options(self) -> device_plugin.Options:
            return device_plugin.Options(True, True)

        async def list_and_watch(self) -> AsyncIterator[tuple[device_plugin.PluginDevice, ...]]:
            yield devices

        async def preferred_allocation(
            self, containers: Sequence[device_plugin.PreferredAllocation]
        ) -> list[tuple[str, ...]]:
            return [container.available[: container.size] for container in containers]

        async def allocate(self, containers: Sequence[tuple[str, ...]]) -> list[device_plugin.ContainerAllocation]:
            return [allocation for _ in containers]

        async def pre_start_container(self, devices: tuple[str, ...]) -> None:
            if devices != ("gpu-0",):
                raise CallError("InvalidArgument", "which device?")

    async with served(tmp_path / "s", device_plugin.device_plugin_service(Plugin())) as channel:
        client = device_plugin.DevicePluginClient(channel)
        assert await client.options() == device_plugin.Options(True, True)
        assert [entry async for entry in client.list_and_watch()] == [devices]
        wanted = device_plugin.PreferredAllocation(("a", "b"), (), 1)
        assert await client.preferred_allocation([wanted]) == [("a",)]
        assert await client.allocate([("gpu-0",)]) == [allocation]
        await client.pre_start_container(("gpu-0",), timeout=5)


async def test_a_device_plugin_registers_with_the_agent(tmp_path: Path) -> None:
    requests: list[device_plugin.RegisterRequest] = []

    class Registry:
        async def register(self, request: device_plugin.RegisterRequest) -> None:
            requests.append(request)
            if request.resource_name == "noslash":
                raise CallError("Unknown", 'the ResourceName "noslash" is invalid')

    async with served(tmp_path / "s", device_plugin.registry_service(Registry())) as channel:
        client = device_plugin.RegistryClient(channel)
        request = device_plugin.RegisterRequest("v1beta1", "x.sock", "example.com/gpu", device_plugin.Options(True))
        await client.register(request, timeout=5)
        assert requests == [request]
        with pytest.raises(CallError, match="is invalid"):
            await client.register(device_plugin.RegisterRequest("v1beta1", "x.sock", "noslash"), timeout=5)


async def test_pod_resources_survive(tmp_path: Path) -> None:
    claim = pod_resources.ClaimResource("gpu.example.com", "node", "gpu-0", ("v/c=d",), "share")
    pod = pod_resources.PodResources(
        "p",
        "ns",
        (
            pod_resources.ContainerResources(
                "c",
                (pod_resources.ContainerDevices("example.com/gpu", ("gpu-0",), (1,)),),
                (3,),
                (pod_resources.DynamicResource("claim", "ns", (claim,)),),
            ),
        ),
    )

    class Agent:
        async def list(self) -> Sequence[pod_resources.PodResources]:
            return [pod]

        async def allocatable(self) -> Sequence[pod_resources.ContainerDevices]:
            return pod.containers[0].devices

        async def get(self, name: str, namespace: str) -> pod_resources.PodResources:
            if name != "p":
                raise CallError("Unknown", f"pod {name} in namespace {namespace} not found")
            return pod

    async with served(tmp_path / "s", pod_resources.pod_resources_service(Agent())) as channel:
        client = pod_resources.PodResourcesClient(channel)
        assert await client.list() == (pod,)
        assert await client.allocatable() == pod.containers[0].devices
        assert await client.get("p", "ns") == pod
        with pytest.raises(CallError, match="pod nope in namespace default not found"):
            await client.get("nope", "default")


async def test_a_connection_tells_when_the_other_end_goes_and_comes_back(tmp_path: Path) -> None:
    server = SocketServer(tmp_path / "s", [dra.dra_service(EchoDriver(), "v1")])
    await server.start()
    channel = Channel(tmp_path / "s")
    changes = channel.connection_changes()
    seen = [await anext(changes), await anext(changes)]
    await server.stop()
    seen.append(await anext(changes))
    again = SocketServer(tmp_path / "s", [dra.dra_service(EchoDriver(), "v1")])
    await again.start()
    seen.append(await anext(changes))
    assert seen == [False, True, False, True]
    await changes.aclose()  # type: ignore[attr-defined]
    await channel.close()
    await again.stop()


async def test_a_server_replaces_a_stale_socket_and_removes_its_own(tmp_path: Path) -> None:
    socket = tmp_path / "deep" / "s"
    socket.parent.mkdir()
    socket.write_text("left behind")
    server = SocketServer(socket, [])
    await server.start()
    assert server.present and socket.is_socket()
    socket.unlink()
    assert not server.present
    await server.stop()
    assert not socket.exists()


async def test_a_socket_that_cannot_be_made_is_an_ordinary_error(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "x").touch()
    with pytest.raises(OSError):
        await SocketServer(tmp_path / "s", []).start()
