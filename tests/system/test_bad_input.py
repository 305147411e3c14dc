"""What people get wrong and machines refuse: one clear sentence, exit code 1, no traceback, nothing half-applied."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubedra.cluster.state import Running, read_state
from tests.interop.embedded import DEMO_FLEET, ROOT, embedded_cluster, kubedra, kubedra_result
from tests.tools import require_root, require_tool

pytestmark = pytest.mark.system

NOBODY = "65534"


def refused(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """What a command says when it refuses: on standard error, in one paragraph, with exit code 1."""
    return sentence(kubedra_result(*arguments, environment=environment))


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """Check that a refusal is one, and return what it says."""
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("cluster: ")]
    assert lines
    assert lines[0].startswith("kubedra: ")
    return "\n".join(lines)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield int(holder.getsockname()[1])


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[Path, Running]]:
    with tempfile.TemporaryDirectory(prefix="kb-") as name, embedded_cluster(Path(name)) as running:
        yield Path(name) / "data", running


# ---- starting ----


@pytest.mark.parametrize("command", [("server",), ("up",), ("up", "--detach")])
def test_a_port_in_use(tmp_path: Path, taken_port: int, command: tuple[str, ...]) -> None:
    said = refused(*command, "--data", str(tmp_path / "data"), "--port", str(taken_port))
    assert said == (
        f"kubedra: port {taken_port} on 127.0.0.1 is in use by another program; choose another one with --port"
    )
    # The folder can be used at once.
    kubedra("up", "--detach", "--data", str(tmp_path / "data"), "--port", "0")
    kubedra("down", "--data", str(tmp_path / "data"))


@pytest.mark.parametrize("command", [("server",), ("up",), ("up", "--detach")])
def test_a_locked_data_folder(cluster: tuple[Path, Running], command: tuple[str, ...]) -> None:
    data, running = cluster
    before = (data / "cluster.json").read_bytes()
    said = refused(*command, "--data", str(data), "--port", "0")
    assert said == (
        f"kubedra: the data folder {data} is in use by another kubedra server (process {running.main.pid}); "
        "stop it first or choose another folder"
    )
    assert (data / "cluster.json").read_bytes() == before
    kubedra("get", "namespaces", "--kubeconfig", running.kubeconfig)


@pytest.mark.parametrize("command", [("server",), ("up",), ("up", "--detach")])
def test_a_strangers_data_folder(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "thesis.txt").write_text("chapter one")
    said = refused(*command, "--data", str(tmp_path), "--port", "0")
    assert said == (
        f"kubedra: the data folder {tmp_path} holds things that kubedra did not make (thesis.txt); "
        "choose an empty folder"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_strangers_database(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"not a database, but long enough to look like something" * 20)
    content = (tmp_path / "store.db").read_bytes()
    said = refused("server", "--data", str(tmp_path), "--port", "0")
    assert said == f"kubedra: {tmp_path}/store.db is not a database of kubedra; choose another data folder"
    assert (tmp_path / "store.db").read_bytes() == content


@pytest.mark.parametrize("detach", [(), ("--detach",)])
def test_a_data_folder_that_is_a_file_or_below_one(tmp_path: Path, detach: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        said = refused("up", "--data", str(path), "--port", "0", *detach)
        assert said == f"kubedra: the data folder {path} is not a folder; choose another one"


def as_nobody(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours as a user without rights."""
    user = [require_tool("setpriv"), "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    command = [*user, sys.executable, "-m", "kubedra", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "HOME": "/nonexistent"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, cwd="/", check=False)


def test_missing_permission() -> None:
    require_root()
    with tempfile.TemporaryDirectory(prefix="kb-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        private = folder / "private"
        private.mkdir(mode=0o700)
        if as_nobody("version").returncode:
            pytest.skip("the interpreter can't be run by another user here")
        for detach in ((), ("--detach",)):
            said = sentence(as_nobody("up", "--data", str(private / "data"), "--port", "0", *detach))
            assert said == f"kubedra: no permission to use the data folder {private}/data; choose another one"
        said = sentence(as_nobody("down", "--data", str(private)))
        assert said == f"kubedra: {private}/cluster.json: Permission denied"
        said = sentence(as_nobody("get", "pods", "--kubeconfig", str(private / "config")))
        assert said.startswith(f"kubedra: {private}/config: can't be read: Permission denied")
        assert list(private.iterdir()) == []


def test_a_full_disk() -> None:
    require_root()
    with tempfile.TemporaryDirectory(prefix="kb-") as name:
        disk = Path(name) / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=900k", "tmpfs", str(disk)], check=False)
        if mounted.returncode:
            pytest.skip("nothing can be mounted here")
        data = disk / "data"
        try:
            kubedra("up", "--detach", "--data", str(data), "--port", "0")
            state = read_state(data)
            assert state is not None
            path = Path(name) / "big.yaml"
            said = ""
            for number in range(9):
                text = (
                    f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: big-{number}}}\ndata: {{x: {'x' * 150_000}}}\n"
                )
                path.write_text(text)
                done = kubedra_result("apply", "-f", str(path), "--kubeconfig", state.kubeconfig)
                if done.returncode:
                    said = sentence(done)
                    break
            assert said == (
                f"kubedra: {path}:1: ConfigMap big-{number}: the disk of the data folder {data} is full "
                "and nothing was written; free some space and try again"
            )
            # It goes on: what was there is read, and once there is room, writes succeed again.
            listed = kubedra("get", "configmaps", "-o", "name", "--kubeconfig", state.kubeconfig)
            assert f"big-{number}" not in listed
            assert f"big-{number - 1}" in listed
            subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
            kubedra("apply", "-f", str(path), "--kubeconfig", state.kubeconfig)
            kubedra("down", "--data", str(data))

            shutil.rmtree(data)
            subprocess.run(["mount", "-o", "remount,size=100k", str(disk)], check=True)
            said = refused("up", "--detach", "--data", str(data), "--port", "0")
            assert "the disk" in said
            assert "full" in said
        finally:
            kubedra("down", "--data", str(data))
            subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_socket_path_that_is_too_long(tmp_path: Path, cluster: tuple[Path, Running]) -> None:
    _, running = cluster
    long = tmp_path / ("x" * 120)
    fleet = ["--fleet", str(DEMO_FLEET)]
    parts = [
        [
            "agent",
            "--node",
            "n",
            "--data",
            str(tmp_path / "data"),
            "--run-dir",
            str(long),
            "--kubeconfig",
            running.kubeconfig,
        ],
        ["driver", "simulated", *fleet, "--data", str(tmp_path / "data"), "--run-dir", str(long)],
    ]
    parts[1] += ["--kubeconfig", running.kubeconfig]
    long.mkdir()
    for arguments in parts:
        said = refused(*arguments)
        assert said.startswith(f"kubedra: the socket path {long}")
        assert "bytes long and the kernel allows 107: choose a shorter run folder" in said
    said = refused("up", *fleet, "--data", str(tmp_path / "data"), environment={"XDG_RUNTIME_DIR": str(long)})
    assert "bytes long and the kernel allows 107" in said
    assert list(long.iterdir()) == []
    assert not (tmp_path / "data").exists()


