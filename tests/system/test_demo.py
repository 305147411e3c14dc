"""The demo tells its whole story, every outcome is right, and nothing of it is left behind, also when it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubedra.cluster.state import read_state
from kubedra.node.runtime.identity import is_running
from tests.interop.embedded import DEMO_FLEET, ROOT, kubedra

pytestmark = pytest.mark.system

STEPS = 8


class Place:
    """Folders of its own for temporary files and sockets, so that whatever is left can be told from other things."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("tmp", "run"):
            (folder / name).mkdir(mode=0o700)
        self.environment = os.environ | {
            "PYTHONPATH": str(ROOT / "src"),
            "TMPDIR": str(folder / "tmp"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_DATA_HOME": str(folder / "share"),
            "HOME": str(folder),
        }

    def left(self) -> list[str]:
        """Files, folders, sockets and processes that belong to this place."""
        found = [str(path) for name in ("tmp", "run", "share") for path in (self.folder / name).rglob("*")]
        mark = os.fsencode(self.folder)
        for process in Path("/proc").iterdir():
            if not process.name.isdigit() or int(process.name) == os.getpid():
                continue
            try:
                words = (process / "cmdline").read_bytes()
                if mark in words or mark in (process / "environ").read_bytes():
                    found.append(f"process {process.name}: {words.replace(bytes(1), b' ').decode(errors='replace')}")
            except OSError:
                continue
        return found


@pytest.fixture
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="kd-") as name:
        yield Place(Path(name))


@pytest.mark.timeout(120)
def test_the_demo_tells_its_story_and_leaves_nothing(place: Place) -> None:
    command = [sys.executable, "-m", "kubedra", "demo", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, env=place.environment, cwd=ROOT, check=False)
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["error"] is None
    assert told["ok"] is True
    assert done.returncode == 0
    assert [outcome for outcome in told["outcomes"] if not outcome["ok"]] == []
    numbers = {outcome["step"].partition(".")[0] for outcome in told["outcomes"]}
    assert numbers == {str(number) for number in range(1, STEPS + 1)}
    outcomes = " | ".join(outcome["outcome"] for outcome in told["outcomes"])
    for word in (
        "three replicas hold three different cards",
        "scaling down frees exactly the two cards",
        "both see the same card on the same node",
        "why answers no",
        "it names what is nearest, and that an H100 misses 80Gi by 361Mi",
        "the waiting pod runs on cards that were held before",
        "objects are there with their uids",
        "no device is handed out twice",
        "containers were adopted as they ran",
        "was started again by policy",
    ):
        assert word in outcomes
    assert told["pssMiB"] <= 300
    assert place.left() == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_demo_that_is_stopped_leaves_nothing(place: Place, number: signal.Signals) -> None:
    command = [sys.executable, "-u", "-m", "kubedra", "demo"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=place.environment, cwd=ROOT)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("== 2"):
            break
    process.send_signal(number)
    rest, _ = process.communicate()
    assert process.returncode == 130, rest
    assert place.left() == []


def test_a_driver_ends_with_the_cluster_that_was_killed(place: Place) -> None:
    data = place.folder / "data"
    options = ("--fleet", str(DEMO_FLEET), "--data", str(data), "--port", "0")
    kubedra("up", "--detach", *options, environment=place.environment)
    try:
        state = read_state(data)
        assert state is not None
        assert state.driver is not None
        os.kill(state.main.pid, signal.SIGKILL)
        while is_running(state.driver):
            time.sleep(0.02)
    finally:
        kubedra("down", "--data", str(data), environment=place.environment)
    assert place.left() == []
