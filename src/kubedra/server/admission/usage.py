"""What an object counts for in a quota: pure functions from an object to amounts by quota key (spec §2.13).

Upstream counterpart: pkg/quota/v1/evaluator/core.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubedra.base.quantity import Quantity

Tree = dict[str, Any]
Usage = dict[str, Quantity]

ALL_DEVICES = 32
DEVICES = ".deviceclass.resource.k8s.io/devices"
IMPLICIT = "requests.deviceclass.resource.kubernetes.io/"
# Resources that can be counted by their bare names.
_PLAIN = frozenset(
    {"configmaps", "secrets", "services", "replicationcontrollers", "resourcequotas", "persistentvolumeclaims"}
)
_ONE = Quantity.of(1)
COMPUTE = ("cpu", "memory", "ephemeral-storage")


def usage(storage: str, tree: Tree, extended: Mapping[str, str]) -> Usage:
    """Amounts of an object; `extended` maps device classes to their explicit extended resource."""
    found: Usage = {f"count/{storage}": _ONE}
    if storage in _PLAIN:
        found[storage] = _ONE
    if storage == "pods":
        phase = (tree.get("status") or {}).get("phase", "")
        if phase in ("Succeeded", "Failed"):
            return found
        found["pods"] = _ONE
        _add_pod(found, tree.get("spec") or {})
    elif storage == "resourceclaims.resource.k8s.io":
        for name, count in claim_devices(tree).items():
            amount = Quantity.of(count)
            found[f"{name}{DEVICES}"] = amount
            found[f"{IMPLICIT}{name}"] = amount
            if extended.get(name):
                found[f"requests.{extended[name]}"] = amount
    return found


def claim_devices(claim: Tree) -> dict[str, int]:
    """Devices of each class that a claim may get at most."""
    total: dict[str, int] = {}
    for request in ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ():
        exact = request.get("exactly")
        if exact:
            _count(total, exact)
            continue
        # Of alternatives one is chosen: the largest of each class counts.
        most: dict[str, int] = {}
        for alternative in request.get("firstAvailable") or ():
            one: dict[str, int] = {}
            _count(one, alternative)
            for name, count in one.items():
                most[name] = max(most.get(name, 0), count)
        for name, count in most.items():
            total[name] = total.get(name, 0) + count
    return total


def _count(total: dict[str, int], request: Tree) -> None:
    name = request.get("deviceClassName", "")
    count = ALL_DEVICES if request.get("allocationMode") == "All" else request.get("count", 1)
    total[name] = total.get(name, 0) + count


def _add_pod(found: Usage, spec: Tree) -> None:
    for member, prefix in (("requests", "requests."), ("limits", "limits.")):
        for name, amount in pod_amounts(spec, member).items():
            if name in COMPUTE:
                found[f"{prefix}{name}"] = amount
                if member == "requests":
                    found[name] = amount
            elif member == "requests":
                found[f"requests.{name}"] = amount


def pod_amounts(spec: Tree, member: str) -> Usage:
    """Sum over containers, at least what any init container needs, plus overhead."""
    total: Usage = {}
    for container in spec.get("containers") or ():
        for name, value in ((container.get("resources") or {}).get(member) or {}).items():
            total[name] = total[name] + Quantity.parse(value) if name in total else Quantity.parse(value)
    for container in spec.get("initContainers") or ():
        for name, value in ((container.get("resources") or {}).get(member) or {}).items():
            amount = Quantity.parse(value)
            if name not in total or amount > total[name]:
                total[name] = amount
    for name, value in (spec.get("overhead") or {}).items():
        if name in total:
            total[name] = total[name] + Quantity.parse(value)
    return total
