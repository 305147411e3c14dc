"""Device classes, taint rules and pool status requests."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra.api import kinds
from tests.unit.validation.cases import create, named, update

TAINT = {"key": "k", "effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("example.com/gpu", True),
        ("example.com/" + "a" * 63, True),
        ("gpu", False),
        ("x.kubernetes.io/gpu", False),
        ("requests.example.com/gpu", False),
        ("deviceclass.resource.kubernetes.io/x", False),
        ("a" * 245 + "/x", False),
    ],
)
def test_extended_resource_names(name: str, valid: bool) -> None:
    faults = create(kinds.DEVICE_CLASS, named("DeviceClass", spec={"extendedResourceName": name}))
    assert faults == (set() if valid else {"Invalid spec.extendedResourceName"})


def test_unchanged_configuration_may_be_too_large() -> None:
    large = {"config": [{"opaque": {"driver": "d", "parameters": {"a": "x" * 20000}}}]}
    new, old = named("DeviceClass", spec=large), named("DeviceClass", spec=large)
    assert create(kinds.DEVICE_CLASS, new) == {"TooLong spec.config[0].opaque.parameters"}
    assert update(kinds.DEVICE_CLASS, new, old) == set()


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"taint": TAINT}, set()),
        ({"taint": TAINT, "deviceSelector": {}}, set()),
        ({}, {"Invalid spec.taint.key", "Required spec.taint.effect"}),
        ({"taint": TAINT, "deviceSelector": {"driver": "", "pool": "", "device": ""}}, {
            "Required spec.deviceSelector.driver",
            "Required spec.deviceSelector.pool",
            "Invalid spec.deviceSelector.device",
        }),
        ({"taint": {**TAINT, "value": "!"}}, {"Invalid spec.taint.value"}),
    ],
)  # fmt: skip
def test_taint_rules(spec: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.DEVICE_TAINT_RULE, named("DeviceTaintRule", spec=spec)) == faults


def test_stored_effect_of_a_rule_stays_valid() -> None:
    old = named("DeviceTaintRule", spec={"taint": {"key": "k", "effect": "Novel"}})
    new = named("DeviceTaintRule", spec={"taint": {"key": "k", "value": "v", "effect": "Novel"}})
    assert update(kinds.DEVICE_TAINT_RULE, new, old) == set()


REQUEST = kinds.RESOURCE_POOL_STATUS_REQUEST
NAME = "ResourcePoolStatusRequest"


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"driver": "d", "limit": 100}, set()),
        ({"driver": "GPU.example.com", "limit": 1000}, set()),
        ({}, {"Required spec.driver"}),
        ({"driver": "d", "poolName": "a//b"}, {"Invalid spec.poolName"}),
        ({"driver": "d", "limit": 0}, {"Invalid spec.limit"}),
        ({"driver": "d", "limit": 1001}, {"Invalid spec.limit"}),
        ({"driver": "d", "defaultPartitionTypeAttribute": "x"}, {"Invalid spec.defaultPartitionTypeAttribute"}),
    ],
)
def test_pool_status_requests(spec: dict[str, Any], faults: set[str]) -> None:
    assert create(REQUEST, named(NAME, spec=spec)) == faults


def test_pool_status_is_written_once() -> None:
    asked = named(NAME, spec={"driver": "d"})
    answered = {**asked, "status": {"poolCount": 1}}
    assert update(REQUEST, answered, asked, "status") == set()
    assert update(REQUEST, {**asked, "status": {"poolCount": 2}}, answered, "status") == {"Invalid status"}
    assert update(REQUEST, {**asked, "status": {}}, asked, "status") == {"Required status.poolCount"}
    assert update(REQUEST, named(NAME, spec={"driver": "e"}), asked) == {"Invalid spec"}


def test_pool_statuses() -> None:
    pool = {"driver": "d", "poolName": "p", "generation": -1, "totalDevices": -1, "validationError": "x" * 257}
    asked = named(NAME, spec={"driver": "d"})
    answered = {**asked, "status": {"poolCount": 1, "pools": [pool]}}
    assert update(REQUEST, answered, asked, "status") == {
        "Invalid status.pools[0].generation",
        "Invalid status.pools[0].totalDevices",
        "TooLong status.pools[0].validationError",
    }
