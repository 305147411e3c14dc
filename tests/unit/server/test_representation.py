"""Tables, metadata, versions, discovery and OpenAPI as clients ask for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.server.in_process import InProcessClient

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def get(client: InProcessClient, path: str, accept: str = "", **query: str) -> Any:
    headers = {"accept": accept} if accept else {}
    answer = await client.request("GET", path, query=query, headers=headers)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


async def test_a_pod_table_has_the_columns_of_upstream(client: InProcessClient) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await client.create(kinds.POD, pod, "default")
    table = await get(client, kinds.POD.path("default"), TABLE)
    assert [c["name"] for c in table["columnDefinitions"] if not c["priority"]] == [
        "Name", "Ready", "Status", "Restarts", "Age",
    ]  # fmt: skip
    assert table["rows"][0]["cells"][:4] == ["p", "0/1", "Pending", "0"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_every_kind_has_a_table(client: InProcessClient) -> None:
    for kind in kinds.ALL:
        if "list" in kind.verbs:
            table = await get(client, kind.path(), TABLE)
            assert table["kind"] in ("Table", f"{kind.kind}List"), kind


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
         "CrashLoopBackOff"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
         "SchedulingGated"),
        ({"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"reason": "Completed"}}}]},
         "Completed"),
        ({"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]}, "Init:0/1"),
    ],
)  # fmt: skip
async def test_one_word_says_how_a_pod_is(client: InProcessClient, status: dict[str, Any], word: str) -> None:
    from kubedra.server.tables.pods import phase

    spec = {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}
    assert phase({"metadata": {"name": "p"}, "spec": spec, "status": status}) == word


async def test_metadata_alone(client: InProcessClient) -> None:
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    found = await get(client, kinds.NAMESPACE.path(), accept)
    assert {item["kind"] for item in found["items"]} == {"PartialObjectMetadata"}
    assert all(set(item) == {"kind", "apiVersion", "metadata"} for item in found["items"])


async def test_a_claim_can_be_read_in_every_version(client: InProcessClient) -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    await client.create(kinds.RESOURCE_CLAIM, {"metadata": {"name": "x"}, "spec": spec}, "default")
    old = await get(client, "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims/x")
    assert old["apiVersion"] == "resource.k8s.io/v1beta1"
    assert old["spec"]["devices"]["requests"][0]["deviceClassName"] == "c"
    listed = await get(client, "/apis/resource.k8s.io/v1beta1/resourceclaims")
    assert listed["items"][0]["spec"]["devices"]["requests"][0]["deviceClassName"] == "c"


async def test_discovery_names_every_kind_once_per_version(client: InProcessClient) -> None:
    groups = await get(client, "/apis")
    assert "resource.k8s.io" in [group["name"] for group in groups["groups"]]
    resources = await get(client, "/apis/resource.k8s.io/v1")
    names = [entry["name"] for entry in resources["resources"]]
    assert "resourceclaims/status" in names and len(names) == len(set(names))
    aggregated = await get(client, "/apis", "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList")
    assert aggregated["kind"] == "APIGroupDiscoveryList"


async def test_openapi_lets_kubectl_apply_and_explain(client: InProcessClient) -> None:
    index = await get(client, "/openapi/v3")
    assert "apis/resource.k8s.io/v1" in index["paths"]
    document = await get(client, "/openapi/v3/apis/resource.k8s.io/v1")
    patch = document["paths"]["/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "ResourceClaim"
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        for reference in _references(schema):
            assert reference.removeprefix("#/components/schemas/") in schemas


def _references(tree: Any) -> list[str]:
    if isinstance(tree, dict):
        own = [tree["$ref"]] if isinstance(tree.get("$ref"), str) else []
        return own + [reference for value in tree.values() for reference in _references(value)]
    if isinstance(tree, list):
        return [reference for value in tree for reference in _references(value)]
    return []


async def test_metrics_and_health(client: InProcessClient) -> None:
    answer = await client.request("GET", "/metrics")
    assert answer.status == 200 and b"apiserver_resource_objects" in answer.body
    assert (await client.request("GET", "/nope")).status == 404
