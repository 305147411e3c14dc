"""Protobuf bodies of Go clients."""

from __future__ import annotations

import base64

import pytest

from kubedra.api import kinds
from kubedra.server.decoding import protobuf
from kubedra.server.in_process import InProcessClient


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return protobuf.MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


DEPLOYMENT = field(1, field(1, "d") + field(3, "")) + field(
    2,
    field(1, 0)
    + field(2, field(1, field(1, "app") + field(2, "d")))
    + field(
        3,
        field(1, field(11, field(1, "app") + field(2, "d")))
        + field(
            2,
            field(
                2,
                field(1, "c")
                + field(2, "i")
                + field(6, field(1, "p") + field(2, 0) + field(3, 80) + field(4, "TCP"))
                + field(8, field(1, field(1, "cpu") + field(2, field(1, "1500m")))),
            )
            + field(11, 0),
        ),
    )
    + field(7, 0),
)


def test_pointers_keep_their_zero_and_plain_fields_lose_it() -> None:
    tree = protobuf.decode(DEPLOYMENT, "io.k8s.api.apps.v1.Deployment")
    assert tree["metadata"] == {"name": "d"}
    assert tree["spec"]["replicas"] == 0 and "paused" not in tree["spec"]
    pod = tree["spec"]["template"]["spec"]
    assert "hostNetwork" not in pod
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": "1500m"}}
    assert pod["containers"][0]["ports"] == [{"name": "p", "containerPort": 80, "protocol": "TCP"}]


def test_inlined_structs_bytes_and_times() -> None:
    volume = field(1, "v") + field(2, field(2, field(1, "Memory")))
    assert protobuf.decode(volume, "io.k8s.api.core.v1.Volume") == {"name": "v", "emptyDir": {"medium": "Memory"}}
    secret = field(2, field(1, "k") + field(2, b"\x00\xff")) + field(1, field(8, field(1, 1_700_000_000)))
    tree = protobuf.decode(secret, "io.k8s.api.core.v1.Secret")
    assert base64.b64decode(tree["data"]["k"]) == b"\x00\xff"
    assert tree["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"


@pytest.mark.parametrize("cut", [5, 20, 40])
def test_broken_messages_are_refused(cut: int) -> None:
    with pytest.raises(protobuf.ProtobufError):
        protobuf.decode(DEPLOYMENT[:-cut], "io.k8s.api.apps.v1.Deployment")


async def test_a_deployment_can_be_created_from_protobuf(client: InProcessClient) -> None:
    body = envelope("apps/v1", "Deployment", DEPLOYMENT)
    headers = {"content-type": protobuf.MEDIA_TYPE}
    answer = await client.request("POST", kinds.DEPLOYMENT.path("default"), body=body, headers=headers)
    assert answer.status == 201, answer.body
    assert (await client.get(kinds.DEPLOYMENT, "d", "default")).spec.replicas == 0
    wrong = await client.request("POST", kinds.DEPLOYMENT.path("default"), body=b"nonsense", headers=headers)
    assert wrong.status == 400 and b"expected prefix 6b 38 73 00" in wrong.body
