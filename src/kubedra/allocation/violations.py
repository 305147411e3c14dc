"""What the independent checker finds, and the few things its parts share.

Codes are stable; they are documented by this table and rendered by `kubedra check allocations`.
"""

from __future__ import annotations

from dataclasses import dataclass

CODES = {
    "device-held-twice": "an exclusive device is allocated to more than one claim (or as a whole and in shares)",
    "capacity-overcommitted": "the shares of a device take more of a capacity than it has",
    "counters-overcommitted": "the allocated devices consume more of a counter than there is",
    "groups-incompatible": "devices on one counter set have no compatibility group in common",
    "unknown-request": "a result names a request that the claim does not have",
    "wrong-count": "a request got more or fewer devices than it asks for",
    "mixed-alternatives": "a request got devices of more than one of its alternatives",
    "not-all": "a request for all devices did not get all of them",
    "device-twice-in-request": "a request got the same device twice",
    "device-unknown": "a device is not published any more",
    "pool-unusable": "a device comes from a pool that is incomplete or invalid",
    "class-unknown": "the device class of a request does not exist",
    "selector-not-met": "a device does not pass a selector of the class or the request",
    "selector-failed": "a selector can't be evaluated on a device",
    "constraint-not-met": "devices do not agree with a constraint of the claim",
    "taint-not-tolerated": "a device has a taint that the request does not tolerate",
    "tolerations-differ": "the tolerations recorded differ from those of the request",
    "admin-access-differs": "the admin access recorded differs from that of the request",
    "share-missing": "a shared device was allocated without a share ID",
    "share-unexpected": "an exclusive device was allocated as a share",
    "consumed-capacity-wrong": "the consumed capacity recorded is not what request and policy say",
    "too-many-devices": "a claim holds more than 32 devices",
    "node-not-selected": "the node selector of the allocation does not select the node",
    "node-selector-too-wide": "the node selector selects a node from which a device can't be reached",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong: a code, what it is about, and the details."""

    code: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.detail} ({self.code})"


@dataclass(frozen=True, slots=True)
class CheckFeatures:
    """The features that change what is right."""

    consumable_capacity: bool = True
    fractional_ranges: bool = True
    list_attributes: bool = True
    taints: bool = True
    taint_rules: bool = True
    derived_attributes: bool = True
    # What these have to do with is not looked at, or not handed out, while they are off.
    partitionable: bool = True
    binding_conditions: bool = True
    optional_node_operations: bool = True
    compatibility_groups: bool = True
    # Before 1.37 a request for all devices left shared devices out that were full.
    all_counts_full_devices: bool = True


@dataclass(frozen=True, slots=True)
class Held:
    """One device (or share of it) of a pool that a claim holds."""

    claim: str
    device: str
    share: str | None
    consumed: tuple[tuple[str, str], ...]
