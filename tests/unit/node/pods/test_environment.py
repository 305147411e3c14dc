"""Environment and command of a container."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra.api import codec
from kubedra.api.core_v1 import Container, Pod
from kubedra.node.pods.environment import (
    ConfigError,
    NodeFacts,
    Sources,
    container_command,
    container_env,
    expand,
    references,
)

FACTS = NodeFacts("n1", "10.0.0.1", {"cpu": "4", "memory": "8Gi"})


def build(**container: Any) -> tuple[Pod, Container]:
    tree = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"b": 'x"y', "a": "1"}},
        "spec": {"serviceAccountName": "sa", "containers": [{"name": "c", **container}]},
    }
    pod = codec.from_tree(Pod, tree)
    return pod, pod.spec.containers[0]


NOTHING = Sources()


def env(sources: Sources = NOTHING, **container: Any) -> dict[str, str]:
    pod, built = build(**container)
    return container_env(pod, built, sources, FACTS, {"BASE": "b"})


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("$(A)$(B)", "1$(B)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A $( $", "$A $( $"),
        ("", ""),
    ],
)
def test_references_are_expanded_as_upstream_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1"}) == expanded


def test_fields_and_resources_of_the_pod() -> None:
    def field(path: str) -> dict[str, Any]:
        return {"valueFrom": {"fieldRef": {"fieldPath": path}}}

    def resource(name: str, divisor: str = "") -> dict[str, Any]:
        return {"valueFrom": {"resourceFieldRef": {"resource": name, "divisor": divisor}}}

    got = env(
        env=[
            {"name": "NODE", **field("spec.nodeName")},
            {"name": "IP", **field("status.hostIP")},
            {"name": "LABEL", **field("metadata.labels['a']")},
            {"name": "LABELS", **field("metadata.labels")},
            {"name": "CPU", **resource("limits.cpu")},
            {"name": "MCPU", **resource("requests.cpu", "1m")},
            {"name": "MEM", **resource("limits.memory", "1Mi")},
        ],
        resources={"requests": {"cpu": "1500m"}, "limits": {"cpu": "1500m"}},
    )
    assert got == {
        "BASE": "b",
        "NODE": "n1",
        "IP": "10.0.0.1",
        "LABEL": "1",
        "LABELS": 'a="1"\nb="x\\"y"',
        "CPU": "2",
        "MCPU": "1500",
        "MEM": "8192",
    }


def test_whole_maps_come_first_with_their_prefix() -> None:
    sources = Sources({"cm": {"k": b"map", "not valid": b"x"}}, {"s": {"k": b"secret"}})
    got = env(
        sources,
        envFrom=[{"configMapRef": {"name": "cm"}}, {"prefix": "S_", "secretRef": {"name": "s"}}],
        env=[{"name": "k", "value": "own $(k)"}],
    )
    assert got == {"BASE": "b", "k": "own map", "S_k": "secret"}


@pytest.mark.parametrize(
    ("container", "text"),
    [
        ({"envFrom": [{"configMapRef": {"name": "x"}}]}, 'configmap "x" not found'),
        ({"envFrom": [{"secretRef": {"name": "x"}}]}, 'secret "x" not found'),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "no"}}}]},
            "couldn't find key no in ConfigMap ns/cm",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.no"}}}]},
            "unsupported fieldPath: spec.no",
        ),
    ],
)
def test_what_is_missing_has_upstreams_sentence(container: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        env(Sources({"cm": {}, "x": None}, {"x": None}), **container)
    assert str(caught.value) == text


def test_optional_references_may_be_missing() -> None:
    optional = {"name": "x", "optional": True}
    got = env(
        envFrom=[{"configMapRef": optional}, {"secretRef": optional}],
        env=[{"name": "A", "valueFrom": {"secretKeyRef": {**optional, "key": "k"}}}],
    )
    assert got == {"BASE": "b"}


def test_references_of_a_pod_are_collected() -> None:
    tree = {
        "spec": {
            "containers": [{"name": "c", "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}]}],
            "volumes": [
                {"name": "v", "secret": {"secretName": "d"}},
                {"name": "w", "projected": {"sources": [{"configMap": {"name": "e"}}]}},
            ],
        }
    }
    assert references(codec.from_tree(Pod, tree)) == (frozenset("ae"), frozenset("bd"))


def test_the_command_is_expanded() -> None:
    _, container = build(command=["echo", "$(A)"], args=["$(A)$$"])
    assert container_command(container, {"A": "1"}) == ("echo", "1", "1$")
    _, container = build(args=["only"])
    assert container_command(container, {}) == ()
