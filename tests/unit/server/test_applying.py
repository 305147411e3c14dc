"""Apply and managed fields through the verbs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server

Tree = dict[str, Any]
CLAIM = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
PATH = "/api/v1/namespaces/default/configmaps/a"


async def raw(client: InProcessClient, path: str = PATH) -> Tree:
    answer = await client.request("GET", path)
    tree: Tree = json.loads(answer.body)
    return tree


async def owners(client: InProcessClient, path: str = PATH) -> dict[tuple[str, str], Tree]:
    entries = (await raw(client, path))["metadata"].get("managedFields", [])
    return {(e["manager"], e["operation"]): e["fieldsV1"] for e in entries}


async def apply(client: InProcessClient, manager: str, fields: Tree, **options: Any) -> Any:
    config = {"metadata": {"name": "a"}} | fields
    return await client.patch(
        kinds.CONFIG_MAP, "a", config, "default", patch_type="apply", field_manager=manager, **options
    )


async def refused(coroutine: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await coroutine
    return caught.value


async def test_apply_creates_changes_and_takes_back(client: InProcessClient) -> None:
    made = await apply(client, "m", {"data": {"a": "1", "b": "2"}})
    assert made.data == {"a": "1", "b": "2"}
    changed = await apply(client, "m", {"data": {"a": "3"}})
    assert (changed.data, changed.metadata.uid) == ({"a": "3"}, made.metadata.uid)
    assert await owners(client) == {("m", "Apply"): {"f:data": {"f:a": {}}}}


async def test_an_apply_that_changes_nothing_is_no_write(client: InProcessClient, server: Server) -> None:
    await apply(client, "m", {"data": {"a": "1"}})
    before = server.store.revision
    await apply(client, "m", {"data": {"a": "1"}})
    assert server.store.revision == before


async def test_updates_own_what_they_change(client: InProcessClient) -> None:
    await client.create(kinds.CONFIG_MAP, {"metadata": {"name": "a"}, "data": {"a": "1"}}, "default", field_manager="c")
    await client.patch(kinds.CONFIG_MAP, "a", {"data": {"b": "1"}}, "default", field_manager="p")
    await client.update(kinds.CONFIG_MAP, {"metadata": {"name": "a"}, "data": {"b": "2"}}, "default", field_manager="u")
    assert await owners(client) == {
        ("c", "Update"): {"f:data": {}},
        ("u", "Update"): {"f:data": {"f:b": {}}},
    }


async def test_a_conflict_names_field_and_manager_until_forced(client: InProcessClient) -> None:
    await client.create(kinds.CONFIG_MAP, {"metadata": {"name": "a"}, "data": {"a": "1"}}, "default", field_manager="c")
    error = await refused(apply(client, "m", {"data": {"a": "2"}}))
    assert (error.code, error.message) == (
        409,
        'Apply failed with 1 conflict: conflict with "c" using v1: .data.a',
    )
    await apply(client, "m", {"data": {"a": "2"}}, force=True)
    assert (await owners(client))[("m", "Apply")] == {"f:data": {"f:a": {}}}


async def test_owners_are_recorded_in_the_version_of_the_request(client: InProcessClient) -> None:
    old = kinds.lookup("resource.k8s.io", "v1beta1", "ResourceClaim")
    assert old is not None
    spec = {"devices": {"requests": [{"name": "r", "deviceClassName": "c"}]}}
    config = {"metadata": {"name": "a", "labels": {"l": "1"}}, "spec": spec}
    await client.patch(old, "a", config, "default", patch_type="apply", field_manager="m")
    config = {"metadata": {"name": "a", "labels": {"l": "2"}}}
    error = await refused(
        client.patch(kinds.RESOURCE_CLAIM, "a", config, "default", patch_type="apply", field_manager="n")
    )
    assert error.message == 'Apply failed with 1 conflict: conflict with "m": .metadata.labels.l'
    entries = (await raw(client, kinds.RESOURCE_CLAIM.path("default", "a")))["metadata"]["managedFields"]
    assert [(e["manager"], e["apiVersion"]) for e in entries] == [("m", "resource.k8s.io/v1beta1")]
    # The same applier goes on in the newer version and takes its label back.
    config = {"metadata": {"name": "a"}, "spec": CLAIM}
    claim = await client.patch(kinds.RESOURCE_CLAIM, "a", config, "default", patch_type="apply", field_manager="m")
    assert claim.metadata.labels == {}


async def test_the_status_is_applied_through_its_endpoint_alone(client: InProcessClient) -> None:
    await client.create(kinds.RESOURCE_CLAIM, {"metadata": {"name": "a"}, "spec": CLAIM}, "default", field_manager="c")
    allocation = {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]}}
    config = {"metadata": {"name": "a"}, "status": {"allocation": allocation}}
    claim = await client.patch(
        kinds.RESOURCE_CLAIM, "a", config, "default", patch_type="apply", field_manager="m", subresource="status"
    )
    assert claim.status.allocation is not None
    found = await owners(client, kinds.RESOURCE_CLAIM.path("default", "a"))
    assert found[("m", "Apply")] == {"f:status": {"f:allocation": {"f:devices": {"f:results": {}}}}}
    config = {"metadata": {"name": "b"}, "status": {}}
    error = await refused(
        client.patch(
            kinds.RESOURCE_CLAIM, "b", config, "default", patch_type="apply", field_manager="m", subresource="status"
        )
    )
    assert error.code == 404


async def test_an_apply_with_a_uid_creates_nothing(client: InProcessClient) -> None:
    error = await refused(apply(client, "m", {"metadata": {"name": "a", "uid": "u"}}))
    assert error.message == (
        'Operation cannot be fulfilled on configmaps "a": '
        "uid mismatch: the provided object specified uid u, and no existing object was found"
    )


async def test_an_applier_needs_the_right_to_create(client: InProcessClient, server: Server) -> None:
    role = {
        "metadata": {"name": "patcher"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}],
    }
    binding = {
        "metadata": {"name": "patcher"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "patcher"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    }
    await client.create(kinds.CLUSTER_ROLE, role)
    await client.create(kinds.CLUSTER_ROLE_BINDING, binding)
    alice = InProcessClient(server, "alice", ())
    error = await refused(apply(alice, "m", {"data": {"a": "1"}}))
    assert (error.code, 'cannot create resource "configmaps"' in error.message) == (403, True)
    await apply(client, "n", {"data": {"a": "1"}})
    assert (await apply(alice, "m", {"data": {"b": "1"}})).data == {"a": "1", "b": "1"}
    await alice.close()


async def test_a_config_that_does_not_fit_is_refused(client: InProcessClient) -> None:
    error = await refused(apply(client, "m", {"zap": 1}))
    assert (error.code, error.message) == (
        500,
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .zap: field not declared in schema",
    )
    error = await refused(apply(client, "m", {"metadata": {"name": "b"}}))
    assert error.message == "the name of the object (b) does not match the name on the URL (a)"


async def test_strategic_merge_and_json_patch_go_through_the_verbs(client: InProcessClient) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await client.create(kinds.POD, pod, "default")
    change = {"spec": {"containers": [{"name": "c", "image": "j"}]}}
    changed = await client.patch(kinds.POD, "p", change, "default", patch_type="strategic")
    assert [(c.name, c.image) for c in changed.spec.containers] == [("c", "j")]
    operations = [{"op": "replace", "path": "/spec/containers/0/image", "value": "k"}]
    changed = await client.patch(kinds.POD, "p", operations, "default", patch_type="json")
    assert changed.spec.containers[0].image == "k"


async def test_replicas_are_handed_over_through_the_scale(client: InProcessClient) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    config = {"metadata": {"name": "d"}, "spec": spec}
    await client.patch(kinds.DEPLOYMENT, "d", config, "default", patch_type="apply", field_manager="m")
    path = kinds.DEPLOYMENT.path("default", "d")
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}}
    headers = {"content-type": "application/apply-patch+yaml"}
    query = {"fieldManager": "hpa"}
    body = json.dumps(scale).encode()
    answer = await client.request("PATCH", f"{path}/scale", query=query, body=body, headers=headers)
    assert answer.status == 409
    message = json.loads(answer.body)["message"]
    assert message == 'Apply failed with 1 conflict: conflict with "m": .spec.replicas'
    query["force"] = "true"
    answer = await client.request("PATCH", f"{path}/scale", query=query, body=body, headers=headers)
    assert (answer.status, json.loads(answer.body)["spec"]) == (200, {"replicas": 3})
    found = await owners(client, path)
    assert found[("hpa", "Apply")] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in found[("m", "Apply")]["f:spec"]
    merge = {"content-type": "application/merge-patch+json"}
    body = b'{"spec": {"replicas": 5}}'
    await client.request("PATCH", f"{path}/scale", query={"fieldManager": "u"}, body=body, headers=merge)
    found = await owners(client, path)
    assert found[("u", "Update")] == {"f:spec": {"f:replicas": {}}}
    assert ("hpa", "Apply") not in found