def test_parts_that_are_told_nonsense(tmp_path: Path, cluster: tuple[Path, Running]) -> None:
    kubeconfig = ("--kubeconfig", str(cluster[0] / "pki" / "agents.kubeconfig"))
    folders = ("--data", str(tmp_path / "data"), "--run-dir", str(cluster[0].parent / "run"))
    said = refused("agent", "--node", "N_1", *folders, *kubeconfig)
    assert said.startswith('kubedra: Node "N_1" is invalid: ')
    said = refused("agent", "--node", "n1", "--label", "a b=c", *folders, *kubeconfig)
    assert "metadata.labels: Invalid value" in said
    said = refused("driver", "simulated", "--fleet", str(DEMO_FLEET), "--node", "a3O-0", *folders, *kubeconfig)
    assert said == f"kubedra: {DEMO_FLEET} has no node 'a3O-0'; did you mean 'a30-0'?"


def test_keys_that_are_damaged_are_made_anew(tmp_path: Path) -> None:
    data = tmp_path / "data"
    kubedra("up", "--detach", "--data", str(data), "--port", "0")
    kubedra("down", "--data", str(data))
    (data / "pki" / "server.key").write_text("garbage")
    (data / "pki" / "ca.key").unlink()
    (data / "tokens" / "drivers").write_bytes(b"\xff")
    kubedra("up", "--detach", "--data", str(data), "--port", "0")
    kubedra("get", "namespaces", "--kubeconfig", str(data / "kubeconfig"))
    kubedra("down", "--data", str(data))


