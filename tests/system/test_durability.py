"""What was answered with 2xx is there after kill -9 at any moment, and after a power cut: it is synced before the
answer leaves, and files that matter are written, synced, renamed, and their folder synced.

A power cut can't be had in a test; the order of the system calls, as strace sees them, stands in for it.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.client.https import HttpsClient
from tests.system.part_processes import ROOT, PartProcesses

pytestmark = pytest.mark.system

WRITERS = 24
ROUNDS = 4
SEED = 5


class Writer:
    """Creates, changes and deletes one object after another, and remembers what was acknowledged."""

    def __init__(self, name: str) -> None:
        self.name = name
        # Per object the last acknowledged count (-1: deleted) and, while a write is on its way, what it wrote.
        self.acknowledged: dict[str, int] = {}
        self.asked: dict[str, int] = {}
        self.revision = 0
        self.writes = 0

    async def write(self, client: HttpsClient, generation: int) -> None:
        """Until the connection breaks."""
        number = 0
        while True:
            name = f"{self.name}-{generation}-{number}"
            number += 1
            for count in (0, 1, 2, -1) if number % 3 else (0, 1):
                self.asked[name] = count
                if count == 0:
                    tree = {"metadata": {"name": name}, "data": {"count": "0"}}
                    done: Any = await client.create(kinds.CONFIG_MAP, tree, "default")
                elif count > 0:
                    done = await client.patch(kinds.CONFIG_MAP, name, {"data": {"count": str(count)}}, "default")
                else:
                    done = await client.delete(kinds.CONFIG_MAP, name, "default")
                self.acknowledged[name] = count
                self.writes += 1
                if count >= 0:
                    self.revision = max(self.revision, int(done.metadata.resource_version))

    def lost(self, found: dict[str, int]) -> list[str]:
        """What was acknowledged and is not there."""
        out = []
        for name, count in self.acknowledged.items():
            allowed = {count, self.asked[name]}
            if found.get(name, -1) not in allowed:
                out.append(f"{name}: {count} was acknowledged, {found.get(name)} is there")
        return out


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[PartProcesses]:
    made = PartProcesses(tmp_path, tmp_path / "run", tmp_path / "fleet.yaml", ())
    yield made
    made.stop_all()


async def test_acknowledged_writes_survive_kill_9(parts: PartProcesses) -> None:
    chance = random.Random(SEED)
    writers = [Writer(f"w{number}") for number in range(WRITERS)]
    for generation in range(ROUNDS):
        parts.start("server")
        client = await parts.client()
        # All write into the dark of a server that dies at some moment.
        tasks = [asyncio.create_task(writer.write(client, generation)) for writer in writers]
        before = sum(writer.writes for writer in writers)
        while sum(writer.writes for writer in writers) < before + 200:
            await asyncio.sleep(0.01)
        await asyncio.sleep(chance.random() * 0.2)
        parts.kill("server")
        for ending in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(ending, ConnectionError), ending
        await client.close()

        parts.start("server")
        client = await parts.client()
        listed = await client.list(kinds.CONFIG_MAP, "default")
        found = {c.metadata.name: int(c.data["count"]) for c in listed.items if c.metadata.name.startswith("w")}
        lost = [line for writer in writers for line in writer.lost(found)]
        assert not lost, f"seed {SEED}, round {generation}: {lost}"
        highest = max(writer.revision for writer in writers)
        assert int(listed.resource_version) >= highest, "the counter of revisions went back"
        await client.close()
        parts.kill("server")
    assert sum(writer.writes for writer in writers) >= 200 * ROUNDS


async def test_a_first_start_that_is_killed_anywhere_can_be_repeated(parts: PartProcesses) -> None:
    chance = random.Random(SEED)
    for _ in range(6):
        parts.start("server")
        await asyncio.sleep(0.2 + chance.random() * 0.5)
        if parts.running["server"].poll() is not None:
            break
        parts.kill("server")
    parts.start("server")
    client = await parts.client()
    await client.create(kinds.CONFIG_MAP, {"metadata": {"name": "one"}}, "default")
    with pytest.raises(ApiError):
        await client.create(kinds.CONFIG_MAP, {"metadata": {"name": "one"}}, "default")
    await client.close()
    left = [str(path) for path in parts.data.rglob("*.tmp")]
    assert not left


# ---- system calls ----

CALLS = "fsync,fdatasync,pwrite64,write,writev,sendto,sendmsg,sendmmsg,rename,renameat,renameat2"
LINE = re.compile(r"^(?P<pid>\d+) +(?P<rest>.*)$")


def strace() -> str:
    """The path of strace, which works here; else the test is skipped."""
    path = shutil.which("strace")
    if path is None:
        pytest.skip("strace is not on this machine")
    if subprocess.run([path, "-f", "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace processes here")
    return path


def calls(trace: Path) -> list[str]:
    """Calls that have returned, in the order in which they did; those without success are left out."""
    begun: dict[str, str] = {}
    done = []
    for line in trace.read_text(errors="replace").splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        pid, rest = match["pid"], match["rest"]
        if rest.endswith("<unfinished ...>"):
            begun[pid] = rest.removesuffix("<unfinished ...>")
            if rest.startswith(("pwrite64", "write", "send")):
                done.append(begun[pid])  # what is written counts from the beginning
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)$", rest)
        if resumed is not None:
            rest = begun.pop(pid, "") + resumed[1]
            if rest.startswith(("pwrite64", "write", "send")):
                continue
        if not re.search(r"= -1 ", rest):
            done.append(rest)
    return done


async def test_a_write_is_synced_before_it_is_answered(tmp_path: Path) -> None:
    tool, trace = strace(), tmp_path / "trace"
    parts = PartProcesses(tmp_path, tmp_path / "run", tmp_path / "fleet.yaml", ())
    parts.prefix = (tool, "-f", "--seccomp-bpf", "-yy", "-qq", "-s", "32", "-e", f"trace={CALLS}", "-o", str(trace))
    parts.start("server")
    try:
        client = await parts.client()
        for number in range(20):
            await client.create(kinds.CONFIG_MAP, {"metadata": {"name": f"synced-{number}"}}, "default")
        await client.close()
    finally:
        # To the server itself: the tracer would let it go on and end alone.
        os.kill(int((parts.data / "lock").read_text().split()[0]), signal.SIGTERM)
        parts.running.pop("server").wait(20)
    made = calls(trace)
    check_answers(made)
    renamed = check_renames(made, parts.data)
    for name in ("ca.key", "ca.crt", "server.key", "admin.key", "kubeconfig"):
        assert name in renamed


def check_answers(made: list[str]) -> None:
    """No byte goes to a client while something in the log of the database is not synced."""
    dirty, syncs, answers = "", 0, 0
    for call in made:
        if call.startswith("pwrite64(") and "store.db-wal>" in call:
            dirty = call
        elif call.startswith(("fdatasync(", "fsync(")) and "store.db-wal>" in call:
            dirty, syncs = "", syncs + 1
        elif "TCP" in call.partition(",")[0] and not call.startswith(("fsync", "fdatasync")):
            answers += 1
            assert not dirty, f"{call} came before the sync of {dirty}"
    assert syncs > 20
    assert answers > 20


def check_renames(made: list[str], folder: Path) -> set[str]:
    """Every file that is renamed into its place was synced before, and its folder is synced after that."""
    synced: set[str] = set()
    open_folders: set[str] = set()
    names: set[str] = set()
    for call in made:
        if call.startswith(("fsync(", "fdatasync(")):
            path = call.partition("<")[2].partition(">")[0]
            synced.add(path)
            open_folders.discard(path)
        elif call.startswith("rename"):
            source, target = re.findall(r'"([^"]*)"', call)[-2:]
            if not target.startswith(str(folder)):
                continue
            assert source in synced, f"{call}: {source} was not synced"
            synced.discard(source)
            open_folders.add(str(Path(target).parent))
            names.add(Path(target).name)
    assert not open_folders, f"folders in which names changed and which were not synced: {open_folders}"
    return names


WRITE_NODE_FILES = """
import asyncio, sys
from pathlib import Path
from kubedra.cdi.folder import SpecFolder
from kubedra.cdi.spec import ContainerEdits, Device, Spec
from kubedra.node.claims.checkpoint import ClaimCheckpoint
from kubedra.sdk.checkpoint import Checkpoint, ClaimRecord
folder = Path(sys.argv[1])
ClaimCheckpoint(folder).save(())
device = Device("d", ContainerEdits(env=("A=1",)))
SpecFolder(folder).write("claim", Spec("example.com/claim", devices=(device,)))
record = ClaimRecord(namespace="n", name="c", uid="u", state="preparing")
asyncio.run(Checkpoint(folder / "checkpoint.json", "example.com").put(record))
"""


def test_checkpoints_and_cdi_files_are_synced(tmp_path: Path) -> None:
    tool, trace, folder = strace(), tmp_path / "trace", tmp_path / "node"
    folder.mkdir()
    command = [tool, "-f", "-yy", "-qq", "-s", "256", "-e", f"trace={CALLS}", "-o", str(trace)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([*command, sys.executable, "-c", WRITE_NODE_FILES, str(folder)], check=True, env=environment)
    names = check_renames(calls(trace), folder)
    assert names == {"dra_manager_state", "claim.json", "checkpoint.json"}
