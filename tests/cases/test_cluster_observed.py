"""What a real control plane was seen to do, ours does too.

By default a handful of scenarios of each group runs (each takes seconds of real time); KUBEDRA_REPLAY names others by a
regular expression, `.` for all.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cases.cluster_exceptions import EXCEPTIONS
from tests.cases.cluster_replaying import replay, report, scenarios
from tests.shared_cases import shared_folder

SAMPLE = (
    "^(B-direct|B-template|B-gated|B-two-pods-one-template|C-all-ok|C-class-missing|C-first-score|C-match-ok"
    "|C-node-mixed-reasons|C-post-dealloc|C-too-few-one-node|D-slice-added|D-class-added|D-node-uncordoned"
    "|G-orphan|G-two-owners)$"
)


@pytest.mark.timeout(1800)
def test_recorded_scenarios_end_the_same(tmp_path: Path) -> None:
    folder = shared_folder()
    if folder is None:
        pytest.skip("the recorded scenarios are not beside this checkout")
    chosen = scenarios(folder, os.environ.get("KUBEDRA_REPLAY", SAMPLE))
    results = replay(folder, chosen, 4, tmp_path)
    assert len(results) == len(chosen)
    wrong = [result for result in results if not result.same and result.id not in EXCEPTIONS]
    assert not wrong, report(wrong)
