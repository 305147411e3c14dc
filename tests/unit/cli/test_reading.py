from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubedra.cli.describe import describe
from kubedra.cli.get import get
from kubedra.cli.output import Refusal
from kubedra.cli.reading import dump_objects

ROOT = Path(__file__).resolve().parents[3]
FLEET = str(ROOT / "examples" / "demo" / "fleet.yaml")


def dump(tmp_path: Path, *items: dict[str, Any]) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))
    return str(path)


CLAIM = {
    "apiVersion": "resource.k8s.io/v1beta1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "x", "uid": "u"},
    "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}},
}


def test_a_dump_stands_in_for_a_cluster_and_old_versions_are_read(tmp_path: Path) -> None:
    done = CliRunner().invoke(get, ["resourceclaims", "-A", "--dump", dump(tmp_path, CLAIM), "-o", "json"])
    (item,) = json.loads(done.output)["items"]
    assert item["apiVersion"] == "resource.k8s.io/v1"
    assert item["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu"
    table = CliRunner().invoke(get, ["resourceclaims", "-n", "x", "--dump", dump(tmp_path, CLAIM)]).output
    assert table.splitlines()[1].split()[:2] == ["c", "pending"]


def test_a_fleet_stands_in_for_a_cluster() -> None:
    assert "h100-0" in CliRunner().invoke(get, ["nodes", "--fleet", FLEET]).output
    text = CliRunner().invoke(describe, ["resourceslices", "--fleet", FLEET]).output
    assert "memory=81559Mi" in text
    assert "Held by:      nobody" in text


@pytest.mark.parametrize("text", ["{", "[]", "a: b", "just words"])
def test_what_is_no_dump_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "dump"
    path.write_text(text)
    with pytest.raises(Refusal, match="dump"):
        dump_objects(path)
