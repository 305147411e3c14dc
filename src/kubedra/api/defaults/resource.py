"""Defaults of resource.k8s.io in every version: allocation mode and count, toleration operators, taint times.

In v1beta1 the members of `exactly` stand on the request itself, and a request without a class is taken for one
with alternatives: it gets no mode and no count (and then fails validation, as it does upstream).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

GROUP = "resource.k8s.io"
POOL_STATUS_LIMIT = 100

Tree = dict[str, Any]


def default(version: str, kind: str, tree: Tree, now: str) -> None:
    """Fill in the defaults of one object of this group in place."""
    spec = tree.get("spec")
    if not isinstance(spec, dict):
        return
    if kind == "ResourceClaim":
        _claim_spec(version, spec)
        for result in _members(tree, "status", "allocation", "devices", "results"):
            _tolerations(result)
    elif kind == "ResourceClaimTemplate":
        inner = spec.get("spec")
        if isinstance(inner, dict):
            _claim_spec(version, inner)
    elif kind == "ResourceSlice":
        for device in _members(spec, "devices"):
            target = device.get("basic") if version == "v1beta1" else device
            for taint in _members(target, "taints"):
                _taint_time(taint, now)
    elif kind == "DeviceTaintRule":
        taint = spec.setdefault("taint", {})
        if isinstance(taint, dict):
            _taint_time(taint, now)
    elif kind == "ResourcePoolStatusRequest" and spec.get("limit") is None:
        spec["limit"] = POOL_STATUS_LIMIT


def _claim_spec(version: str, spec: Tree) -> None:
    for request in _members(spec, "devices", "requests"):
        if version == "v1beta1":
            if request.get("deviceClassName"):
                _mode_and_count(request)
            _tolerations(request)
        else:
            exactly = request.get("exactly")
            if isinstance(exactly, dict):
                _mode_and_count(exactly)
                _tolerations(exactly)
        for alternative in _members(request, "firstAvailable"):
            _mode_and_count(alternative)
            _tolerations(alternative)


def _mode_and_count(request: Tree) -> None:
    if not request.get("allocationMode"):
        request["allocationMode"] = "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1


def _tolerations(owner: Tree) -> None:
    for toleration in _members(owner, "tolerations"):
        if not toleration.get("operator"):
            toleration["operator"] = "Equal"


def _taint_time(taint: Tree, now: str) -> None:
    if taint.get("timeAdded") is None:
        taint["timeAdded"] = now


def _members(tree: Any, *path: str) -> Iterator[Tree]:
    """Walk the objects of a list below a tree; whatever is missing or of another type counts as empty."""
    value = tree
    for name in path:
        if not isinstance(value, dict):
            return
        value = value.get(name)
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))
