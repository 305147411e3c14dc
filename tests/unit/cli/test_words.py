from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.base import yaml
from kubedra.cli import apply, connect, resources, wait
from kubedra.cli.output import Refusal


@pytest.mark.parametrize(
    ("word", "plural"),
    [
        ("po", "pods"),
        ("Pod", "pods"),
        ("resourceclaims.resource.k8s.io", "resourceclaims"),
        ("deploy", "deployments"),
        ("deviceclass", "deviceclasses"),
    ],
)
def test_words_for_kinds(word: str, plural: str) -> None:
    assert resources.find_kind(word).plural == plural


def test_the_stable_version_is_meant_unless_another_is_named() -> None:
    assert resources.find_kind("resourceclaims").version == "v1"
    assert resources.find_kind("resourceclaims.v1beta1.resource.k8s.io").version == "v1beta1"


def test_an_unknown_word_suggests_the_nearest() -> None:
    with pytest.raises(click.UsageError, match="did you mean 'resourceclaims'"):
        resources.find_kind("resourceclaimss")


def test_arguments() -> None:
    assert resources.parse_arguments(["pod/a", "node/b"]) == [(kinds.POD, "a"), (kinds.NODE, "b")]
    assert resources.parse_arguments(["pods,nodes"]) == [(kinds.POD, ""), (kinds.NODE, "")]
    assert resources.parse_arguments(["pods", "a", "b"]) == [(kinds.POD, "a"), (kinds.POD, "b")]


def doc(text: str) -> yaml.Document:
    return yaml.load_all(text, "f.yaml")[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Pod\nmetadata: {name: a}\n", "f.yaml:1: the object has no apiVersion"),
        ("apiVersion: v1\nkind: Podd\nmetadata: {name: a}\n", "f.yaml:2: there is no kind 'Podd'; did you mean 'Pod'?"),
        (
            "apiVersion: apps/v2\nkind: Deployment\nmetadata: {name: a}\n",
            "f.yaml:1: Deployment is not served as 'apps/v2', but as apps/v1",
        ),
        ("apiVersion: v1\nkind: Pod\n", "f.yaml:1: Pod has no metadata.name"),
    ],
)
def test_what_is_not_an_object_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(Refusal) as caught:
        apply.resolve(doc(text))
    assert str(caught.value) == message


def test_field_errors_point_at_lines_and_unknown_fields_at_the_nearest_name() -> None:
    document = doc("apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  containers:\n  - name: B\n")
    causes = [{"field": "spec.containers[0].name", "message": "Invalid value"}]
    error = ApiError(422, "Invalid", "x", {"causes": causes})
    assert apply.explain(document, kinds.POD, error) == "f.yaml:7: spec.containers[0].name: Invalid value"
    unknown = ApiError(400, "BadRequest", 'strict decoding error: unknown field "spec.containers[0].imagee"')
    assert "did you mean 'image'?" in apply.explain(document, kinds.POD, unknown)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("condition=Ready", True),
        ("condition=ready=false", False),
        ("phase=Running", True),
        (".status.phase=Running", True),
        (".status.podIP", False),
        ("jsonpath={.status.phase}=Running", True),
        ("create", True),
        ("delete", False),
        ("allocated", False),
    ],
)
def test_states_that_can_be_waited_for(condition: str, holds: bool) -> None:
    tree: dict[str, Any] = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    assert wait.holds(tree, condition) is holds


def test_no_cluster_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(Refusal, match="kubedra up"):
        connect.Target().connection()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("0.5", 0.5), ("60s", 60), ("1m30s", 90), ("500ms", 0.5), ("1h", 3600), ("-1s", 604800), ("0", 0)],
)
def test_durations_are_taken_as_kubectl_takes_them(text: str, seconds: float) -> None:
    assert wait.Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "-", "s", "1x", "1 m", "nan", "1e3", "٣s"])
def test_what_is_no_duration_is_wrong_usage(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a duration"):
        wait.Duration().convert(text, None, None)
