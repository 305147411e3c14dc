"""Check every allocation of a cluster, from its API objects alone.

The checks themselves live in ``allocation/checker*.py``, where the scheduler may use them too; they share no code with
the search.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubedra.allocation.checker import Checker
from kubedra.allocation.engine import cel_matches, check_features
from kubedra.allocation.features import Features
from kubedra.allocation.violations import Violation
from kubedra.api.core_v1 import Node
from kubedra.api.resource_v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice


def checker_for(features: Features) -> Checker:
    """An empty checker that judges as these features demand."""
    matches = cel_matches(features)
    return Checker(matches, check_features(features), matches.derive)


def check_allocations(
    features: Features,
    *,
    nodes: Iterable[Node],
    classes: Iterable[DeviceClass],
    slices: Iterable[ResourceSlice],
    rules: Iterable[DeviceTaintRule],
    claims: Iterable[ResourceClaim],
) -> list[Violation]:
    """What is wrong with the allocations of a cluster, in the order of claims and pools."""
    checker = checker_for(features)
    for node in nodes:
        checker.update_node(node)
    for device_class in classes:
        checker.update_class(device_class)
    for slice_ in slices:
        checker.update_slice(slice_)
    for rule in rules:
        checker.update_taint_rule(rule)
    for claim in claims:
        checker.update_claim(claim)
    return checker.check_cluster()
