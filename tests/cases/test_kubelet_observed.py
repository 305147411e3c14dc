"""What a real kubelet 1.36.2 did with DRA pods, ours does too, or there is a reason."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from kubedra.node.claims.checkpoint import decode, encode
from tests.cases.kubelet_replay import Replay
from tests.shared_cases import read_cases, shared_folder

# Registration, device plugins, health and long waits: other tests look at those.
PREFIXES = ("pod-", "retry-", "resp-", "driver-", "del-", "event-", "delete-", "kr-")
LEFT_OUT = frozenset({"kr-corrupt-checkpoint"})  # see tests/unit/node/claims/test_claim_checkpoint.py

# Where ours differs on purpose: subjects of the difference, and why.
STUCK = "a pod whose claim was never created has nothing to unprepare: the kubelet keeps it for ever, ours lets it go"
ON_PURPOSE: dict[str, tuple[frozenset[str], str]] = {
    "pod-template-pending": (frozenset({"phases", "deleted"}), STUCK),
    "pod-template-missing-stuck": (frozenset({"phases", "deleted"}), STUCK),
    "pod-request-names": (
        frozenset({"devices"}),
        "a device reported for request b/sub1 is given to a container that asks for b",
    ),
    "pod-second-driver-fails": (
        frozenset({"calls"}),
        "the kubelet asked the drivers in a random order, ours asks in the order of the allocation",
    ),
}
# What was in the way was removed, and the kubelet would have tried again after a minute; ours may have by then.
MAY_BE_QUICKER = frozenset({"pod-not-reserved", "pod-not-allocated", "pod-no-claim-object", "del-claim-recreated"})
QUICKER = frozenset({"calls", "devices", "phases"})


def _replayed(name: str) -> bool:
    return name.startswith(PREFIXES) and name not in LEFT_OUT


def _cases() -> list[dict[str, Any]]:
    if shared_folder() is None:
        return []
    return [case for case in read_cases("kubelet-observed.jsonl.gz") if _replayed(case["id"])]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case["id"])
async def test_replay(case: dict[str, Any], tmp_path: Path) -> None:
    replay = Replay(case, tmp_path)
    await replay.run()
    differences = replay.differences()
    subjects, _ = ON_PURPOSE.get(case["id"], (frozenset(), ""))
    allowed = subjects | (QUICKER if case["id"] in MAY_BE_QUICKER else frozenset())
    unexpected = {key: pair for key, pair in differences.items() if key not in allowed}
    assert unexpected == {}
    assert subjects <= differences.keys(), "the list of exceptions names something that is the same now"


def test_all_recorded_checkpoints_are_read_and_written_alike() -> None:
    count = 0
    for case in read_cases("kubelet-observed.jsonl.gz"):
        for event in case["timeline"]:
            data = event.get("data") or {}
            if event["what"] != "file dra_manager_state" or not isinstance(data.get("Data"), dict):
                continue
            text = json.dumps(data["Data"], separators=(",", ":"))
            states = decode(json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode())}).encode())
            again = json.loads(json.loads(encode(states))["Data"])
            theirs = data["Data"]
            theirs["ClaimInfoStateList"] = theirs["ClaimInfoStateList"] or []
            # One of them was planted with a version that nobody knows, which the kubelet takes without a word.
            assert again["ClaimInfoStateList"] == theirs["ClaimInfoStateList"]
            count += 1
    assert count > 100
