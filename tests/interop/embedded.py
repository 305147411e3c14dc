"""An embedded cluster as its own process, for tests that come from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubedra.cluster.state import Running, read_state

ROOT = Path(__file__).resolve().parents[2]
DEMO_FLEET = ROOT / "examples" / "demo" / "fleet.yaml"


def kubedra(*arguments: str, timeout: float = 60, environment: dict[str, str] | None = None) -> str:
    """Run a command of ours; AssertionError with its output when it fails."""
    done = kubedra_result(*arguments, timeout=timeout, environment=environment)
    assert done.returncode == 0, f"kubedra {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout


def kubedra_result(
    *arguments: str, timeout: float = 60, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of ours, whatever comes of it."""
    own = os.environ | {"PYTHONPATH": str(ROOT / "src")} | (environment or {})
    command = [sys.executable, "-m", "kubedra", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=own, cwd=ROOT, check=False)


@contextmanager
def embedded_cluster(folder: Path, *options: str) -> Iterator[Running]:
    """A cluster on a folder for the length of a block; nothing of it is left at the end."""
    data = folder / "data"
    kubedra("up", "--detach", "--data", str(data), "--port", "0", *options)
    try:
        state = read_state(data)
        assert state is not None
        yield state
    finally:
        kubedra("down", "--data", str(data))
