"""Comparing what our control plane did in a scenario with what upstream's was seen to do.

The recorded tool compares exactly. On top of it, differences are forgiven that the cases' own description allows, or
that are ours on purpose in every scenario:

* our sentence after upstream's message, in conditions and events;
* reasons of PreEnqueue, which upstream keeps to itself (note 7): we write them into the PodScheduled condition;
* hashes of pod templates, which the recording tool replaces and the replaying one does not;
* the node in Scheduled events, where several are equal (`free_choice`);
* FailedScheduling events, which depend on how often an implementation tries (what counts at the end is the condition).
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any

GATED = re.compile(
    r"ResourceClaim not created yet$|^resourceclaim \".*\" (not found|is being deleted)$"
    r"|was not created for Pod|none of the supported fields are set$"
)


def forgiven(want: dict[str, Any], got: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both sides with the differences removed that are no differences."""
    want, got = copy.deepcopy(want), _without_hashes(got)
    for expected, actual in zip(want["snapshots"], got["snapshots"], strict=False):
        if "timing" in expected:
            continue
        for side in (expected, actual):
            side["events"] = [event for event in side["events"] if event.get("reason") != "FailedScheduling"]
            if want.get("free_choice"):
                for event in side["events"]:
                    event["message"] = re.sub(r" to \S+$", " to <node>", event.get("message") or "")
        pods = {pod["metadata"]["name"]: pod for pod in expected["pods"]}
        for pod in actual["pods"]:
            _conditions(pods.get(pod["metadata"]["name"]), pod)
    return want, got


def _without_hashes(got: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(got)
    for value in set(re.findall(r'"pod-template-hash": "([a-z0-9]+)"', text)):
        text = text.replace(value, "<hash>")
    result: dict[str, Any] = json.loads(text)
    return result


def _conditions(want: dict[str, Any] | None, got: dict[str, Any]) -> None:
    conditions = got["status"].get("conditions", [])
    expected = _scheduled(want) if want is not None else None
    for condition in list(conditions):
        if condition["type"] != "PodScheduled":
            continue
        message = condition.get("message", "")
        if condition["status"] == "False" and GATED.search(message):
            conditions.remove(condition)
            if expected is not None:
                conditions.append(copy.deepcopy(expected))
        elif expected is not None and message.startswith(expected.get("message", "\0") + " "):
            condition["message"] = expected["message"]
    if not conditions:
        got["status"].pop("conditions", None)


def _scheduled(pod: dict[str, Any]) -> dict[str, Any] | None:
    conditions = pod["status"].get("conditions", [])
    return next((item for item in conditions if isinstance(item, dict) and item["type"] == "PodScheduled"), None)
