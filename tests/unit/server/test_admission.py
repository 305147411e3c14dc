"""Priorities, tolerations, quotas, protected namespaces, and what a node may do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings

Tree = dict[str, Any]


def pod(name: str = "p", **spec: Any) -> Tree:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def claim(name: str, **request: Any) -> Tree:
    wanted = {"deviceClassName": "gpu.example.com", **request}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "r", "exactly": wanted}]}}}


async def refused(coroutine: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await coroutine
    return caught.value


async def test_a_pod_gets_priority_and_tolerations(client: InProcessClient) -> None:
    await client.create(kinds.PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 7})
    made = await client.create(kinds.POD, pod(priorityClassName="high"), "default")
    assert made.spec.priority == 7
    assert {t.key for t in made.spec.tolerations} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    error = await refused(client.create(kinds.POD, pod("q", priorityClassName="none"), "default"))
    assert error.code == 403 and "no PriorityClass with name none was found" in error.message


async def test_system_namespaces_stay(client: InProcessClient) -> None:
    error = await refused(client.delete(kinds.NAMESPACE, "default"))
    assert error.message == 'namespaces "default" is forbidden: this namespace may not be deleted'


async def test_a_quota_counts_devices_by_class(client: InProcessClient) -> None:
    hard = {"gpu.example.com.deviceclass.resource.k8s.io/devices": "3", "count/resourceclaims.resource.k8s.io": "2"}
    await client.create(kinds.RESOURCE_QUOTA, {"metadata": {"name": "q"}, "spec": {"hard": hard}}, "default")
    await client.create(kinds.RESOURCE_CLAIM, claim("a", count=2), "default")
    error = await refused(client.create(kinds.RESOURCE_CLAIM, claim("b", count=2), "default"))
    assert error.code == 403 and "exceeded quota: q, requested: gpu.example.com.deviceclass" in error.message
    await client.delete(kinds.RESOURCE_CLAIM, "a", "default")
    await client.create(kinds.RESOURCE_CLAIM, claim("b", count=3), "default")


async def test_a_pod_of_the_bridge_is_charged_once(client: InProcessClient) -> None:
    spec = {"extendedResourceName": "example.com/gpu"}
    await client.create(kinds.DEVICE_CLASS, {"metadata": {"name": "gpu.example.com"}, "spec": spec})
    hard = {"requests.example.com/gpu": "2", "gpu.example.com.deviceclass.resource.k8s.io/devices": "3"}
    await client.create(kinds.RESOURCE_QUOTA, {"metadata": {"name": "q"}, "spec": {"hard": hard}}, "default")
    wanted = {"requests": {"example.com/gpu": "2"}, "limits": {"example.com/gpu": "2"}}
    made = await client.create(
        kinds.POD, pod("p", containers=[{"name": "c", "image": "i", "resources": wanted}]), "default"
    )
    bridge = claim("p-extended", count=2)
    bridge["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made.metadata.uid, "controller": True}
    bridge["metadata"]["ownerReferences"] = [owner]
    await client.create(kinds.RESOURCE_CLAIM, bridge, "default")
    # A claim that only says that it belongs to the pod is charged like any other.
    bridge["metadata"] |= {"name": "forged", "ownerReferences": [owner | {"uid": "someone-else"}]}
    error = await refused(client.create(kinds.RESOURCE_CLAIM, bridge, "default"))
    assert "exceeded quota: q" in error.message


async def test_the_generated_name_stands_in_a_refusal(client: InProcessClient) -> None:
    hard = {"gpu.example.com.deviceclass.resource.k8s.io/devices": "1"}
    await client.create(kinds.RESOURCE_QUOTA, {"metadata": {"name": "q"}, "spec": {"hard": hard}}, "default")
    body = claim("", count=2)
    body["metadata"] = {"generateName": "made-"}
    error = await refused(client.create(kinds.RESOURCE_CLAIM, body, "default"))
    assert 'resourceclaims.resource.k8s.io "made-' in error.message


async def test_a_quota_on_cpu_wants_requests(client: InProcessClient) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1"}}}
    await client.create(kinds.RESOURCE_QUOTA, quota, "default")
    error = await refused(client.create(kinds.POD, pod(), "default"))
    assert "must specify requests.cpu for: c" in error.message
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "600m"}}}
    await client.create(kinds.POD, pod("a", containers=[container]), "default")
    error = await refused(client.create(kinds.POD, pod("b", containers=[container]), "default"))
    assert "requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1" in error.message


@pytest.fixture
async def restricted(tmp_path: Path) -> AsyncIterator[Server]:
    admission = frozenset({"NodeRestriction", "ServiceAccount"})
    server = Server(ServerSettings(tmp_path / "restricted", http=False, admission=admission))
    await server.start()
    yield server
    await server.stop()


async def test_a_node_sees_only_what_its_pods_need(restricted: Server) -> None:
    admin = InProcessClient(restricted)
    await admin.create(kinds.SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, "default")
    node = InProcessClient(restricted, "system:node:n1", ("system:nodes",))
    await node.create(kinds.NODE, {"metadata": {"name": "n1"}})
    error = await refused(node.create(kinds.NODE, {"metadata": {"name": "n2"}}))
    assert 'node "n1" is not allowed to modify node "n2"' in error.message
    await admin.create(kinds.RESOURCE_CLAIM, claim("mine"), "default")
    error = await refused(node.get(kinds.RESOURCE_CLAIM, "mine", "default"))
    assert "no relationship found between node 'n1' and this object" in error.message
    claims = [{"name": "g", "resourceClaimName": "mine"}]
    made = await admin.create(kinds.POD, pod(nodeName="n1", resourceClaims=claims), "default")
    assert made.spec.service_account_name == "default" and made.spec.volumes[0].name.startswith("kube-api-access-")
    assert (await node.get(kinds.RESOURCE_CLAIM, "mine", "default")).metadata.name == "mine"
    error = await refused(node.list(kinds.RESOURCE_SLICE))
    assert "can only list/watch/deletecollection resourceslices with nodeName field selector" in error.message
    assert (await node.list(kinds.RESOURCE_SLICE, field_selector="spec.nodeName=n1")).items == ()
    slice_ = {
        "metadata": {"name": "s"},
        "spec": {"driver": "d.example.com", "nodeName": "n2",
                 "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}},
    }  # fmt: skip
    error = await refused(node.create(kinds.RESOURCE_SLICE, slice_))
    assert "can only create ResourceSlice with the same NodeName as the requesting node" in error.message


async def test_eviction_respects_the_budget(client: InProcessClient) -> None:
    labelled = pod("e", nodeName="n") | {"metadata": {"name": "e", "labels": {"a": "b"}}}
    await client.create(kinds.POD, labelled, "default")
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.patch(kinds.POD, "e", {"status": status}, "default", subresource="status")
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
    await client.create(kinds.POD_DISRUPTION_BUDGET, budget, "default")
    path = kinds.POD.path("default", "e", "eviction")
    body = b'{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"e"}}'
    assert (await client.request("POST", path, body=body)).status == 429
    settled = {"status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1}}
    await client.patch(kinds.POD_DISRUPTION_BUDGET, "b", settled, "default", subresource="status")
    assert (await client.request("POST", path, body=body)).status == 201
    after = await client.get(kinds.POD_DISRUPTION_BUDGET, "b", "default")
    assert after.status.disruptions_allowed == 0 and "e" in after.status.disrupted_pods
    assert (await client.get(kinds.POD, "e", "default")).metadata.deletion_timestamp


async def test_binding_a_pod_twice_conflicts(client: InProcessClient) -> None:
    await client.create(kinds.POD, pod(), "default")
    body = b'{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}}'
    path = kinds.POD.path("default", "p", "binding")
    assert (await client.request("POST", path, body=body)).status == 201
    bound = await client.get(kinds.POD, "p", "default")
    assert bound.spec.node_name == "n1" and bound.status.conditions[0].type == "PodScheduled"
    again = await client.request("POST", path, body=body)
    assert again.status == 409 and b"pod p is already assigned to node" in again.body


async def test_scale_and_tokens(client: InProcessClient) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await client.create(kinds.DEPLOYMENT, {"metadata": {"name": "d"}, "spec": spec}, "default")
    await client.patch(kinds.DEPLOYMENT, "d", {"spec": {"replicas": 3}}, "default", subresource="scale")
    assert (await client.get(kinds.DEPLOYMENT, "d", "default")).spec.replicas == 3
    await client.create(kinds.SERVICE_ACCOUNT, {"metadata": {"name": "s"}}, "default")
    path = kinds.SERVICE_ACCOUNT.path("default", "s", "token")
    answer = await client.request("POST", path, body=b'{"kind":"TokenRequest","spec":{}}')
    assert answer.status == 201 and b'"token":"' in answer.body
    exec_ = await client.request("POST", kinds.POD.path("default", "none", "exec"))
    assert exec_.status == 501


@pytest.mark.parametrize(("every", "tainted"), [(True, {"made", "own"}), (False, {"own"})])
async def test_a_node_that_somebody_else_makes_is_tainted_on_demand(
    tmp_path: Path, every: bool, tainted: set[str]
) -> None:
    server = Server(ServerSettings(tmp_path / "data", http=False, taint_all_nodes=every))
    await server.start()
    people = InProcessClient(server)
    agent = InProcessClient(server, "system:node:own", ("system:nodes", "kubedra:agents"))
    await people.create(kinds.NODE, {"metadata": {"name": "made"}})
    await agent.create(kinds.NODE, {"metadata": {"name": "own"}})
    nodes = (await people.list(kinds.NODE)).items
    assert {node.metadata.name for node in nodes if node.spec.taints} == tainted
    await people.close()
    await agent.close()
    await server.stop()
