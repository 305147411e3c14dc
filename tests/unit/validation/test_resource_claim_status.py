"""Claim status: reservations, the allocation, and device statuses."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra.api import kinds
from tests.unit.validation.cases import named, update

SPEC = {"devices": {"requests": [{"name": "r"}, {"name": "p", "firstAvailable": [{"name": "s"}]}]}}
RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "d0"}
DEVICE = {"driver": "d", "pool": "p", "device": "d0"}


def allocation(*results: Any, **members: Any) -> dict[str, Any]:
    return {"devices": {"results": list(results), **members}}


def faults(new: dict[str, Any], old: dict[str, Any] | None = None, *, deleting: bool = False) -> set[str]:
    before = named("ResourceClaim", spec=SPEC, status=old or {})
    after = named("ResourceClaim", spec=SPEC, status=new)
    if deleting:
        for tree in (before, after):
            tree["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    return update(kinds.RESOURCE_CLAIM, after, before, "status")


def users(count: int) -> list[dict[str, str]]:
    return [{"resource": "pods", "name": f"p{index}", "uid": f"u{index}"} for index in range(count)]


A = "status.allocation.devices"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, set()),
        ({"allocation": {}, "reservedFor": users(256)}, set()),
        ({"allocation": {}, "reservedFor": users(257)}, {"TooMany status.reservedFor"}),
        ({"reservedFor": users(1)}, {"Forbidden status.reservedFor"}),
        ({"allocation": {}, "reservedFor": [*users(1), *users(1)]}, {"Duplicate status.reservedFor[1]"}),
        ({"allocation": allocation({**RESULT, "request": "p/s"})}, set()),
        ({"allocation": allocation({**RESULT, "request": "p/t"})}, {f"Invalid {A}.results[0].request"}),
        ({"allocation": allocation({**RESULT, "shareID": "x"})}, {f"Invalid {A}.results[0].shareID"}),
        ({"allocation": allocation(*[RESULT] * 33)}, {f"TooMany {A}.results"}),
        ({"allocation": allocation({**RESULT, "tolerations": [{"key": "!"}]})}, set()),
        ({"allocation": allocation(RESULT, config=[{}])}, {
            f"Required {A}.config[0].source",
            f"Required {A}.config[0].opaque",
        }),
        ({"allocation": {"nodeSelector": {}}}, {"Required status.allocation.nodeSelector.nodeSelectorTerms"}),
        ({"allocation": allocation({**RESULT, "bindingConditions": ["a"] * 5, "bindingFailureConditions": ["b"]})}, {
            f"TooMany {A}.results[0].bindingConditions",
            *(f"Duplicate {A}.results[0].bindingConditions[{index}]" for index in range(1, 5)),
        }),
        ({"allocation": allocation({**RESULT, "skipNodeOperations": ["NodePrepareResources"]})}, {
            f"Invalid {A}.results[0].skipNodeOperations",
        }),
    ],
)  # fmt: skip
def test_allocation_and_reservations(status: dict[str, Any], expected: set[str]) -> None:
    assert faults(status) == expected


def test_allocation_is_only_taken_back() -> None:
    held = {"allocation": allocation(RESULT)}
    assert faults({"allocation": allocation(RESULT, RESULT)}, held) == {"Invalid status.allocation"}
    assert faults({}, held) == set()
    assert faults(held, held) == set()


def test_deleted_claims_get_no_new_users() -> None:
    held = {"allocation": {}, "reservedFor": users(1)}
    assert faults({"allocation": {}, "reservedFor": users(2)}, held, deleting=True) == {"Forbidden status.reservedFor"}
    assert faults(held, {"allocation": {}, "reservedFor": users(2)}, deleting=True) == set()


D = "status.devices[0]"
CONDITION = {"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": "2020-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ({}, set()),
        ({"device": "other"}, {f"Invalid {D}"}),
        ({"conditions": [CONDITION]}, set()),
        ({"conditions": [CONDITION, CONDITION]}, {f"Duplicate {D}.conditions[1].type"}),
        ({"conditions": [{}]}, {
            f"Invalid {D}.conditions[0].type",
            f"NotSupported {D}.conditions[0].status",
            f"Required {D}.conditions[0].reason",
            f"Required {D}.conditions[0].lastTransitionTime",
        }),
        ({"data": {"a": 1}}, set()),
        ({"data": "x"}, {f"Invalid {D}.data"}),
        ({"networkData": {"ips": ["192.0.2.1/24"] * 2}}, {f"Duplicate {D}.networkData.ips[1]"}),
        ({"networkData": {"ips": ["192.0.2.1"]}}, {f"Invalid {D}.networkData.ips[0]"}),
        ({"networkData": {"interfaceName": "x" * 257}}, {f"TooLong {D}.networkData.interfaceName"}),
    ],
)  # fmt: skip
def test_device_statuses(device: dict[str, Any], expected: set[str]) -> None:
    assert faults({"allocation": allocation(RESULT), "devices": [{**DEVICE, **device}]}) == expected


def test_device_status_twice() -> None:
    assert faults({"allocation": allocation(RESULT), "devices": [DEVICE, DEVICE]}) == {"Duplicate status.devices[1]"}
