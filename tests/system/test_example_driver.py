"""The driver of examples/driver, run as its README says."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "driver"


def kubedra(*arguments: str, environment: dict[str, str]) -> str:
    """Run the command line and return what it prints."""
    command = [sys.executable, "-m", "kubedra", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def lights() -> Iterator[tuple[Path, dict[str, str]]]:
    with tempfile.TemporaryDirectory(prefix="kd-") as name:
        data = Path(name) / "data"
        environment = os.environ | {
            "PYTHONPATH": str(ROOT / "src"),
            "XDG_RUNTIME_DIR": name,
            "KUBEDRA_DATA": str(data),
            "KUBECONFIG": str(data / "kubeconfig"),
            "NODE_NAME": "bench-0",
        }
        fleet = str(EXAMPLE / "fleet.yaml")
        kubedra("up", "--fleet", fleet, "--data", str(data), "--detach", environment=environment)
        driver = subprocess.Popen([sys.executable, str(EXAMPLE / "led_driver.py")], env=environment)
        try:
            yield data, environment
            driver.terminate()
            assert driver.wait(20) == 0
        finally:
            driver.kill()
            driver.wait()
            kubedra("down", "--data", str(data), environment=environment)


def test_a_pod_gets_the_green_light(lights: tuple[Path, dict[str, str]]) -> None:
    _, environment = lights
    kubedra("apply", "-f", str(EXAMPLE / "pod.yaml"), environment=environment)
    while "the light is green and blinking" not in _log(environment):
        time.sleep(0.2)
    assert "led.example.com" in kubedra("get", "resourceslices", environment=environment)


def _log(environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "kubedra", "logs", "blink"]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60).stdout
