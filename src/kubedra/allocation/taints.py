"""Which taints a device has and which requests bear them.

A DeviceTaintRule adds its taint behind those that the driver published. A rule without a device selector matches no
device (API documentation), an empty selector matches all. Effects that are not known count as None.

Upstream counterpart: resourceslice/tracker and the ToleratesTaint helper of k8s.io/dynamic-resource-allocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubedra.api.resource_v1 import DeviceTaint, DeviceTaintRule, DeviceToleration

BLOCKING_EFFECTS = frozenset(("NoSchedule", "NoExecute"))


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether one toleration covers one taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def first_untolerated(taints: Iterable[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> DeviceTaint | None:
    """The first taint that keeps a request with these tolerations from the device, or None."""
    for taint in taints:
        if taint.effect in BLOCKING_EFFECTS and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


def rule_matches(rule: DeviceTaintRule, driver: str, pool: str, device: str) -> bool:
    """Whether a rule taints this device."""
    selector = rule.spec.device_selector
    if selector is None:
        return False
    return (
        (selector.driver is None or selector.driver == driver)
        and (selector.pool is None or selector.pool == pool)
        and (selector.device is None or selector.device == device)
    )
