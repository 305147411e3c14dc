"""Devices of device plugins: what is there, who holds what."""

from __future__ import annotations

import pytest

from kubedra.node.device_plugins.pool import AllocationRefused, Assignment, DevicePool, choose, edits
from kubedra.wire.device_plugin import ContainerAllocation, Mount, PluginDevice

GPU = "example.com/gpu"


def pool(*unhealthy: str) -> DevicePool:
    made = DevicePool()
    made.registered(GPU)
    made.update(GPU, [PluginDevice(i, "Unhealthy" if i in unhealthy else "Healthy") for i in ("a", "b", "c")])
    return made


def test_capacity_counts_all_and_allocatable_the_healthy_ones() -> None:
    assert (pool("b").capacity(), pool("b").allocatable()) == ({GPU: 3}, {GPU: 2})


def test_a_plugin_that_is_gone_leaves_capacity_for_a_while_and_then_zero() -> None:
    made = pool()
    made.gone(GPU, 100)
    assert (made.capacity(), made.allocatable()) == ({GPU: 3}, {GPU: 0})
    assert not made.expire(399, 300)
    assert made.expire(400, 300)
    assert (made.capacity(), made.allocatable()) == ({GPU: 0}, {GPU: 0})
    made.registered(GPU)
    made.update(GPU, [PluginDevice("a")])
    assert made.allocatable() == {GPU: 1}


def test_too_few_devices_are_refused_in_upstreams_words() -> None:
    made = pool("c")
    with pytest.raises(AllocationRefused, match=f"requested number of devices unavailable for {GPU}. Requested: 3, Av"):
        made.check(GPU, 3)
    made.assignments.append(Assignment("pod", "c", GPU, ("a",)))
    assert made.check(GPU, 1) == ("b",)
    with pytest.raises(AllocationRefused, match="Requested: 2, Available: 1"):
        made.check(GPU, 2)
    assert made.release("pod")
    assert made.check(GPU, 2) == ("a", "b")
    made.update(GPU, [PluginDevice("a", "Unhealthy")])
    with pytest.raises(AllocationRefused, match="no healthy devices present; cannot allocate unhealthy devices"):
        made.check(GPU, 1)


def test_reusable_devices_come_first_then_preferred_then_any() -> None:
    assert choose(("a", "b", "c", "d"), ("d",), ("c", "x"), 3) == ("d", "c", "a")


def test_edits_of_several_resources_are_joined() -> None:
    one = ContainerAllocation({"A": "1"}, (Mount("/m", "/x"),), (), {"k": "v"}, ("x/y=1",))
    two = ContainerAllocation({"A": "2"}, (Mount("/m", "/y"),), (), {}, ("x/y=1", "x/y=2"))
    got = edits([Assignment("p", "c", "r", ("a",), one), Assignment("p", "c", "s", ("b",), two)])
    assert got == ContainerAllocation({"A": "2"}, (Mount("/m", "/y"),), (), {"k": "v"}, ("x/y=1", "x/y=2"))
