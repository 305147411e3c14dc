"""Volumes as folders."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from kubedra.api import codec
from kubedra.api.core_v1 import Pod
from kubedra.node.pods.environment import NodeFacts, Sources
from kubedra.node.pods.volumes import VolumeError, container_mounts, set_up, token_requests, volume_files
from kubedra.node.runtime.contract import Mount

FACTS = NodeFacts("n1", "10.0.0.1")
SOURCES = Sources({"cm": {"k": b"map", "l": b"other"}, "none": None}, {"s": {"p": b"secret"}})


def build(*volumes: dict[str, Any], mounts: tuple[dict[str, Any], ...] = ()) -> Pod:
    spec = {"containers": [{"name": "c", "volumeMounts": list(mounts)}], "volumes": list(volumes)}
    return codec.from_tree(Pod, {"metadata": {"name": "p", "labels": {"a": "1"}}, "spec": spec})


def make(folder: Path, *volumes: dict[str, Any]) -> dict[str, str]:
    pod = build(*volumes)
    tokens = dict.fromkeys(token_requests(pod), "token")
    return set_up(pod, folder, volume_files(pod, SOURCES, FACTS, tokens))


def test_every_kind_of_volume(tmp_path: Path) -> None:
    sources = [
        {"secret": {"name": "s"}},
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"serviceAccountToken": {"path": "token"}},
    ]
    found = make(
        tmp_path / "v",
        {"name": "e", "emptyDir": {}},
        {"name": "h", "hostPath": {"path": str(tmp_path)}},
        {"name": "m", "configMap": {"name": "cm", "items": [{"key": "k", "path": "sub/k", "mode": 0o600}]}},
        {"name": "p", "projected": {"sources": sources}},
    )
    assert list(Path(found["e"]).iterdir()) == []
    assert found["h"] == str(tmp_path)
    file = Path(found["m"]) / "sub" / "k"
    assert file.read_bytes() == b"map"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    contents = {path.name: path.read_text() for path in Path(found["p"]).iterdir()}
    assert contents == {"p": "secret", "labels": 'a="1"', "token": "token"}


@pytest.mark.parametrize(
    ("volume", "text"),
    [
        ({"configMap": {"name": "none"}}, 'MountVolume.SetUp failed for volume "v" : configmap "none" not found'),
        ({"configMap": {"name": "cm", "items": [{"key": "x", "path": "x"}]}}, "references non-existent configmap key"),
        ({"hostPath": {"path": "/no/such", "type": "Directory"}}, "hostPath type check failed: /no/such is not a dir"),
        ({"nfs": {"server": "s"}}, 'volume "v": this node agent has emptyDir'),
        ({"configMap": {"name": "cm", "items": [{"key": "k", "path": "../../x"}]}}, "leads out of its volume"),
    ],
)
def test_what_can_not_be_mounted_says_why(tmp_path: Path, volume: dict[str, Any], text: str) -> None:
    with pytest.raises(VolumeError, match=text):
        make(tmp_path / "v", {"name": "v", **volume})
    assert not (tmp_path / "x").exists()


def test_mounts_of_a_container(tmp_path: Path) -> None:
    mounts = (
        {"name": "e", "mountPath": "/data", "readOnly": True},
        {"name": "e", "mountPath": "/sub", "subPathExpr": "$(NAME)/x"},
    )
    container = build(mounts=mounts).spec.containers[0]
    got = container_mounts(container, {"e": str(tmp_path)}, {"NAME": "n"}, ["e"])
    assert got == (Mount("e", str(tmp_path), "/data", True), Mount("e", str(tmp_path / "n/x"), "/sub"))
    assert (tmp_path / "n/x").is_dir()
    with pytest.raises(VolumeError, match="leads out of its volume"):
        container_mounts(container, {"e": str(tmp_path)}, {"NAME": "../.."}, ["e"])
    with pytest.raises(VolumeError, match="which the pod does not have"):
        container_mounts(container, {}, {}, [])
