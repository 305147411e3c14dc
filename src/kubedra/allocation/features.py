"""What the allocator may do, resolved once from the feature gates of a Kubernetes version.

The search asks for features in its innermost loop, so they are plain attributes here instead of gate names. Two
behaviours that changed between releases without a gate stand here as well: they are decided by the version alone.

Upstream counterpart: the Features struct of k8s.io/dynamic-resource-allocation/structured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubedra.base.features import FeatureGates

_FIELDS = {
    "admin_access": ("DRAAdminAccess",),
    "prioritized_list": ("DRAPrioritizedList",),
    "partitionable": ("DRAPartitionableDevices",),
    "taints": ("DRADeviceTaints",),
    "taint_rules": ("DRADeviceTaints", "DRADeviceTaintRules"),
    # Drivers report the conditions in the claim's status, so both gates are needed.
    "binding_conditions": ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    "consumable_capacity": ("DRAConsumableCapacity",),
    "fractional_ranges": ("DRAFractionalCapacityRange",),
    "list_attributes": ("DRAListTypeAttributes",),
    "derived_attributes": ("DRADerivedAttributes",),
    "compatibility_groups": ("DRADeviceCompatibilityGroups",),
    "optional_node_operations": ("DRAOptionalNodeOperations",),
}

# The release in which a gate first existed: a cluster of an older one can't have it on.
_SINCE = {
    "DRADeviceTaintRules": "1.35",
    "DRAListTypeAttributes": "1.36",
    "DRADerivedAttributes": "1.37",
    "DRADeviceCompatibilityGroups": "1.37",
    "DRAOptionalNodeOperations": "1.37",
    "DRAFractionalCapacityRange": "1.37",
}


@dataclass(frozen=True)
class Features:
    """Which parts of dynamic resource allocation are on. The defaults are "everything"."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable: bool = True
    taints: bool = True
    taint_rules: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True
    fractional_ranges: bool = True
    list_attributes: bool = True
    derived_attributes: bool = True
    compatibility_groups: bool = True
    optional_node_operations: bool = True
    version: str = "1.37"

    @property
    def config_of_all_requests_is_unscoped(self) -> bool:
        """1.37 clears the requests of a configuration that ends up naming every request of the claim."""
        return self.version >= "1.37"

    @property
    def all_counts_full_devices(self) -> bool:
        """Whether "All" fails when a matching shared device is full, instead of leaving it out.

        Upstream repaired this during 1.37 (PR 140769). A set of features that 1.37 no longer lets anyone turn off
        describes an older release, which leaves full devices out.
        """
        return self.admin_access and self.prioritized_list

    @classmethod
    def of(cls, gates: FeatureGates) -> Features:
        """The features that these gates turn on."""
        values = {name: all(map(gates.enabled, need)) for name, need in _FIELDS.items()}
        if gates.version < _SINCE["DRADeviceTaintRules"]:
            # Rules were a part of taints before they got a gate of their own.
            values["taint_rules"] = values["taints"]
        return cls(version=gates.version, **values)

    @classmethod
    def everything(cls, version: str = "1.37", overrides: Mapping[str, bool] | None = None) -> Features:
        """All features that exist in a version, alpha ones included, less what the overrides turn off."""
        given = overrides or {}
        values = {
            name: all(given.get(gate, version >= _SINCE.get(gate, "1.34")) for gate in need)
            for name, need in _FIELDS.items()
        }
        if version < _SINCE["DRADeviceTaintRules"]:
            values["taint_rules"] = values["taints"]
        return cls(version=version, **values)
