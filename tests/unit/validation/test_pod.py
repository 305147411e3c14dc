"""New pods: containers, claims, volumes, resources, scheduling."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.api.defaults import apply_defaults
from tests.unit.validation.cases import create, named

C = "spec.containers[0]"


def pod(**spec: Any) -> dict[str, Any]:
    tree = named("Pod", spec=copy.deepcopy({"containers": [{"name": "c", "image": "i"}], **spec}))
    return apply_defaults("", "v1", "Pod", tree, now="2026-01-01T00:00:00Z")


def container(**members: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "image": "i", **members}])


def claims(*used: Any, known: tuple[str, ...] = ("a",)) -> dict[str, Any]:
    return pod(
        containers=[{"name": "c", "image": "i", "resources": {"claims": list(used)}}],
        resourceClaims=[{"name": name, "resourceClaimName": "x"} for name in known],
    )


@pytest.mark.parametrize(
    ("tree", "faults"),
    [
        (pod(), set()),
        (pod(containers=[]), {"Required spec.containers"}),
        (pod(restartPolicy="Maybe"), {"NotSupported spec.restartPolicy"}),
        (pod(nodeName="A_"), {"Invalid spec.nodeName"}),
        (pod(nodeName="n", schedulingGates=[{"name": "g"}]), {"Forbidden spec.nodeName"}),
        (pod(activeDeadlineSeconds=0), {"Invalid spec.activeDeadlineSeconds"}),
        (pod(ephemeralContainers=[{"name": "e", "image": "i"}]), {"Forbidden spec.ephemeralContainers"}),
        (container(image=""), {f"Required {C}.image"}),
        (container(image=" i"), {f"Invalid {C}.image"}),
        (container(name="A"), {f"Invalid {C}.name"}),
        (pod(initContainers=[{"name": "c", "image": "i"}]), {"Duplicate spec.initContainers[0].name"}),
        (container(ports=[{"containerPort": 0}]), {f"Required {C}.ports[0].containerPort"}),
        (container(ports=[{"containerPort": 70000}]), {f"Invalid {C}.ports[0].containerPort"}),
        (container(ports=[{"containerPort": 1, "hostPort": 2}] * 2), {f"Duplicate {C}.ports[1].hostPort"}),
        (container(env=[{"name": "A=", "value": "x"}]), {f"Invalid {C}.env[0].name"}),
        (container(env=[{"name": "A", "valueFrom": {}}]), {f"Invalid {C}.env[0].valueFrom"}),
        (container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]), set()),
        (container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]), {
            f"NotSupported {C}.env[0].valueFrom.fieldRef.fieldPath",
        }),
        (container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]), {
            f"Required {C}.env[0].valueFrom.secretKeyRef.key",
        }),
        (container(envFrom=[{}]), {f"Invalid {C}.envFrom[0]"}),
        (container(volumeMounts=[{"name": "v"}]), {
            f"NotFound {C}.volumeMounts[0].name",
            f"Required {C}.volumeMounts[0].mountPath",
        }),
        (container(livenessProbe={}), {f"Required {C}.livenessProbe"}),
        (container(livenessProbe={"exec": {"command": ["x"]}, "successThreshold": 2}), {
            f"Invalid {C}.livenessProbe.successThreshold",
        }),
        (container(securityContext={"privileged": True, "allowPrivilegeEscalation": False}), {
            f"Invalid {C}.securityContext",
        }),
        (pod(initContainers=[{"name": "i", "image": "i", "restartPolicy": "Sometimes"}]), {
            "NotSupported spec.initContainers[0].restartPolicy",
        }),
        (pod(initContainers=[{"name": "i", "image": "i", "lifecycle": {}}]), {
            "Forbidden spec.initContainers[0].lifecycle",
        }),
    ],
)  # fmt: skip
def test_pods_and_containers(tree: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.POD, tree) == faults


@pytest.mark.parametrize(
    ("tree", "faults"),
    [
        (claims({"name": "a"}), set()),
        (claims({"name": "a", "request": "r"}, {"name": "a", "request": "s"}), set()),
        (claims({"name": "z"}), {f"NotFound {C}.resources.claims[0]"}),
        (claims({"name": ""}), {f"Required {C}.resources.claims[0]"}),
        (claims({"name": "a"}, {"name": "a"}), {f"Duplicate {C}.resources.claims[1]"}),
        (claims({"name": "a"}, {"name": "a", "request": "r"}), {f"Duplicate {C}.resources.claims[1]"}),
        (claims({"name": "a", "request": "r"}, {"name": "a"}), {f"Duplicate {C}.resources.claims[1]"}),
        (claims({"name": "a", "request": "R_"}), {f"Invalid {C}.resources.claims[0].request"}),
        (pod(resourceClaims=[{"name": "a"}]), {"Invalid spec.resourceClaims[0]"}),
        (pod(resourceClaims=[{"name": "", "resourceClaimName": "x"}]), {"Required spec.resourceClaims[0].name"}),
        (pod(resourceClaims=[{"name": "a", "resourceClaimName": "x"}] * 2), {"Duplicate spec.resourceClaims[1].name"}),
        (pod(resourceClaims=[{"name": "a", "resourceClaimTemplateName": "T"}]), {
            "Invalid spec.resourceClaims[0].resourceClaimTemplateName",
        }),
        (pod(resourceClaims=[{"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "t"}]), {
            "Invalid spec.resourceClaims[0]",
        }),
        (pod(resources={"claims": [{"name": "a"}]}), {"Forbidden spec.resources.claims"}),
    ],
)  # fmt: skip
def test_claims(tree: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.POD, tree) == faults


def test_static_pods_have_no_claims() -> None:
    tree = pod(resourceClaims=[{"name": "a", "resourceClaimName": "x"}], nodeName="n")
    tree["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert create(kinds.POD, tree) == {"Forbidden []"}


R = f"{C}.resources"


@pytest.mark.parametrize(
    ("resources", "faults"),
    [
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, set()),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, {f"Invalid {R}.requests"}),
        ({"requests": {"cpu": "-1"}}, {f"Invalid {R}.requests[cpu]"}),
        ({"requests": {"gpu": "1"}}, {f"Invalid {R}.requests[gpu]"}),
        ({"limits": {"example.com/gpu": "1"}}, set()),
        ({"requests": {"example.com/gpu": "1"}}, {f"Required {R}.limits"}),
        ({"limits": {"example.com/gpu": "500m"}}, {
            f"Invalid {R}.limits[example.com/gpu]",
            f"Invalid {R}.requests[example.com/gpu]",
        }),
        ({"limits": {"hugepages-2Mi": "2Mi"}}, {f"Forbidden {R}"}),
    ],
)  # fmt: skip
def test_resources(resources: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.POD, container(resources=resources)) == faults


def test_pod_level_resources_cover_the_containers() -> None:
    two = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    assert create(kinds.POD, pod(containers=[two], resources={"requests": {"cpu": "1"}})) == {
        "Invalid spec.resources.requests[cpu]"
    }
    assert create(kinds.POD, pod(resources={"requests": {"example.com/gpu": "1"}})) == {
        "NotSupported spec.resources.requests[example.com/gpu]",
        "Required spec.resources.limits",
    }


@pytest.mark.parametrize(
    ("volume", "faults"),
    [
        ({"emptyDir": {}}, set()),
        ({"emptyDir": {}, "hostPath": {"path": "/x"}}, {"Forbidden spec.volumes[0].hostPath"}),
        ({"hostPath": {"path": "/a/../b"}}, {"Invalid spec.volumes[0].hostPath.path"}),
        ({"secret": {}}, {"Required spec.volumes[0].secret.secretName"}),
        ({"configMap": {"name": "m", "defaultMode": 1000}}, {"Invalid spec.volumes[0].configMap.defaultMode"}),
        ({"configMap": {"name": "m", "items": [{"key": "k", "path": "../x"}]}}, {
            "Invalid spec.volumes[0].configMap.items[0].path",
        }),
        ({"projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 1}}]}}, {
            "Invalid spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds",
        }),
        ({"persistentVolumeClaim": {}}, {"Required spec.volumes[0].persistentVolumeClaim.claimName"}),
        ({"downwardAPI": {"items": [{"path": "p"}]}}, {"Required spec.volumes[0].downwardAPI.items[0]"}),
    ],
)  # fmt: skip
def test_volumes(volume: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.POD, pod(volumes=[{"name": "v", **volume}])) == faults


NODE_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
TERM = {"labelSelector": {"matchLabels": {"a": "b"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"tolerations": [{"operator": "Exists"}]}, set()),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 1}]}, {"Invalid spec.tolerations[0].effect"}),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "v"}]}, {"Invalid spec.tolerations[0].operator"}),
        ({"nodeSelector": {"a b": "c"}}, {"Invalid spec.nodeSelector"}),
        ({"affinity": {"nodeAffinity": {REQUIRED: {}}}}, {f"Required {NODE_TERMS}"}),
        ({"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}}, {
            f"Invalid spec.affinity.nodeAffinity.{PREFERRED}[0].weight",
        }),
        ({"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}}, {
            f"Required spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey",
        }),
        ({"topologySpreadConstraints": [SPREAD]}, set()),
        ({"topologySpreadConstraints": [SPREAD, SPREAD]}, {
            "Duplicate spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}",
        }),
        ({"topologySpreadConstraints": [{}]}, {
            "Invalid spec.topologySpreadConstraints[0].maxSkew",
            "Required spec.topologySpreadConstraints[0].topologyKey",
            "NotSupported spec.topologySpreadConstraints[0].whenUnsatisfiable",
        }),
        ({"schedulingGates": [{"name": "a/b"}, {"name": "a/b"}]}, {"Duplicate spec.schedulingGates[1]"}),
    ],
)  # fmt: skip
def test_scheduling(spec: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.POD, pod(**spec)) == faults
