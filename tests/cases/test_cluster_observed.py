"""What a real control plane was seen to do, ours does too.

By default a handful of scenarios of each group runs (each takes seconds of real time); KUBEDRA_REPLAY names others by a
regular expression, `.` for all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared_cases import shared_folder

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = (
    "^(B-direct|B-template|B-gated|B-two-pods-one-template|C-all-ok|C-class-missing|C-first-score|C-match-ok"
    "|C-node-mixed-reasons|C-post-dealloc|C-too-few-one-node|D-slice-added|D-class-added|D-node-uncordoned"
    "|E-evict-shared|E-seconds-cancel|G-orphan|G-two-owners)$"
)


@pytest.mark.timeout(1800)
def test_recorded_scenarios_end_the_same() -> None:
    if shared_folder() is None:
        pytest.skip("the recorded scenarios are not beside this checkout")
    # In a process of its own: the recorded tool leaves threads and connections behind.
    only = os.environ.get("KUBEDRA_REPLAY", SAMPLE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cases.cluster_replaying", "--only", only],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
