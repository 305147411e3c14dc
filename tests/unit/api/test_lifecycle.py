"""Versions of kinds come and go with Kubernetes."""

from __future__ import annotations

import pytest

from kubedra.api import kinds
from kubedra.api.lifecycle import deprecation_warning, is_served

GROUP = "resource.k8s.io"


@pytest.mark.parametrize(
    ("version", "kind", "warning"),
    [
        ("v1", "ResourceClaim", ""),
        (
            "v1beta1",
            "ResourceClaim",
            "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+",
        ),
        (
            "v1beta2",
            "DeviceClass",
            "resource.k8s.io/v1beta2 DeviceClass is deprecated in v1.36+, unavailable in v1.39+",
        ),
        ("v1beta2", "DeviceTaintRule", ""),
        (
            "v1alpha3",
            "DeviceTaintRule",
            "resource.k8s.io/v1alpha3 DeviceTaintRule is deprecated in v1.36+, unavailable in v1.39+",
        ),
        ("v1alpha3", "ResourcePoolStatusRequest", ""),
    ],
)
def test_deprecations(version: str, kind: str, warning: str) -> None:
    found = kinds.lookup(GROUP, version, kind)
    assert found is not None
    assert deprecation_warning(found, "1.36") == warning
    assert deprecation_warning(found, "1.34") == ""


def test_taint_rules_became_stable_in_1_37() -> None:
    assert is_served(kinds.DEVICE_TAINT_RULE, "1.37")
    assert not is_served(kinds.DEVICE_TAINT_RULE, "1.36")
    assert is_served(kinds.RESOURCE_CLAIM, "1.36")
