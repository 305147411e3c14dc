"""Health of devices in pod statuses."""

from __future__ import annotations

from kubedra.api import codec
from kubedra.api.core_v1 import Pod
from kubedra.node.claims.health import HealthReports, resources_status
from kubedra.wire.dra import Device
from kubedra.wire.health import DeviceHealth

DEVICE = Device(("r",), "pool", "dev", ("x/y=z", "x/y=other"))
PLAIN = Device(("r",), "pool", "plain")


def test_a_report_is_believed_for_its_time() -> None:
    reports = HealthReports(30)
    assert reports.of("d", DEVICE) == ("Unknown", "")
    assert reports.update("d", (DeviceHealth("pool", "dev", "Unhealthy", 0, 5, "hot"),), 100)
    assert not reports.update("d", (DeviceHealth("pool", "dev", "Unhealthy", 0, 5, "hot"),), 101)
    assert reports.of("d", DEVICE) == ("Unhealthy", "hot")
    assert not reports.expire(105)
    assert reports.expire(106)
    assert reports.of("d", DEVICE) == ("Unknown", "")


def test_the_end_of_the_stream_makes_devices_unknown() -> None:
    reports = HealthReports(30)
    reports.update("d", (DeviceHealth("pool", "dev", "Healthy"),), 0)
    assert reports.update("d", None, 1)
    assert reports.of("d", DEVICE) == ("Unknown", "")


def test_long_messages_are_cut() -> None:
    reports = HealthReports(30)
    reports.update("d", (DeviceHealth("pool", "dev", "Healthy", message="x" * 2000),), 0)
    assert reports.of("d", DEVICE)[1] == "x" * 1021 + "..."


def test_entries_are_named_by_claim_and_request() -> None:
    claims = [{"name": "c"}, {"name": "c", "request": "r"}]
    spec = {"containers": [{"name": "m", "resources": {"claims": claims}}], "initContainers": [{"name": "i"}]}
    pod = codec.from_tree(Pod, {"spec": spec})
    reports = HealthReports(30)
    reports.update("d", (DeviceHealth("pool", "dev", "Unhealthy", message="hot"),), 0)

    def devices(container: object) -> tuple[tuple[str, Device], ...]:
        return (("d", DEVICE), ("d", PLAIN))

    resources = [
        {"resourceID": "x/y=z", "health": "Unhealthy", "message": "hot"},
        {"resourceID": "d/pool/plain", "health": "Unknown"},
    ]
    got = resources_status(pod, pod.spec.containers[0], devices, reports)
    assert got == ({"name": "claim:c", "resources": resources}, {"name": "claim:c/r", "resources": resources})
    assert resources_status(pod, pod.spec.init_containers[0], devices, reports) == ()
