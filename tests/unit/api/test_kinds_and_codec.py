from __future__ import annotations

import msgspec
import pytest

from kubedra.api import codec, core_v1, kinds, resource_v1, schema


def test_every_kind_has_a_definition_and_a_decoder() -> None:
    for kind in kinds.ALL:
        assert schema.for_kind(kind).fields
        codec.decode(kind.type, b"{}")


def test_attributes_whose_json_names_are_types_decode() -> None:
    got = codec.decode(resource_v1.DeviceAttribute, b'{"int":3,"bool":true,"string":"","ints":[1]}')
    assert (got.int_, got.bool_, got.string, got.version, got.ints) == (3, True, "", None, (1,))
    assert codec.to_tree(got) == {"int": 3, "bool": True, "string": "", "ints": [1]}


def test_null_counts_as_absent() -> None:
    pod = codec.decode(core_v1.Pod, b'{"metadata":{"creationTimestamp":null,"name":"p"},"spec":{"containers":null}}')
    assert pod.metadata.name == "p"
    assert pod.spec.containers == ()


def test_acronyms_keep_their_names_on_the_wire() -> None:
    pod = codec.decode(core_v1.Pod, b'{"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}}')
    assert pod.status.pod_ip == "10.0.0.1"
    assert pod.status.pod_ips[0].ip == "10.0.0.1"
    assert codec.to_tree(pod) == {"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}


def test_structs_are_values() -> None:
    pod = core_v1.Pod()
    with pytest.raises(AttributeError):
        pod.kind = "x"  # type: ignore[misc]
    with pytest.raises(msgspec.DecodeError):
        codec.decode(core_v1.Pod, b'{"metadata":[]}')


def test_paths() -> None:
    assert kinds.POD.path("a", "b", "status") == "/api/v1/namespaces/a/pods/b/status"
    assert kinds.RESOURCE_SLICE.path("", "s") == "/apis/resource.k8s.io/v1/resourceslices/s"
    assert kinds.RESOURCE_CLAIM.path() == "/apis/resource.k8s.io/v1/resourceclaims"


def test_table_knows_merge_facts() -> None:
    containers = schema.definition("io.k8s.api.core.v1.PodSpec").fields["containers"]
    assert (containers.patch_merge_key, containers.list_map_keys, containers.list_type) == ("name", ("name",), "map")
