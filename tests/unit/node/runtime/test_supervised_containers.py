"""Both runtimes: start, output, ends, and containers that are found again."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import msgspec
import pytest

from kubedra.node.runtime.bwrap import BwrapRuntime, real_target, root_arguments
from kubedra.node.runtime.contract import ContainerConfig, DeviceNode, Mount, Runtime, StartError
from kubedra.node.runtime.identity import ProcessIdentity, identify, is_running, send_signal
from kubedra.node.runtime.process import ProcessRuntime
from tests.tools import require_root, require_tool

RUNTIMES = ["process", "bwrap"]


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest, tmp_path: Path) -> Runtime:
    if request.param == "bwrap":
        require_tool("bwrap")
        return BwrapRuntime(tmp_path / "pods")
    return ProcessRuntime(tmp_path / "pods")


def config(tmp_path: Path, script: str, **more: object) -> ContainerConfig:
    fields: dict[str, object] = {
        "id": uuid.uuid4().hex,
        "pod_uid": "uid-1",
        "pod_name": "pod-1",
        "namespace": "default",
        "name": "main",
        "attempt": 0,
        "command": ("/bin/sh", "-c", script),
        "log_path": str(tmp_path / "logs" / "0.log"),
        "hostname": "pod-1",
    }
    return ContainerConfig(**(fields | more))  # type: ignore[arg-type]


def log_lines(tmp_path: Path) -> list[tuple[str, str, str]]:
    lines = (tmp_path / "logs" / "0.log").read_text().splitlines()
    return [tuple(line.split(" ", 3)[1:]) for line in lines]  # type: ignore[misc]


async def test_exit_code_and_output_are_recorded(runtime: Runtime, tmp_path: Path) -> None:
    container = await runtime.start(
        config(tmp_path, 'echo "$GREETING"; echo bad >&2; exit 3', env=(("GREETING", "hi"),))
    )
    ended = await container.wait()
    assert (ended.code, ended.signal) == (3, 0)
    assert sorted(log_lines(tmp_path)) == [("stderr", "F", "bad"), ("stdout", "F", "hi")]
    assert container.started < ended.finished
    runtime.detach()


async def test_long_lines_are_cut_into_marked_pieces(runtime: Runtime, tmp_path: Path) -> None:
    container = await runtime.start(config(tmp_path, "printf '%020000d\\n' 7; printf end"))
    await container.wait()
    flags = [(flag, len(text)) for _, flag, text in log_lines(tmp_path)]
    assert flags == [("P", 16384), ("F", 20000 - 16384), ("F", 3)]


async def test_terminate_reaches_the_command_and_kill_ends_it(runtime: Runtime, tmp_path: Path) -> None:
    polite = await runtime.start(config(tmp_path, "trap 'exit 7' TERM; echo up; while :; do sleep 0.02; done"))
    while not (tmp_path / "logs" / "0.log").exists() or not log_lines(tmp_path):
        await asyncio.sleep(0.01)
    assert polite.terminate()
    assert (await polite.wait()).code == 7
    deaf = await runtime.start(config(tmp_path, "trap '' TERM; echo deaf; sleep 60", attempt=1))
    while log_lines(tmp_path)[-1][2] != "deaf":
        await asyncio.sleep(0.01)
    deaf.terminate()
    assert deaf.kill()
    assert (await deaf.wait()).code == 137
    assert not deaf.kill()


async def test_missing_program_says_so(runtime: Runtime, tmp_path: Path) -> None:
    if runtime.name == "process":
        with pytest.raises(StartError, match="/no/such/program: No such file or directory"):
            await runtime.start(config(tmp_path, "", command=("/no/such/program",)))
        assert runtime.find("uid-1") == ()
    else:
        container = await runtime.start(config(tmp_path, "", command=("/no/such/program",)))
        assert (await container.wait()).code != 0


async def test_no_command_is_refused_with_a_reason(runtime: Runtime, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"container main has no command.*nginx:1.*set spec.containers") as caught:
        await runtime.start(config(tmp_path, "", command=(), image="nginx:1"))
    assert caught.value.reason == "CreateContainerConfigError"


async def test_what_the_command_left_behind_is_killed(tmp_path: Path) -> None:
    runtime = ProcessRuntime(tmp_path / "pods")
    script = f"setsid sleep 300 & echo $! > {tmp_path}/left; exit 0"
    container = await runtime.start(config(tmp_path, script))
    await container.wait()
    left = identify(int((tmp_path / "left").read_text()))
    assert left is None or not is_running(left)


async def test_containers_are_found_again_by_another_runtime_object(runtime: Runtime, tmp_path: Path) -> None:
    running = await runtime.start(config(tmp_path, "sleep 60"))
    runtime.detach()
    other = type(runtime)(tmp_path / "pods")  # type: ignore[call-arg]
    (found,) = other.find("uid-1")
    assert found.exit is None
    assert found.config.id == running.config.id
    assert found.started == running.started
    found.kill()
    assert (await found.wait()).code == 137
    other.forget(found)
    assert other.find("uid-1") == ()


async def test_a_reused_pid_is_never_taken_for_ours(tmp_path: Path) -> None:
    runtime = ProcessRuntime(tmp_path / "pods")
    container = await runtime.start(config(tmp_path, "sleep 60"))
    record = tmp_path / "pods/uid-1/containers/main/0/supervisor"
    kept = record.read_bytes()
    runtime.detach()
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        me = identify(stranger.pid)
        assert me is not None
        # As if the pid had been given to somebody else while the agent was away.
        record.write_bytes(msgspec.json.encode(ProcessIdentity(stranger.pid, "1", me.boot)))
        (found,) = ProcessRuntime(tmp_path / "pods").find("uid-1")
        assert found.exit is not None
        assert found.exit.reason == "ContainerStatusUnknown"
        assert not found.kill()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
    # The real container's command was ended: its own record named it beyond doubt.
    identity = msgspec.json.decode(kept, type=ProcessIdentity)
    for _ in range(200):
        if not is_running(identity):
            break
        await asyncio.sleep(0.01)
    assert not is_running(identity)
    assert container.config.name == "main"


async def test_killed_supervisor_takes_its_container_along(runtime: Runtime, tmp_path: Path) -> None:
    container = await runtime.start(config(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 300"))
    folder = tmp_path / "pods/uid-1/containers/main/0"
    supervisor = msgspec.json.decode((folder / "supervisor").read_bytes(), type=ProcessIdentity)
    child = identify(int(dict(x.split("=") for x in (folder / "child").read_text().split())["pid"]))
    assert child is not None
    assert send_signal(supervisor, signal.SIGKILL)
    ended = await container.wait()
    assert (ended.code, ended.reason) == (137, "ContainerStatusUnknown")
    for _ in range(200):
        if not is_running(child):
            break
        await asyncio.sleep(0.01)
    assert not is_running(child)


async def test_process_volumes_are_named_in_the_environment(tmp_path: Path) -> None:
    runtime = ProcessRuntime(tmp_path / "pods")
    mounts = (Mount("my-data", str(tmp_path), "/data/in"),)
    script = 'echo "$KUBEDRA_VOLUME_MY_DATA $KUBEDRA_MOUNT_DATA_IN"'
    container = await runtime.start(config(tmp_path, script, mounts=mounts))
    await container.wait()
    assert log_lines(tmp_path) == [("stdout", "F", f"{tmp_path} {tmp_path}")]


async def test_bwrap_isolates_and_mounts(tmp_path: Path) -> None:
    require_tool("bwrap")
    runtime = BwrapRuntime(tmp_path / "pods")
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "file").write_text("content\n")
    mounts = (
        Mount("v", str(volume), "/etc/kubedra/data"),
        Mount("r", str(volume), "/data", read_only=True),
        Mount("s", str(volume), "/var/run/kubedra.test/x"),
    )
    script = "cat /var/run/kubedra.test/x/file; echo x > /etc/kubedra/data/out;"
    script += " (echo x > /data/no) 2>&1 | grep -c Read-only;"
    script += " ls -l /dev/mine | cut -c1; ls -d /proc/[0-9]* | wc -l; hostname; ls /sys/class/net | wc -l"
    settings = {"mounts": mounts, "devices": (DeviceNode("/dev/null", "/dev/mine"),), "own_network": True}
    container = await runtime.start(config(tmp_path, script, **settings))
    await container.wait()
    texts = [text for _, _, text in log_lines(tmp_path)]
    assert texts[:3] == ["content", "1", "c"]
    assert int(texts[3]) < 8
    assert texts[4] == "pod-1"
    assert (volume / "out").read_text() == "x\n"


def test_bwrap_rebuilds_a_folder_that_needs_a_mount_point(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hosts").write_text("")
    (tmp_path / "usr").mkdir()
    (tmp_path / "bin").symlink_to("usr/bin")
    got = root_arguments(("/etc/app/config",), (), tmp_path)
    assert got[: got.index("--proc")] == [
        *("--symlink", "usr/bin", "/bin", "--dir", "/etc"),
        *("--ro-bind-try", f"{tmp_path}/etc/hosts", "/etc/hosts", "--ro-bind-try", f"{tmp_path}/usr", "/usr"),
    ]


def test_bwrap_mounts_where_links_really_lead(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "run").symlink_to("/run")
    (tmp_path / "srv").symlink_to("var/data")
    assert real_target("/var/run/a/b", tmp_path) == "/run/a/b"
    assert real_target("/srv/x", tmp_path) == "/var/data/x"
    assert real_target("/tmp/x", tmp_path) == "/tmp/x"


async def test_supervisor_stays_small(tmp_path: Path) -> None:
    # Private memory is what one more container really costs; the interpreter's pages are shared with the agent.
    runtime = ProcessRuntime(tmp_path / "pods")
    container = await runtime.start(config(tmp_path, "sleep 60"))
    record = (tmp_path / "pods/uid-1/containers/main/0/supervisor").read_bytes()
    pid = msgspec.json.decode(record, type=ProcessIdentity).pid
    rollup = dict(line.split(":") for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    container.kill()
    await container.wait()
    assert int(rollup["Private_Dirty"].split()[0]) < 4096, sys.version


async def test_a_copy_of_a_node_folder_has_no_power_over_the_containers_of_the_original(tmp_path: Path) -> None:
    runtime = ProcessRuntime(tmp_path / "pods")
    container = await runtime.start(config(tmp_path, "sleep 300"))
    shutil.copytree(tmp_path / "pods", tmp_path / "copy", symlinks=True)
    copy = ProcessRuntime(tmp_path / "copy")
    (copied,) = copy.find(container.config.pod_uid)
    assert copied.exit is not None and copied.exit.code == 137
    assert not copied.kill()
    copy.detach()
    (tmp_path / "pods").rename(tmp_path / "moved")
    moved = ProcessRuntime(tmp_path / "moved")
    (found,) = moved.find(container.config.pod_uid)
    assert found.exit is None
    found.kill()
    await container.wait()
    moved.detach()
    runtime.detach()


async def test_a_missing_working_directory_is_named(tmp_path: Path) -> None:
    runtime = ProcessRuntime(tmp_path / "pods")
    with pytest.raises(StartError, match="working directory /no/such/folder: No such file or directory"):
        await runtime.start(config(tmp_path, "true", working_dir="/no/such/folder"))


async def test_another_user_can_work_in_the_folder_of_its_container(tmp_path: Path) -> None:
    require_root()
    tmp_path.chmod(0o700)
    runtime = ProcessRuntime(tmp_path / "pods")
    container = await runtime.start(config(tmp_path, "id -u && touch mine", uid=12345))
    ended = await container.wait()
    assert ended.code == 0
    assert "12345" in (tmp_path / "logs" / "0.log").read_text()
