from __future__ import annotations

import pytest

from kubedra.base.features import FeatureError, FeatureGates


def test_gates_follow_the_version() -> None:
    assert not FeatureGates("1.36").enabled("DRADeviceTaintRules")
    assert FeatureGates("1.37").enabled("DRADeviceTaintRules")
    assert not FeatureGates("1.34").enabled("DRAPartitionableDevices")


def test_overrides_win() -> None:
    gates = FeatureGates.parse("DRADeviceTaints=false, DRAListTypeAttributes=true")
    assert not gates.enabled("DRADeviceTaints")
    assert gates.enabled("DRAListTypeAttributes")


@pytest.mark.parametrize("text", ["DRADeviceTaint=true", "DRADeviceTaints", "DRADeviceTaints=maybe"])
def test_wrong_gates_are_refused(text: str) -> None:
    with pytest.raises(FeatureError):
        FeatureGates.parse(text)