# ---- files ----

GOOD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: innocent\n---\n"
CLAIM = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata:\n  name: bad\n"
BAD_FILES = {
    "broken": ("apiVersion: v1\nkind: Pod\n metadata: {}\n", ":8: not valid YAML"),
    "bytes": ("kind: \udcff\n", ":6: this is not text in UTF-8"),
    "kind": ("apiVersion: v1\nkind: Podd\nmetadata: {name: x}\n", "there is no kind 'Podd'; did you mean 'Pod'?"),
    "version": (
        CLAIM.replace("io/v1", "io/v1beta3"),
        "ResourceClaim is not served as 'resource.k8s.io/v1beta3', but as resource.k8s.io/v1",
    ),
    "field": (CLAIM + "spec:\n  device: {}\n", ".spec.device: field not declared in schema; did you mean 'devices'?"),
    "list": ("- 1\n", "an object is expected"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_are_wrong_change_nothing(tmp_path: Path, cluster: tuple[Path, Running], name: str) -> None:
    text, word = BAD_FILES[name]
    path = tmp_path / "bad.yaml"
    path.write_text(GOOD + text, errors="surrogateescape")
    kubeconfig = cluster[1].kubeconfig
    said = refused("apply", "-f", str(path), "--kubeconfig", kubeconfig)
    assert f"{path}:" in said
    assert word in said
    assert refused("get", "configmap", "innocent", "--kubeconfig", kubeconfig) == (
        'kubedra: configmaps "innocent" not found'
    )


def test_every_field_that_is_wrong_is_named_at_once(tmp_path: Path, cluster: tuple[Path, Running]) -> None:
    path = tmp_path / "bad.yaml"
    requests = "[{name: a, exactly: {count: -1}}, {name: a}]"
    path.write_text(GOOD + CLAIM + f"spec:\n  devices:\n    requests: {requests}\n")
    said = refused("apply", "-f", str(path), "--kubeconfig", cluster[1].kubeconfig)
    for word in (
        "spec.devices.requests[0].exactly.deviceClassName: Required value",
        "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero",
        "spec.devices.requests[1]: Required value: exactly one of `exactly` or `firstAvailable` is required",
        'spec.devices.requests[1]: Duplicate value: "a"',
        "nothing was applied",
    ):
        assert word in said


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("kind: Fleet\npools:\n- name: a\n  device: []\n", ':4: pools[0].device: unknown field "device"; did you mean'),
        ("kind: Fleet\npools:\n- name: a\n   x: y\n", ":4: not valid YAML"),
        ("kind: Fleet\npools:\n- name: a\n  devices: [{card: H1000}]\n", 'no card "H1000"'),
        ("kind: \udcff\n", ":1: this is not text in UTF-8"),
    ],
)
def test_fleets_that_are_wrong(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(text, errors="surrogateescape")
    said = refused("up", "--fleet", str(path), "--data", str(tmp_path / "data"))
    assert f"kubedra: {path}:" in said
    assert word in said
    assert not (tmp_path / "data").exists()


def test_a_cluster_that_starts_and_stops_says_nothing_on_standard_error(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "kubedra",
        "up",
        "--fleet",
        str(DEMO_FLEET),
        "--data",
        str(tmp_path),
        "--port",
        "0",
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert up.stdout is not None
    for line in up.stdout:
        if line.startswith("stop with"):
            break
    state = read_state(tmp_path)
    assert state is not None
    kubedra("get", "nodes", "--kubeconfig", state.kubeconfig)
    up.terminate()
    said, errors = up.communicate(timeout=60)
    assert errors == ""
    assert said == ""
    assert up.returncode == 0
