"""Which driver instance serves, who is refused, and when slices are wiped."""

from __future__ import annotations

import pytest

from kubedra.node.plugins.registry import DriverRegistry, Instance, RegistrationRefused, Services, negotiate


def instance(endpoint: str) -> Instance:
    return Instance("d", endpoint, endpoint, Services("v1"))


def test_the_first_known_service_in_the_plugins_order_is_taken() -> None:
    assert negotiate("d", "e", ["v2.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAPlugin"]).version == "v1beta1"
    assert negotiate("d", "e", ["v1.DRAPlugin", "v1alpha1.DRAResourceHealth"]) == Services("v1", "v1alpha1")


@pytest.mark.parametrize(
    ("supported", "text"),
    [
        ([], "empty list of supported gRPC services (aka supported versions)"),
        (
            ["v2.DRAPlugin"],
            'none of services supported by the plugin (["v2.DRAPlugin"]) are supported by the kubelet '
            '(["v1.DRAPlugin" "v1beta1.DRAPlugin"])',
        ),
    ],
)
def test_refusals_have_upstreams_sentences(supported: list[str], text: str) -> None:
    with pytest.raises(RegistrationRefused) as caught:
        negotiate("d", "e", supported)
    assert str(caught.value) == f"invalid supported gRPC versions of DRA driver plugin d at endpoint e: {text}"


def test_a_driver_without_a_name_is_refused() -> None:
    # Upstream takes it, and deletes every slice of the node when it leaves.
    with pytest.raises(RegistrationRefused, match="DRA driver name is empty"):
        negotiate("", "e", ["v1.DRAPlugin"])


def test_the_newest_connected_instance_serves() -> None:
    registry = DriverRegistry(30)
    registry.add(instance("old"))
    registry.add(instance("new"))
    assert registry.serving("d") == instance("new")
    registry.set_connected("old", True, 0)
    assert registry.serving("d") == instance("old")
    registry.set_connected("new", True, 0)
    assert registry.serving("d") == instance("new")
    with pytest.raises(RegistrationRefused, match="endpoint new already registered for DRA driver plugin d"):
        registry.add(instance("new"))
    assert registry.serving("other") is None


def test_slices_are_wiped_a_fixed_time_after_the_last_connection_broke() -> None:
    registry = DriverRegistry(30)
    registry.add(instance("e"))
    registry.set_connected("e", True, 0)
    registry.set_connected("e", False, 10)
    registry.remove("e", 25)
    assert registry.due_wipes(39.9) == ()
    assert registry.due_wipes(40) == ("d",)
    assert registry.due_wipes(50) == ()


def test_a_connection_cancels_the_wipe() -> None:
    registry = DriverRegistry(30)
    registry.add(instance("e"))
    registry.remove("e", 0)
    registry.add(instance("e"))
    registry.set_connected("e", True, 20)
    assert registry.due_wipes(100) == ()
