"""The official Python client and lightkube list, watch, create and patch against the embedded server."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.server_process import running_server

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    kubernetes = pytest.importorskip("kubernetes")
    lightkube = pytest.importorskip("lightkube")

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore")]

POD: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("interop")
    with running_server(folder / "data"):
        yield folder / "data" / "kubeconfig"


@pytest.fixture(autouse=True)
def _leaks_of_clients() -> Iterator[None]:
    """The clients leave sockets to the collector: it runs here, where its warnings are ignored."""
    yield
    gc.collect()


def test_the_official_client(kubeconfig: Path) -> None:
    api_client = kubernetes.config.new_client_from_config(str(kubeconfig))
    core = kubernetes.client.CoreV1Api(api_client)
    resource = kubernetes.client.ResourceV1Api(api_client)
    assert {item.metadata.name for item in core.list_namespace().items} >= {"default", "kube-system"}
    pod = core.create_namespaced_pod("default", POD)
    assert pod.metadata.uid and pod.spec.restart_policy == "Always"
    patched = core.patch_namespaced_pod("p", "default", {"metadata": {"labels": {"tier": "1"}}})
    assert patched.metadata.labels == {"app": "x", "tier": "1"}
    claim = {
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
    }
    made = resource.create_namespaced_resource_claim("default", claim)
    assert made.spec.devices.requests[0].exactly.count == 1
    seen = []
    watcher = kubernetes.watch.Watch()
    for event in watcher.stream(core.list_namespaced_pod, "default", timeout_seconds=5):
        seen.append((event["type"], event["object"].metadata.name))
        watcher.stop()
    assert seen == [("ADDED", "p")]
    with pytest.raises(kubernetes.client.ApiException) as refused:
        core.create_namespaced_pod("default", {"metadata": {"name": "bad_name"}, "spec": POD["spec"]})
    assert refused.value.status == 422 and "RFC 1123" in refused.value.body
    core.delete_namespaced_pod("p", "default")
    assert core.list_namespaced_pod("default", label_selector="app=x").items == []
    api_client.close()


def test_the_official_dynamic_client_applies(kubeconfig: Path) -> None:
    api_client = kubernetes.config.new_client_from_config(str(kubeconfig))
    dynamic = kubernetes.dynamic.DynamicClient(api_client)
    maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
    applied = maps.server_side_apply(body, namespace="default", field_manager="interop")
    assert applied.metadata.managedFields[0].manager == "interop"
    api_client.close()


def test_lightkube(kubeconfig: Path) -> None:
    from lightkube.core.exceptions import ApiError
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap, Namespace
    from lightkube.types import PatchType

    client = lightkube.Client(config=lightkube.KubeConfig.from_file(str(kubeconfig)))
    assert "default" in [item.metadata.name for item in client.list(Namespace)]
    made = client.create(ConfigMap(metadata=ObjectMeta(name="lk", namespace="default"), data={"a": "1"}))
    patched = client.patch(ConfigMap, "lk", {"data": {"b": "2"}}, namespace="default", patch_type=PatchType.MERGE)
    assert patched.data == {"a": "1", "b": "2"}
    assert patched.metadata.resourceVersion != made.metadata.resourceVersion
    for kind, found in client.watch(ConfigMap, namespace="default", fields={"metadata.name": "lk"}):
        assert (kind, found.metadata.name) == ("ADDED", "lk")
        break
    client.delete(ConfigMap, "lk", namespace="default")
    with pytest.raises(ApiError) as gone:
        client.get(ConfigMap, "lk", namespace="default")
    assert gone.value.status.code == 404
