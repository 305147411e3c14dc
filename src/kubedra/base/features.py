"""Feature gates by Kubernetes version (spec §1).

A gate is on, off, or locked on for each minor version; unknown gates are refused with the nearest name. Unlike upstream
a locked gate can be turned off: scenarios ask what a cluster without the feature would do.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

VERSIONS = ("1.34", "1.35", "1.36", "1.37")

ON, OFF, LOCKED = "on", "off", "locked"

# gate: state in 1.34, 1.35, 1.36, 1.37; "off" also where the gate did not exist yet
_TABLE: dict[str, tuple[str, str, str, str]] = {
    "DynamicResourceAllocation": (ON, LOCKED, LOCKED, LOCKED),
    "DRAAdminAccess": (ON, ON, LOCKED, LOCKED),
    "DRAPrioritizedList": (ON, ON, ON, LOCKED),
    "DRAResourceClaimDeviceStatus": (ON, ON, ON, LOCKED),
    "DRAResourceClaimGranularStatusAuthorization": (OFF, OFF, ON, ON),
    "DRAExtendedResource": (OFF, OFF, ON, LOCKED),
    "DRADeviceTaints": (OFF, OFF, ON, ON),
    "DRADeviceTaintRules": (OFF, OFF, OFF, ON),
    "DRADeviceBindingConditions": (OFF, OFF, ON, ON),
    "DRAPartitionableDevices": (OFF, OFF, ON, ON),
    "DRAPartitionableDevicesType": (OFF, OFF, OFF, OFF),
    "DRADeviceCompatibilityGroups": (OFF, OFF, OFF, OFF),
    "DRAConsumableCapacity": (OFF, OFF, ON, ON),
    "DRAFractionalCapacityRange": (OFF, OFF, OFF, ON),
    "DRAListTypeAttributes": (OFF, OFF, OFF, OFF),
    "DRADerivedAttributes": (OFF, OFF, OFF, OFF),
    "DRANodeAllocatableResources": (OFF, OFF, OFF, OFF),
    "DRAOptionalNodeOperations": (OFF, OFF, OFF, OFF),
    "DRAWorkloadResourceClaims": (OFF, OFF, OFF, OFF),
    "DRAResourcePoolStatus": (OFF, OFF, OFF, OFF),
    "DRASchedulerFilterTimeout": (ON, ON, ON, ON),
    "ResourceHealthStatus": (OFF, OFF, ON, ON),
    "ResourceHealthStatusMessage": (OFF, OFF, ON, ON),
    "GenericWorkload": (OFF, OFF, OFF, OFF),
}


class FeatureError(ValueError):
    """A gate or version that does not exist, or text that is no setting of a gate."""


@dataclass(frozen=True)
class FeatureGates:
    """The gates of one version with overrides; immutable and hashable by identity of its settings."""

    version: str = "1.37"
    overrides: Mapping[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.version not in VERSIONS:
            raise FeatureError(f"Kubernetes version {self.version!r} is not one of {', '.join(VERSIONS)}")
        for gate in self.overrides:
            if gate not in _TABLE:
                near = difflib.get_close_matches(gate, _TABLE, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise FeatureError(f"unknown feature gate {gate!r}{hint}")

    def __hash__(self) -> int:
        return hash((self.version, frozenset(self.overrides.items())))

    def enabled(self, gate: str) -> bool:
        """Whether a gate is on; KeyError for a gate that does not exist (a programming error)."""
        if gate in self.overrides:
            return self.overrides[gate]
        return _TABLE[gate][VERSIONS.index(self.version)] != OFF

    @classmethod
    def parse(cls, text: str, version: str = "1.37") -> FeatureGates:
        """``A=true,B=false`` as on upstream's command lines; raises FeatureError."""
        overrides: dict[str, bool] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            gate, equals, value = part.partition("=")
            if not equals or value.lower() not in ("true", "false"):
                raise FeatureError(f"feature gate {part!r} must have the form Name=true or Name=false")
            overrides[gate] = value.lower() == "true"
        return cls(version, overrides)

    @staticmethod
    def names() -> tuple[str, ...]:
        """All gates that kubedra knows, sorted."""
        return tuple(sorted(_TABLE))
